//! The world: one clock, one queue of what happens next, and everybody in it.
//!
//! ```text
//!            what goes wrong (faults)
//!                    │
//!  nodes, clients ── link ── connection ── server (keeper's model)
//!     ▲ messages      ▲ frames, in order, late      │ commits
//!     └── mailboxes ──┘                             ▼
//!                                              history ──▶ checker, after every step
//! ```
//!
//! Time is virtual and goes from event to event. Two events never happen at once: what falls on the same microsecond
//! happens in the order in which it was put into the queue. Everything that is drawn comes from the plan's seed, so a
//! plan has one run.
//!
//! * `net`: connections. Frames of one direction arrive in order, those of two connections as it happens.
//! * `session`: what the client library and the session actor do about a connection that comes or goes.
//! * `faults`: what goes wrong, and how it is mended.
//! * `server`: ZooKeeper.

mod faults;
mod net;
mod server;
mod session;

use std::any::Any;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use bellwether_core::group::{GroupRecord, Stage};
use bellwether_core::job::JobRecord;
use bellwether_core::job::identity::IfExists;
use bellwether_core::name::NodeId;
use bellwether_core::path;
use bellwether_core::time::WallMillis;
use bellwether_keeper::proto::{ConnectRequest, ConnectResponse, Reply, Request, WatchedEvent};
use fastrand::Rng;

use self::net::Connection;
use self::server::Server;
use crate::client::Client;
use crate::history::{Bounds, Checker, Event, EventKind, Leading, Life, Violation};
use crate::node::context::{Context, WALL_MS};
use crate::node::worker::{Offer, kinds};
use crate::node::{Msg, Node, NodeConfig, Out, Route};
use crate::plan::{Plan, PlannedCall};
use crate::report::{Report, Stats};
use crate::trace::Trace;
use crate::zk::link::{Conn, Link};

/// The id of a panic.
const PANIC: &str = "P";

/// How long after the healing everything must be over. Far beyond any bound of L3, so that what is late is found by the
/// liveness rules, with their reason, and beyond the timeouts and backoffs of all jobs and ticks of a plan one after another
/// in the only slot that there may be.
const SETTLING_US: u64 = 1_200_000_000;

/// How often it is asked whether everything is over.
const LOOK_US: u64 = 1_000_000;

/// How long the world goes on after that, so that what should not happen any more has time to.
const AFTER_US: u64 = 20_000_000;

/// A frame to the server.
#[derive(Debug)]
enum Up {
    /// With the randomness of the session's password.
    Connect(ConnectRequest, [u8; 16]),
    Request(i32, Request),
    Fin,
}

/// A frame from the server.
#[derive(Debug)]
enum Down {
    Connected(ConnectResponse),
    Reply(Reply),
    Event(WatchedEvent),
    Fin,
}

/// What comes to a process. It waits while the process stands still.
enum Incoming {
    Frame(Conn, Down),
    Msg(Msg),
    /// Connect now: the attempt with this number.
    Attempt(u64),
    /// The attempt with this number takes too long.
    AttemptOver(u64),
    /// Send a sign of life in the session with this number.
    Heartbeat(u64),
    /// Look whether this connection is dead.
    Silence(Conn),
    /// Look whether the session is to be given up.
    GiveUp,
    /// A client's action.
    Act(usize),
    /// The graceful stop has had its time: leave.
    Leave,
}

/// What happens next.
enum Happening {
    ToServer(Conn, Up),
    /// To a process of a peer, by its number.
    ToPeer(usize, u64, Incoming),
    ServerTick,
    /// A write of this session, whose client thinks that it is lost, is applied after all.
    Late(i64, Request),
    Fault(usize),
    Mended(faults::Mend),
    Heal,
    /// Is everything over?
    Look,
}

enum Who {
    Node(NodeConfig, Option<Box<Node>>),
    Client(Client),
}

/// A process's place: the same before and after its restart.
struct Peer {
    who: Who,
    skew_ms: i64,
    /// Counts the processes.
    process: u64,
    /// What waits while it stands still.
    frozen: Option<Vec<Incoming>>,
    /// Set while it is told to leave: how long it is down afterwards.
    leaves_ms: Option<u64>,
    link: Link<Msg>,
    link_state: session::Attempts,
    trouble: net::Trouble,
    /// When the last message of a route arrives.
    routes: BTreeMap<Route, u64>,
    rng: Rng,
}

/// Runs a plan.
pub(crate) struct World {
    plan: Plan,
    now_us: u64,
    queue: BTreeMap<(u64, u64), Happening>,
    numbered: u64,
    rng: Rng,
    server: Server,
    tick_at_us: Option<u64>,
    conns: BTreeMap<Conn, Connection>,
    next_conn: Conn,
    peers: Vec<Peer>,
    leader: Option<usize>,
    /// How each node said last that it stands.
    standing: BTreeMap<NodeId, (Leading, i32)>,
    over_since_us: Option<u64>,
    checker: Checker,
    violations: Vec<Violation>,
    stats: Stats,
    trace: Trace,
}

impl World {
    pub(crate) fn new(plan: Plan, trace: Trace) -> Self {
        let timeout = Duration::from_millis(plan.session_timeout_ms);
        let bounds = Bounds { session_timeout: timeout, tick: Duration::from_millis(plan.tick_ms) };
        let mut rng = Rng::with_seed(plan.seed ^ 0x5eed_0f0f_7e77);
        let nodes = plan.nodes.iter().enumerate().map(|(at, node)| {
            let config = NodeConfig {
                name: NodeId::new(format!("n{at}")).expect("a letter and digits"),
                campaign: plan.campaign,
                strategy: plan.strategy,
                offer: Offer { slots: node.slots, kinds: kinds(), tags: Vec::new() },
            };
            (Who::Node(config, None), node.skew_ms)
        });
        let clients = (0u32..).zip(&plan.clients).map(|(number, skew_ms)| {
            (Who::Client(Client::new(number, *skew_ms, plan.seed ^ u64::from(number))), *skew_ms)
        });
        let peers = nodes.chain(clients).map(|(who, skew_ms)| Peer {
            who,
            skew_ms,
            process: 0,
            frozen: None,
            leaves_ms: None,
            link: Link::new(),
            link_state: session::Attempts::default(),
            trouble: net::Trouble::default(),
            routes: BTreeMap::new(),
            rng: rng.fork(),
        });
        Self {
            now_us: 0,
            queue: BTreeMap::new(),
            numbered: 0,
            server: Server::new(plan.tick_ms),
            tick_at_us: None,
            conns: BTreeMap::new(),
            next_conn: 0,
            peers: peers.collect(),
            leader: None,
            standing: BTreeMap::new(),
            over_since_us: None,
            checker: Checker::new(bounds),
            violations: Vec::new(),
            stats: Stats::default(),
            trace,
            rng,
            plan,
        }
    }

    /// Runs until everything is over, or something is wrong.
    pub(crate) fn run(mut self) -> Report {
        for event in self.server.lay_out(self.plan.retention_ms, &self.plan.schedules) {
            self.record(event);
        }
        for peer in 0..self.peers.len() {
            self.start(peer);
        }
        for at in 0..self.plan.actions.len() {
            let action = &self.plan.actions[at];
            let peer = self.plan.nodes.len() + action.client;
            let (at_us, process) = (action.at_ms * 1_000, self.peers[peer].process);
            self.put(at_us, Happening::ToPeer(peer, process, Incoming::Act(at)));
        }
        for at in 0..self.plan.faults.len() {
            self.put(self.plan.faults[at].at_ms * 1_000, Happening::Fault(at));
        }
        let heal_us = self.plan.heal_ms * 1_000;
        self.put(heal_us, Happening::Heal);
        self.put(heal_us + LOOK_US, Happening::Look);
        while let Some(((at, number), next)) = self.queue.pop_first() {
            self.now_us = at;
            self.stats.steps += 1;
            self.trace.step(at, number, &next_tag(&next));
            if let Err(panic) = catch_unwind(AssertUnwindSafe(|| self.happen(next))) {
                self.panicked(panic.as_ref());
            }
            if !self.violations.is_empty() || self.is_over() {
                break;
            }
        }
        self.finish()
    }

    /// Somebody met what it takes to be impossible.
    fn panicked(&mut self, panic: &(dyn Any + Send)) {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message");
        let (at, zxid) = (self.now_us / 1_000, self.checker.truth().zxid());
        self.violations.push(Violation { id: PANIC, at, zxid, what: format!("panicked: {text}") });
    }

    fn is_over(&self) -> bool {
        let end = (self.plan.heal_ms * 1_000).saturating_add(SETTLING_US);
        let settled = self.over_since_us.is_some_and(|since| since + AFTER_US <= self.now_us);
        settled || self.now_us >= end
    }

    fn finish(mut self) -> Report {
        self.stats.virtual_us = self.now_us;
        if self.violations.is_empty() {
            self.violations = self.checker.finish(self.now_us / 1_000);
        }
        Report { seed: self.plan.seed, violations: self.violations, stats: self.stats, trace: self.trace }
    }

    fn happen(&mut self, next: Happening) {
        match next {
            Happening::ToServer(conn, frame) => self.frame_up(conn, frame),
            Happening::ToPeer(peer, process, incoming) => self.incoming(peer, process, incoming),
            Happening::ServerTick => {
                self.tick_at_us = None;
                let outcome = self.server.tick(self.now_us);
                self.served(outcome);
            }
            Happening::Late(session, request) => {
                let outcome = self.server.late(self.now_us, session, request);
                self.served(outcome);
            }
            Happening::Fault(at) => self.fault(at),
            Happening::Mended(mend) => self.mended(mend),
            Happening::Heal => self.heal(),
            Happening::Look => self.look(),
        }
    }

    /// Whether everything has come to its end: asked from time to time, once all is healed.
    fn look(&mut self) {
        let truth = self.checker.truth();
        let kept = self.plan.retention_ms.is_none();
        let over = |(id, _)| {
            let record = truth.record(id).and_then(|znode| znode.record());
            // What belongs to a group goes with it.
            let grouped = |record: &JobRecord| record.membership.is_some() || record.spawned;
            record.is_none_or(|record| (kept || grouped(record)) && record.is_terminal())
        };
        let left = |group: &GroupRecord| !kept && matches!(group.stage, Stage::Done { .. });
        let rests = |(id, _)| truth.group(id).is_none_or(|group| truth.rests(id, group) && !left(group));
        let rest = truth.groups().all().all(rests);
        let wall = WallMillis((WALL_MS + (self.now_us / 1_000).cast_signed()).cast_unsigned());
        // Those that will tick this year are not over.
        let year = Duration::from_secs(300 * 24 * 3600);
        let ticks = truth.below(path::SCHEDULES).filter_map(|(_, znode)| znode.schedule()).any(|schedule| {
            let next = schedule.spec.when.calendar().ok().and_then(|calendar| schedule.next(&calendar));
            next.is_some_and(|next| next < wall + year)
        });
        let jobs = truth.jobs();
        let registered = |id| jobs.worker(id).is_some_and(|worker| worker.registered);
        let quiet = jobs.all().all(over) && jobs.inboxes().all(registered);
        let busy = self.peers.iter().any(|peer| match &peer.who {
            Who::Client(client) => !client.tasks().is_empty(),
            Who::Node(_, node) => node.is_none(),
        });
        if quiet && rest && !busy && !ticks {
            self.over_since_us.get_or_insert(self.now_us);
        } else {
            self.over_since_us = None;
        }
        self.put(self.now_us + LOOK_US, Happening::Look);
    }

    fn put(&mut self, at_us: u64, what: Happening) {
        self.numbered += 1;
        self.queue.insert((at_us.max(self.now_us), self.numbered), what);
    }

    fn put_peer(&mut self, at_us: u64, peer: usize, incoming: Incoming) {
        let process = self.peers[peer].process;
        self.put(at_us, Happening::ToPeer(peer, process, incoming));
    }

    /// Notes what happened, and asks the rules.
    fn record(&mut self, what: EventKind) {
        let event = Event { at: self.now_us / 1_000, what };
        let said_already = matches!(event.what, EventKind::Link { .. });
        if !self.note_leader(&event.what) && !said_already {
            self.stats.note(&event.what);
            self.trace.event(self.now_us, &event.what);
        }
        self.violations.extend(self.checker.observe(&event));
    }

    /// How late a message is that goes from task to task of a process: a little, and at times much.
    fn jitter(&mut self, peer: usize) -> u64 {
        let rng = &mut self.peers[peer].rng;
        match rng.u8(..40) {
            0 => rng.u64(1_000..20_000),
            1..=4 => rng.u64(100..2_000),
            _ => rng.u64(1..60),
        }
    }

    /// A process begins.
    fn start(&mut self, at: usize) {
        let peer = &mut self.peers[at];
        peer.process += 1;
        peer.frozen = None;
        peer.leaves_ms = None;
        peer.link = Link::new();
        peer.link_state = session::Attempts::default();
        peer.routes.clear();
        let name = match &mut peer.who {
            Who::Node(config, node) => {
                // Clients have the small numbers.
                let number =
                    u32::try_from((peer.process << 8) + at as u64).expect("few processes") + 1_000_000;
                let started = Node::start(config, &mut peer.rng, self.plan.seed, peer.skew_ms, number);
                *node = Some(Box::new(started));
                Some(config.name.clone())
            }
            Who::Client(_) => None,
        };
        if let Some(node) = name {
            self.record(EventKind::Node { node, is: Life::Started });
        }
        self.attempt_in(at, 0);
    }

    /// A process ends, however. Its kernel closes its connection.
    fn end(&mut self, at: usize, how: Life) {
        let peer = &mut self.peers[at];
        let Who::Node(config, node) = &mut peer.who else { return };
        if node.take().is_none() {
            return;
        }
        let name = config.name.clone();
        peer.process += 1;
        peer.frozen = None;
        self.record(EventKind::Node { node: name, is: how });
        self.close_connections(at);
    }

    fn incoming(&mut self, at: usize, process: u64, incoming: Incoming) {
        let peer = &mut self.peers[at];
        if peer.process != process {
            return;
        }
        if let Some(waiting) = &mut peer.frozen {
            return waiting.push(incoming);
        }
        match incoming {
            Incoming::Frame(conn, frame) => self.frame_down(at, conn, frame),
            Incoming::Msg(msg) => self.deliver(at, msg),
            Incoming::Attempt(number) => self.attempt(at, number),
            Incoming::AttemptOver(number) => self.attempt_over(at, number),
            Incoming::Heartbeat(generation) => self.heartbeat(at, generation),
            Incoming::Silence(conn) => self.silence(at, conn),
            Incoming::GiveUp => self.give_up(at),
            Incoming::Act(action) => self.act(at, action),
            Incoming::Leave => self.leave(at),
        }
    }

    /// Hands a message to whom it is for.
    fn deliver(&mut self, at: usize, msg: Msg) {
        if let Msg::Opened(generation) = msg {
            return self.opened(at, generation);
        }
        let now_us = self.now_us;
        let peer = &mut self.peers[at];
        let out = match &mut peer.who {
            Who::Client(client) => match msg {
                Msg::Task(task) => client.poll(now_us, peer.link.view, task),
                _ => Vec::new(),
            },
            Who::Node(config, Some(node)) => {
                let mut out = Vec::new();
                let mut context = Context {
                    now_us,
                    skew_ms: peer.skew_ms,
                    node: &config.name,
                    view: peer.link.view,
                    rng: &mut peer.rng,
                    out: &mut out,
                };
                node.handle(&mut context, msg);
                out
            }
            Who::Node(_, None) => Vec::new(),
        };
        self.carry_out(at, out);
    }

    fn carry_out(&mut self, at: usize, out: Vec<Out>) {
        let process = self.peers[at].process;
        for out in out {
            if self.peers[at].process != process {
                return;
            }
            match out {
                Out::Ask { zk, request, then } => self.ask(at, zk, request, then),
                Out::Watch { zk, path, set, heard } => self.watch(at, zk, path, set, heard),
                Out::Glance { zk, path, there, changed } => self.glance(at, zk, path, there, changed),
                Out::Tell(route, msg) => self.tell(at, route, msg),
                Out::At(at_us, msg) => self.put_peer(at_us, at, Incoming::Msg(msg)),
                Out::Record(what) => self.record(what),
                Out::Begin(task) => {
                    let (now_us, peer) = (self.now_us, &mut self.peers[at]);
                    let Who::Node(_, Some(node)) = &mut peer.who else { return };
                    let out = node.begin(now_us, peer.link.view, task);
                    self.carry_out(at, out);
                }
                Out::Die => self.crash(at, self.plan.session_timeout_ms / 2),
                Out::Fail => self.end(at, Life::Failed),
                Out::Left => self.leave(at),
                Out::Drained => self.drained(at),
            }
        }
    }

    /// From part to part, in the order of a route.
    fn tell(&mut self, at: usize, route: Route, msg: Msg) {
        let late = self.now_us + self.jitter(at);
        let last = self.peers[at].routes.entry(route).or_default();
        *last = late.max(*last + 1);
        let arrives = *last;
        self.put_peer(arrives, at, Incoming::Msg(msg));
    }

    /// From a task that awaited something: in no order.
    fn report(&mut self, at: usize, msg: Msg) {
        let late = self.now_us + self.jitter(at);
        self.put_peer(late, at, Incoming::Msg(msg));
    }

    /// A client does what it planned.
    fn act(&mut self, at: usize, action: usize) {
        let (now_us, jobs) = (self.now_us, &self.plan.jobs);
        let peer = &mut self.peers[at];
        let view = peer.link.view;
        let Who::Client(client) = &mut peer.who else { return };
        let id = |job: &usize| jobs[*job].id.clone();
        let out = match &self.plan.actions[action].call {
            PlannedCall::Submit(round) => {
                let round = round.iter().map(|job| jobs[*job].wish(false, IfExists::Same)).collect();
                client.begin(now_us, view, |shell| shell.submit(round))
            }
            PlannedCall::SubmitOther(job) => {
                let round = vec![jobs[*job].wish(true, IfExists::Same)];
                client.begin(now_us, view, |shell| shell.submit(round))
            }
            PlannedCall::SubmitIgnoring(job) => {
                let round = vec![jobs[*job].wish(true, IfExists::Ignore)];
                client.begin(now_us, view, |shell| shell.submit(round))
            }
            PlannedCall::SubmitAgain(job) => {
                let round = vec![jobs[*job].wish(false, IfExists::Again)];
                client.begin(now_us, view, |shell| shell.submit(round))
            }
            PlannedCall::Generate { group, members, seal, pace_ms } => {
                let group = &self.plan.groups[*group];
                let (members, seal, pace_ms) = (*members, *seal, *pace_ms);
                let generation = group.generation(&self.plan.jobs, members, seal, pace_ms);
                client.begin(now_us, view, |shell| shell.generate(generation))
            }
            PlannedCall::CancelJoin(group) => {
                let join = self.plan.groups[*group].join_id();
                client.begin(now_us, view, |shell| shell.cancel(join))
            }
            PlannedCall::RetryJoin(group) => {
                let join = self.plan.groups[*group].join_id();
                client.begin(now_us, view, |shell| shell.retry(join))
            }
            PlannedCall::Pause(kind, ms) => {
                let (kind, ms) = (kind.clone(), *ms);
                client.begin(now_us, view, move |shell| shell.pause(kind, ms))
            }
            PlannedCall::DrainWorker(which) => {
                let which = *which;
                client.begin(now_us, view, move |shell| shell.drain_one(which))
            }
            PlannedCall::Cancel(job) => client.begin(now_us, view, |shell| shell.cancel(id(job))),
            PlannedCall::Retry(job) => client.begin(now_us, view, |shell| shell.retry(id(job))),
            PlannedCall::RetryAtEnd(job) => client.begin(now_us, view, |shell| shell.retry_at_end(id(job))),
            PlannedCall::Wait(job) => client.begin(now_us, view, |shell| shell.wait(id(job))),
        };
        self.carry_out(at, out);
    }

    fn name(&self, at: usize) -> String {
        match &self.peers[at].who {
            Who::Node(config, _) => config.name.to_string(),
            Who::Client(_) => format!("c{}", at - self.plan.nodes.len()),
        }
    }
}

/// What kind of event it is, for the hash of a run.
fn next_tag(next: &Happening) -> [u64; 3] {
    match next {
        Happening::ToServer(conn, _) => [1, *conn, 0],
        Happening::ToPeer(peer, process, _) => [2, *peer as u64, *process],
        Happening::ServerTick => [3, 0, 0],
        Happening::Fault(at) => [4, *at as u64, 0],
        Happening::Mended(_) => [5, 0, 0],
        Happening::Heal => [6, 0, 0],
        Happening::Look => [7, 0, 0],
        Happening::Late(session, _) => [8, session.unsigned_abs(), 0],
    }
}
