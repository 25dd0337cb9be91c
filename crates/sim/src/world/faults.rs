//! Faults and their healing.

use std::time::Duration;

use bellwether_actors::node::Part;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::ensemble::MEMBERS;
use super::net::Loss;
use super::servers::Servers;
use super::{Happening, Incoming, Up, Who, World};
use crate::history::{EventKind, Leading, Life};
use crate::host::Msg;
use crate::plan::{FaultKind, Server, Target};
use crate::zk::library::State;

/// The end of a fault.
#[derive(Debug, Clone, Copy)]
pub(super) enum Mend {
    /// The network of a peer delivers the frames that it held.
    Flow(usize),
    /// A node is restarted.
    Start(usize),
    /// A frozen process of a node continues; the second field is the process number.
    Thaw(usize, u64),
    /// The server is restarted.
    Server,
}

/// Limits of a graceful stop before the process ends anyway: for the worker, beyond its grace, and then for the
/// candidate. They match `Worker::drain` and `Node::stop`.
const DRAIN_PATIENCE_US: u64 = 10_000_000;
const STEP_DOWN_US: u64 = 5_000_000;

/// The longest time that a node keeps running after an operator has drained its worker.
const OPERATOR_US: u64 = 15_000_000;

impl World {
    fn target(&self, target: Target) -> Option<usize> {
        match target {
            Target::Node(at) => Some(at),
            Target::Client(at) => Some(self.plan.nodes.len() + at),
            Target::Leader => self.leader,
        }
    }

    /// Remembers the leader, as the target of faults. Returns whether the event only renews the trust in a term.
    pub(super) fn note_leader(&mut self, what: &EventKind) -> bool {
        let EventKind::Leadership { node, epoch, state, .. } = what else { return false };
        let at = self.peers.iter().position(|peer| match &peer.who {
            Who::Node(config, _) => config.name == *node,
            Who::Client => false,
        });
        match state {
            Leading::Active => self.leader = at,
            Leading::Inactive if self.leader == at => self.leader = None,
            Leading::Inactive | Leading::Paused => {}
        }
        self.standing.insert(node.clone(), (*state, *epoch)) == Some((*state, *epoch))
    }

    fn stall(&mut self, at: usize, part: Part, ms: u64) {
        self.put_peer(self.now_us, at, Incoming::Msg(Msg::PartStalls(part)));
        self.put_peer(self.now_us + ms * 1_000, at, Incoming::Msg(Msg::PartGoesOn(part)));
    }

    pub(super) fn fault(&mut self, number: usize) {
        let fault = self.plan.faults[number].clone();
        let target = match &fault.kind {
            FaultKind::Cut { target, .. }
            | FaultKind::Silence { target, .. }
            | FaultKind::Slow { target, .. }
            | FaultKind::LoseWrite { target, .. }
            | FaultKind::LateWrite { target, .. }
            | FaultKind::Expire { target }
            | FaultKind::Crash { target, .. }
            | FaultKind::Freeze { target, .. }
            | FaultKind::Drain { target, .. }
            | FaultKind::ChildDies { target }
            | FaultKind::PartDies { target, .. }
            | FaultKind::PartStalls { target, .. }
            | FaultKind::Hang { target, .. } => self.target(*target),
            FaultKind::MemberDies => self.leader.or(Some(0)),
            FaultKind::ServerRestart { .. }
            | FaultKind::ServerCutOff { .. }
            | FaultKind::ServerLags { .. }
            | FaultKind::ServerDies { .. } => Some(0),
        };
        // There is no leader.
        let Some(at) = target else { return };
        let name = self.name(at);
        self.trace.note(self.now_us, || format!("fault: {:?} (of {name})", fault.kind));
        *self.stats.faults.entry(fault.kind.name()).or_default() += 1;
        let now_us = self.now_us;
        match fault.kind {
            FaultKind::Cut { refused_ms, requests_arrive, .. } => {
                self.peers[at].trouble.refused_until_us = now_us + refused_ms * 1_000;
                if let State::Up(conn) = self.peers[at].library.state {
                    self.break_connection(conn, requests_arrive);
                }
            }
            FaultKind::Silence { ms, up, down, .. } => {
                let until = now_us + ms * 1_000;
                let trouble = &mut self.peers[at].trouble;
                if up {
                    trouble.up_until_us = until;
                }
                if down {
                    trouble.down_until_us = until;
                }
                self.put(until, Happening::Mended(Mend::Flow(at)));
            }
            FaultKind::Slow { ms, delay_ms, .. } => {
                self.peers[at].trouble.slow = (now_us + ms * 1_000, delay_ms * 1_000);
            }
            FaultKind::LoseWrite { applied, .. } => {
                let loss = if applied { Loss::After } else { Loss::Before };
                self.peers[at].trouble.next_write = Some(loss);
            }
            FaultKind::LateWrite { ms, .. } => {
                self.peers[at].trouble.next_write = Some(Loss::Late(ms * 1_000))
            }
            FaultKind::Expire { .. } => {
                let session = self.peers[at].library.view.session;
                self.record(EventKind::Evicted { session });
                let outcome = self.servers.expire(now_us, session);
                self.served(outcome);
            }
            FaultKind::Crash { down_ms, .. } => self.crash_by_plan(at, down_ms),
            FaultKind::Freeze { ms, .. } => self.freeze(at, ms),
            FaultKind::Drain { grace_ms, down_ms, .. } => self.drain(at, grace_ms, down_ms),
            FaultKind::ChildDies { .. } => self.put_peer(now_us, at, Incoming::Msg(Msg::WorkerChildDies)),
            FaultKind::MemberDies => {
                self.put_peer(now_us, at, Incoming::Msg(Msg::LeaderMemberDies));
            }
            FaultKind::PartDies { part, .. } => {
                self.put_peer(now_us, at, Incoming::Msg(Msg::PartDies(part)));
            }
            FaultKind::PartStalls { part, ms, .. } => self.stall(at, part, ms),
            FaultKind::Hang { ms, .. } => Part::ALL.into_iter().for_each(|part| self.stall(at, part, ms)),
            FaultKind::ServerRestart { down_ms } => match &mut self.servers {
                Servers::One(server) => {
                    server.kill();
                    self.all_hang_up();
                    self.put(now_us + down_ms * 1_000, Happening::Mended(Mend::Server));
                }
                Servers::Three(_) => (0..MEMBERS).for_each(|member| self.server_dies(member, down_ms)),
            },
            FaultKind::ServerDies { which, down_ms } => {
                if let Some(member) = self.member(which) {
                    self.server_dies(member, down_ms);
                }
            }
            FaultKind::ServerCutOff { which, ms } => {
                if let Some(member) = self.member(which)
                    && let Some(ensemble) = self.servers.ensemble()
                {
                    let outcome = ensemble.cut(now_us, member, ms * 1_000);
                    self.served(outcome);
                }
            }
            FaultKind::ServerLags { which, ms, delay_ms } => {
                if let Some(member) = self.member(which)
                    && let Some(ensemble) = self.servers.ensemble()
                {
                    ensemble.lag(now_us, member, ms * 1_000, delay_ms * 1_000);
                }
            }
        }
    }

    /// Returns the position of a server of an ensemble.
    fn member(&mut self, which: Server) -> Option<usize> {
        let leading = self.servers.ensemble()?.leading();
        match which {
            Server::At(member) => Some(member),
            Server::Leading => leading,
            // Without a leader there is no follower.
            Server::Following(number) => leading.map(|leading| (leading + 1 + number) % MEMBERS),
        }
    }

    fn server_dies(&mut self, member: usize, down_ms: u64) {
        let now_us = self.now_us;
        let Some(ensemble) = self.servers.ensemble() else { return };
        let outcome = ensemble.kill(now_us, member, down_ms * 1_000);
        self.served(outcome);
    }

    /// Kills a node for a fault of the plan. In every other crash the node was only the gateway of a remote process: what ran
    /// goes on, and the next process of the node takes it over.
    pub(super) fn crash_by_plan(&mut self, at: usize, down_ms: u64) {
        let of = (self.peers[at].process << 8) + at as u64;
        let survives = xxh3_64_with_seed(&of.to_le_bytes(), self.plan.seed).is_multiple_of(2);
        if survives && let Who::Node(config, Some(node)) = &mut self.peers[at].who {
            config.takeover = node.held();
        }
        self.crash(at, down_ms);
    }

    pub(super) fn crash(&mut self, at: usize, down_ms: u64) {
        if !self.is_node(at) {
            return;
        }
        self.end(at, Life::Killed);
        self.put(self.now_us + down_ms * 1_000, Happening::Mended(Mend::Start(at)));
    }

    fn freeze(&mut self, at: usize, ms: u64) {
        let now_us = self.now_us;
        let peer = &mut self.peers[at];
        let Who::Node(config, Some(_)) = &peer.who else { return };
        if peer.frozen.is_some() {
            return;
        }
        peer.frozen = Some(Vec::new());
        let (node, process) = (config.name.clone(), peer.process);
        self.record(EventKind::Node { node, is: Life::Frozen });
        self.put(now_us + ms * 1_000, Happening::Mended(Mend::Thaw(at, process)));
    }

    /// Continues with the frames in its socket, its timers and its messages, each in their order.
    fn thaw(&mut self, at: usize, process: u64) {
        let peer = &mut self.peers[at];
        let Who::Node(config, Some(_)) = &peer.who else { return };
        let node = config.name.clone();
        let Some(waiting) = peer.frozen.take_if(|_| peer.process == process) else { return };
        let frames_first = peer.rng.bool();
        self.record(EventKind::Node { node, is: Life::Thawed });
        let (frames, rest): (Vec<_>, Vec<_>) =
            waiting.into_iter().partition(|incoming| matches!(incoming, Incoming::Arrived(..)));
        let (first, second) = if frames_first { (frames, rest) } else { (rest, frames) };
        for incoming in first.into_iter().chain(second) {
            self.incoming(at, process, incoming);
        }
    }

    fn drain(&mut self, at: usize, grace_ms: u64, down_ms: u64) {
        if !self.is_node(at) || self.peers[at].leaves_ms.is_some() {
            return;
        }
        self.peers[at].leaves_ms = Some(down_ms);
        let grace = Duration::from_millis(grace_ms);
        let step_down = self.now_us + grace_ms * 1_000 + DRAIN_PATIENCE_US;
        self.put_peer(self.now_us, at, Incoming::Msg(Msg::Drain(grace)));
        self.put_peer(step_down, at, Incoming::Msg(Msg::StepDown));
        self.put_peer(step_down + STEP_DOWN_US, at, Incoming::Leave);
    }

    /// An operator has drained the worker, and the process continues without it. The operator restarts it after a
    /// while; until then it may lead.
    pub(super) fn drained(&mut self, at: usize) {
        if self.peers[at].leaves_ms.is_some() {
            return;
        }
        self.peers[at].leaves_ms = Some(self.rng.u64(100..5_000));
        let step_down = self.now_us + self.rng.u64(100..OPERATOR_US);
        self.put_peer(step_down, at, Incoming::Msg(Msg::StepDown));
        self.put_peer(step_down + STEP_DOWN_US, at, Incoming::Leave);
    }

    /// The last step of a graceful stop: closes the session and ends the process.
    pub(super) fn leave(&mut self, at: usize) {
        let Some(down_ms) = self.peers[at].leaves_ms else { return };
        if let State::Up(conn) = self.peers[at].library.state {
            let xid = self.peers[at].library.sending(self.now_us, None);
            self.send_up(conn, Up::Request(xid, bellwether_keeper::proto::Request::CloseSession));
        }
        self.end(at, Life::Stopped);
        self.put(self.now_us + down_ms * 1_000, Happening::Mended(Mend::Start(at)));
    }

    pub(super) fn mended(&mut self, mend: Mend) {
        match mend {
            Mend::Flow(at) => self.flow_again(at),
            Mend::Start(at) => self.start_again(at),
            Mend::Thaw(at, process) => self.thaw(at, process),
            Mend::Server => self.servers_start(),
        }
    }

    fn servers_start(&mut self) {
        match &mut self.servers {
            Servers::One(server) => server.start(self.now_us),
            Servers::Three(ensemble) => {
                let outcome = ensemble.heal(self.now_us);
                self.served(outcome);
            }
        }
    }

    fn start_again(&mut self, at: usize) {
        if matches!(self.peers[at].who, Who::Node(_, None)) {
            self.start(at);
        }
    }

    fn is_node(&self, at: usize) -> bool {
        matches!(self.peers[at].who, Who::Node(_, Some(_)))
    }

    /// Heals every fault of links, nodes and the server. Lost frames stay lost.
    pub(super) fn heal(&mut self) {
        self.hurry();
        self.servers_start();
        for at in 0..self.peers.len() {
            self.peers[at].trouble = Default::default();
            self.flow_again(at);
            let process = self.peers[at].process;
            self.thaw(at, process);
            for part in Part::ALL {
                self.put_peer(self.now_us, at, Incoming::Msg(Msg::PartGoesOn(part)));
            }
            if self.peers[at].leaves_ms.is_some() {
                // Its graceful stop is cut short, so that the node is up from now on.
                self.end(at, Life::Killed);
            }
            self.start_again(at);
        }
        self.trace.note(self.now_us, || "all faults are healed".to_owned());
        self.record(EventKind::Healed);
    }
}
