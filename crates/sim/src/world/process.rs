//! Processes: start, end, incoming messages and outputs.

use super::{Incoming, Who, World, session};
use crate::history::{EventKind, Life};
use crate::host::context::{Context, Lives};
use crate::host::{Msg, Node, Out, Route};
use crate::workload::Process;
use crate::zk::library::Library;

impl World {
    /// Starts a process.
    pub(super) fn start(&mut self, at: usize) {
        let peer = &mut self.peers[at];
        peer.process += 1;
        peer.frozen = None;
        peer.leaves_ms = None;
        peer.library = Library::new();
        peer.attempts = session::Attempts::default();
        peer.routes.clear();
        let mut out = Vec::new();
        let name = match &mut peer.who {
            Who::Node(config, node) => {
                // Numbers below this belong to clients.
                let number =
                    u32::try_from((peer.process << 8) + at as u64).expect("few processes") + 1_000_000;
                let seed = self.plan.seed ^ u64::from(number);
                peer.tasks = Some(Process::of_node(number, peer.skew_ms, seed));
                let mut context = Context {
                    now_us: self.now_us,
                    skew_ms: peer.skew_ms,
                    node: &config.name,
                    view: peer.library.view,
                    lives: Lives::default(),
                    leads_in: None,
                    rng: &mut peer.rng,
                    out: &mut out,
                };
                let started = Node::start(&mut context, config, self.plan.seed);
                config.takeover = None;
                *node = Some(Box::new(started));
                Some(config.name.clone())
            }
            Who::Client => {
                let number = u32::try_from(at - self.plan.nodes.len()).expect("few clients");
                peer.tasks = Some(Process::new(number, peer.skew_ms, self.plan.seed ^ u64::from(number)));
                None
            }
        };
        if let Some(node) = name {
            self.record(EventKind::Node { node, is: Life::Started });
        }
        if let Who::Client = self.peers[at].who {
            self.start_session(at, 0);
        }
        self.carry_out(at, out);
    }

    /// Ends a process, for any reason. Its kernel closes its connections.
    pub(super) fn end(&mut self, at: usize, how: Life) {
        let peer = &mut self.peers[at];
        let Who::Node(config, node) = &mut peer.who else { return };
        if node.take().is_none() {
            return;
        }
        let name = config.name.clone();
        peer.tasks = None;
        peer.session = None;
        peer.process += 1;
        peer.frozen = None;
        self.record(EventKind::Node { node: name, is: how });
        self.close_connections(at);
    }

    pub(super) fn incoming(&mut self, at: usize, process: u64, incoming: Incoming) {
        if self.peers[at].process != process {
            return;
        }
        let incoming = match incoming {
            Incoming::Frame(conn, frame) => match self.arrives(conn, frame) {
                Some(frame) => Incoming::Arrived(conn, frame),
                None => return,
            },
            incoming => incoming,
        };
        if let Some(waiting) = &mut self.peers[at].frozen {
            return waiting.push(incoming);
        }
        match incoming {
            Incoming::Frame(conn, frame) | Incoming::Arrived(conn, frame) => self.frame_down(at, conn, frame),
            Incoming::Msg(msg) => self.deliver(at, msg),
            Incoming::Attempt(number) => self.attempt(at, number),
            Incoming::AttemptOver(number) => self.attempt_over(at, number),
            Incoming::Silence(conn) => self.silence(at, conn),
            Incoming::GiveUp => self.give_up(at),
            Incoming::Act(action) => self.act(at, action),
            Incoming::Look(job, generation) => self.look_at(at, job, generation),
            Incoming::Leave => self.leave(at),
        }
    }

    /// Delivers a message to its receiver.
    pub(super) fn deliver(&mut self, at: usize, msg: Msg) {
        let msg = match msg {
            Msg::Opened(generation, clock) => return self.opened(at, generation, clock),
            Msg::State => return self.state(at),
            Msg::Session(life, letter) => {
                let msg = Msg::Session(life, letter);
                let msg = match &mut self.peers[at].who {
                    Who::Node(_, Some(node)) => node.unless_stalled(msg),
                    Who::Node(_, None) | Who::Client => Some(msg),
                };
                if let Some(Msg::Session(life, letter)) = msg {
                    self.supervise(at, life, letter);
                }
                return;
            }
            msg => msg,
        };
        let now_us = self.now_us;
        let peer = &mut self.peers[at];
        let Some(tasks) = &mut peer.tasks else { return };
        let out = match (&mut peer.who, msg) {
            (_, Msg::Task(task)) => tasks.poll(now_us, peer.library.view, task),
            (_, Msg::Timer(timer)) => {
                tasks.fire(timer);
                Vec::new()
            }
            (Who::Node(config, Some(node)), msg) => {
                let mut out = Vec::new();
                let mut context = Context {
                    now_us,
                    skew_ms: peer.skew_ms,
                    node: &config.name,
                    view: peer.library.view,
                    lives: Lives::default(),
                    leads_in: None,
                    rng: &mut peer.rng,
                    out: &mut out,
                };
                node.handle(&mut context, msg);
                out
            }
            (Who::Node(_, None) | Who::Client, _) => Vec::new(),
        };
        self.carry_out(at, out);
    }

    pub(super) fn carry_out(&mut self, at: usize, out: Vec<Out>) {
        let process = self.peers[at].process;
        for out in out {
            if self.peers[at].process != process {
                return;
            }
            match out {
                Out::Ask { zk, request, then } => self.ask(at, zk, request, then),
                Out::Watch { zk, path, set, heard } => self.watch(at, zk, path, set, heard),
                Out::Glance { zk, path, there, changed } => self.glance(at, zk, path, there, changed),
                Out::Peek { zk, path, part, then, changed } => {
                    self.peek(at, zk, (path, part), then, changed);
                }
                Out::Tell(route, msg) => self.tell(at, route, msg),
                Out::At(at_us, msg) => self.put_peer(at_us, at, Incoming::Msg(msg)),
                Out::StartSession(life) => self.start_session(at, life),
                Out::SessionEnded => self.session_ended(at),
                Out::CloseSession => self.close_session(at),
                Out::Connect => self.attempt_in(at, 0),
                Out::Follow(generation, zk) => self.follow(at, generation, zk),
                Out::Forget => self.forget(at),
                Out::SetClock(clock) => self.peers[at].library.view.clock = clock,
                Out::Heartbeat { zk, then } => self.heartbeat(at, zk, then),
                Out::Publish(status) => {
                    if let Some(tasks) = &self.peers[at].tasks {
                        tasks.publish(status);
                    }
                }
                Out::Session(event) => self.session(at, event),
                Out::Record(what) => self.record(what),
                Out::Acknowledged(job, generation) => self.acknowledged(at, job, generation),
                Out::Begin(task) => {
                    let (now_us, peer) = (self.now_us, &mut self.peers[at]);
                    let Some(tasks) = &mut peer.tasks else { return };
                    let out = tasks.begin(now_us, peer.library.view, task);
                    self.carry_out(at, out);
                }
                Out::Die => self.crash(at, self.plan.session_timeout_ms / 2),
                Out::Fail => self.end(at, Life::Failed),
                Out::Left => self.leave(at),
                Out::Drained => self.drained(at),
            }
        }
    }

    /// Polls the woken tasks of a process.
    pub(super) fn wake(&mut self, at: usize) {
        let Some(tasks) = &mut self.peers[at].tasks else { return };
        for task in tasks.woken() {
            self.report(at, Msg::Task(task));
        }
    }

    /// Sends a message between parts of a process, in the order of its route.
    pub(super) fn tell(&mut self, at: usize, route: Route, msg: Msg) {
        if let Msg::Nothing = msg {
            return;
        }
        let late = self.now_us + self.jitter(at);
        let last = self.peers[at].routes.entry(route).or_default();
        *last = late.max(*last + 1);
        let arrives = *last;
        self.put_peer(arrives, at, Incoming::Msg(msg));
    }

    /// Sends a message from a task that awaited something, in any order.
    pub(super) fn report(&mut self, at: usize, msg: Msg) {
        if let Msg::Nothing = msg {
            return;
        }
        let late = self.now_us + self.jitter(at);
        self.put_peer(late, at, Incoming::Msg(msg));
    }

    /// Draws the delay of a message within a process: usually short, sometimes long.
    pub(super) fn jitter(&mut self, peer: usize) -> u64 {
        let rng = &mut self.peers[peer].rng;
        match rng.u8(..40) {
            0 => rng.u64(1_000..20_000),
            1..=4 => rng.u64(100..2_000),
            _ => rng.u64(1..60),
        }
    }
}
