//! Three machines on one ZooKeeper model, with losses, late application, expiry, freezes and operators.
//!
//! Each step is drawn at random; after every step all `invariant_*` functions run. A machine without steps for a while
//! is a frozen one.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use proptest::prelude::{Just, ProptestConfig, Strategy as _, any, prop, prop_oneof, proptest};
use uuid::Uuid;

use super::driver::{TIMEOUT, connected};
use super::server::{answer, unknown};
use crate::machine::election::campaign::{self, Strategy, Ticket, WatchTarget};
use crate::machine::election::leadership::*;
use crate::name::NodeId;
use crate::outcome::Outcome;
use crate::path;
use crate::time::Millis;
use crate::txn::Op;
use crate::zookeeper::ZooKeeper;

const NODES: usize = 3;

/// Enough to detect the removal of each fence.
const CASES: u32 = 200;

#[derive(Debug, Clone, Copy)]
enum Step {
    /// Several rounds of the next four steps: a calm period.
    Run(u8),
    /// ZooKeeper serves the node's next request.
    Serve,
    /// A reply reaches the node.
    Receive,
    /// The machine handles its next event.
    Handle,
    Tick,
    /// The client's own ping reaches ZooKeeper.
    Ping,
    Advance(u16),
    /// SIGSTOP or SIGCONT: a stopped process neither sends pings nor handles events.
    Freeze,
    Thaw,
    /// The runtime hangs: the client library still sends pings, but no event is handled.
    Hang,
    /// The connection breaks; requests in flight are lost, or applied late.
    Cut {
        late: bool,
    },
    Reconnect,
    /// A second client ends the session.
    EndSession,
    /// The leader writes, if it may act.
    Write,
    Leave,
    Stand,
    DeleteCandidate,
    DeleteEpoch,
}

/// Changes to the znodes by an operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operator {
    Idle,
    DeletesCandidates,
    DeletesEpoch,
}

fn step(operator: Operator) -> impl proptest::strategy::Strategy<Value = (usize, Step)> {
    let often = prop_oneof![
        10 => (1..12u8).prop_map(Step::Run),
        6 => prop_oneof![Just(Step::Serve), Just(Step::Receive), Just(Step::Handle)],
        2 => Just(Step::Tick),
        1 => Just(Step::Ping),
        3 => prop_oneof![3 => 0..500u16, 2 => 500..4_000u16, 1 => 4_000..11_000u16].prop_map(Step::Advance),
        1 => prop_oneof![Just(Step::Freeze), Just(Step::Hang)],
        2 => Just(Step::Thaw),
        1 => any::<bool>().prop_map(|late| Step::Cut { late }),
        3 => Just(Step::Reconnect),
        2 => Just(Step::Write),
    ];
    let rare = prop_oneof![Just(Step::EndSession), Just(Step::Leave), Just(Step::Stand), Just(Step::Stand)];
    let (weight, vandal) = match operator {
        Operator::Idle => (0, Step::Tick),
        Operator::DeletesCandidates => (2, Step::DeleteCandidate),
        Operator::DeletesEpoch => (2, Step::DeleteEpoch),
    };
    let step = prop_oneof![60 => often, 1 => rare, weight => Just(vandal)];
    (0..NODES, step)
}

/// A request in flight to ZooKeeper.
#[derive(Debug, Clone)]
enum Sent {
    Request(Ticket, Request),
    /// A fenced write of a leader.
    Write {
        epoch: i32,
    },
}

struct Node {
    machine: Leadership,
    session: i64,
    /// The session whose client receives the machine's requests: the last one reported to it.
    client: i64,
    connected: bool,
    frozen: bool,
    hung: bool,
    to_server: VecDeque<Sent>,
    /// Left over from a broken connection; applied before any request of the next one.
    late: VecDeque<Sent>,
    from_server: VecDeque<Event>,
    mailbox: VecDeque<Event>,
    /// Sent and not answered yet.
    outstanding: BTreeMap<Ticket, Request>,
    watches: BTreeMap<WatchTarget, (Ticket, String)>,
    /// The watch on `/leading`.
    beats: Option<Ticket>,
    highest: i32,
    /// It has led, and has not learned of a successor since then.
    leads_on: bool,
}

struct World {
    now: Millis,
    server: ZooKeeper,
    nodes: Vec<Node>,
    /// The node that claimed each epoch, according to the server.
    claims: BTreeMap<i32, (usize, Uuid)>,
    /// Epochs of applied writes, in order.
    committed: Vec<i32>,
    operator: Operator,
    policy: Policy,
    /// A session was ended from outside, without its leader's knowledge.
    robbed: bool,
}

impl World {
    fn new(strategy: Strategy, policy: Policy, operator: Operator) -> Self {
        let node = |n: usize| Node {
            machine: Leadership::new(Config {
                node: NodeId::new(format!("n{n}")).unwrap(),
                strategy,
                policy,
                identity: Uuid::from_u128(n as u128),
                seed: Uuid::from_u128(n as u128),
            }),
            session: 0,
            client: 0,
            connected: false,
            frozen: false,
            hung: false,
            to_server: VecDeque::new(),
            late: VecDeque::new(),
            from_server: VecDeque::new(),
            mailbox: VecDeque::new(),
            outstanding: BTreeMap::new(),
            watches: BTreeMap::new(),
            beats: None,
            highest: 0,
            leads_on: false,
        };
        Self {
            now: Millis(0),
            server: ZooKeeper::new(),
            nodes: (0..NODES).map(node).collect(),
            claims: BTreeMap::new(),
            committed: Vec::new(),
            operator,
            policy,
            robbed: false,
        }
    }

    fn step(&mut self, n: usize, step: Step) {
        let Node { frozen, hung, .. } = self.nodes[n];
        match step {
            Step::Run(_) | Step::Ping if frozen => {}
            Step::Receive | Step::Handle | Step::Tick | Step::Leave | Step::Stand if frozen || hung => {}
            Step::Run(times) => {
                for _ in 0..times {
                    let steps = [Step::Ping, Step::Serve, Step::Receive, Step::Handle, Step::Handle];
                    steps.into_iter().for_each(|step| self.step(n, step));
                }
            }
            Step::Freeze => self.nodes[n].frozen = true,
            Step::Hang => self.nodes[n].hung = true,
            Step::Thaw => (self.nodes[n].frozen, self.nodes[n].hung) = (false, false),
            Step::Serve => self.serve(n),
            Step::Receive => {
                let node = &mut self.nodes[n];
                let received = node.from_server.pop_front();
                node.mailbox.extend(received);
            }
            Step::Handle => {
                if let Some(event) = self.nodes[n].mailbox.pop_front() {
                    self.handle(n, event);
                }
            }
            Step::Tick => self.handle(n, Event::Tick),
            Step::Ping => {
                if self.nodes[n].connected {
                    self.server.ping(self.nodes[n].session);
                }
            }
            Step::Advance(ms) => {
                self.now = self.now + Duration::from_millis(ms.into());
                self.server.advance(self.now);
            }
            Step::Cut { late } => self.cut(n, late),
            Step::Reconnect => self.reconnect(n),
            Step::EndSession => {
                self.robbed = true;
                self.server.end(self.nodes[n].session);
            }
            Step::Write => {
                let node = &mut self.nodes[n];
                let sends = node.connected && node.client == node.session && !node.frozen && !node.hung;
                if sends && node.machine.may_act(self.now) {
                    let epoch = node.machine.term().expect("a leader that may act has a term").epoch();
                    node.to_server.push_back(Sent::Write { epoch });
                }
            }
            Step::Leave => self.handle(n, Event::StepDown),
            Step::Stand => self.handle(n, Event::Stand),
            Step::DeleteCandidate => {
                let candidate = self.candidates().into_iter().next();
                candidate.iter().for_each(|path| self.server.remove(path));
            }
            Step::DeleteEpoch => self.server.remove(path::EPOCH),
        }
        self.fire_watches();
        self.invariants();
    }

    fn handle(&mut self, n: usize, event: Event) {
        let learns = self.shows_a_successor(n, &event);
        let node = &mut self.nodes[n];
        node.leads_on &= !learns;
        if let Event::Reply(ticket, _) = &event {
            node.outstanding.remove(ticket);
        }
        if let Event::Connected { session, .. } = &event {
            node.client = *session;
        }
        let ended = matches!(event, Event::Expired { .. });
        let mut effects = Vec::new();
        node.machine.handle(self.now, event, &mut effects);
        if self.policy == Policy::AtMostOne {
            assert!(!ended || node.machine.term().is_none(), "no term outlives its session");
        }
        node.leads_on |= matches!(node.machine.state(), LeadershipState::Active(_));
        for effect in effects {
            let Effect::Send(ticket, request) = effect else { continue };
            if node.connected && node.client == node.session {
                node.outstanding.insert(ticket, request.clone());
                node.to_server.push_back(Sent::Request(ticket, request));
            } else {
                // The disconnection event is still in its mailbox.
                node.mailbox.push_back(Event::Reply(ticket, unknown(&request)));
            }
        }
        if let Some(term) = node.machine.term() {
            let (claimer, token) = self.claims[&term.epoch()];
            assert_eq!((claimer, token), (n, term.token()), "every term belongs to its claim");
            assert!(term.epoch() >= node.highest, "the epochs of one node never decrease");
            node.highest = term.epoch();
        }
    }

    /// Whether a node learns from an event that another node has claimed, or is asked to stop.
    fn shows_a_successor(&self, n: usize, event: &Event) -> bool {
        match event {
            Event::Reply(_, Reply::Read(Outcome::Applied(found))) => {
                let claim = found.epoch.and_then(|seen| self.claims.get(&seen.version));
                claim.is_some_and(|(claimer, _)| *claimer != n)
            }
            Event::Reply(_, Reply::Beaten(Outcome::Rejected(rejection))) => rejection.at == 0,
            Event::FencedOut { .. } | Event::StepDown => true,
            Event::Reply(..)
            | Event::Connected { .. }
            | Event::Disconnected { .. }
            | Event::Expired { .. }
            | Event::Trust { .. }
            | Event::Stand
            | Event::Tick => false,
        }
    }

    fn serve(&mut self, n: usize) {
        let session = self.nodes[n].session;
        if !self.nodes[n].connected {
            return;
        }
        if !self.server.is_alive(session) {
            return self.cut(n, false);
        }
        if let Some(sent) = self.nodes[n].to_server.pop_front() {
            self.server.ping(session);
            let reply = self.apply(n, session, &sent);
            self.nodes[n].from_server.push_back(reply);
        }
    }

    fn apply(&mut self, n: usize, session: i64, sent: &Sent) -> Event {
        match sent {
            Sent::Request(ticket, request) => {
                match request {
                    Request::Campaign(campaign::Request::Watch { target, path }) => {
                        self.nodes[n].watches.insert(*target, (*ticket, path.clone()));
                    }
                    Request::WatchBeats => self.nodes[n].beats = Some(*ticket),
                    Request::Campaign(_)
                    | Request::Read { .. }
                    | Request::Claim(_)
                    | Request::Beat { .. } => {}
                }
                let reply = answer(&mut self.server, session, request);
                if let (Request::Claim(claim), Reply::Claimed(Outcome::Applied(()))) = (request, &reply) {
                    let before = self.claims.insert(claim.epoch(), (n, claim.token()));
                    assert_eq!(before, None, "epoch {} was claimed a second time", claim.epoch());
                }
                Event::Reply(*ticket, reply)
            }
            Sent::Write { epoch } => {
                let fence = Op::Check { path: path::EPOCH.to_owned(), version: *epoch };
                match self.server.commit(session, &[fence]) {
                    Outcome::Applied(()) => {
                        assert_eq!(self.claims[epoch].0, n, "a stale leader's write was applied");
                        self.committed.push(*epoch);
                        Event::Tick
                    }
                    Outcome::Rejected(_) | Outcome::Unknown => Event::FencedOut { epoch: *epoch },
                }
            }
        }
    }

    fn cut(&mut self, n: usize, late: bool) {
        let node = &mut self.nodes[n];
        if !node.connected {
            return;
        }
        node.connected = false;
        node.watches.clear();
        node.beats = None;
        node.from_server.clear();
        let lost = std::mem::take(&mut node.to_server);
        if late {
            node.late.extend(lost);
        }
        node.mailbox.push_back(Event::Disconnected { session: node.session });
        // Already in a mailbox, or unknown.
        let answered: Vec<_> = node
            .mailbox
            .iter()
            .filter_map(|event| if let Event::Reply(ticket, _) = event { Some(*ticket) } else { None })
            .collect();
        let outstanding = std::mem::take(&mut node.outstanding);
        for (ticket, request) in outstanding {
            if !answered.contains(&ticket) {
                node.mailbox.push_back(Event::Reply(ticket, unknown(&request)));
            }
        }
    }

    fn reconnect(&mut self, n: usize) {
        if self.nodes[n].connected {
            return;
        }
        let session = self.nodes[n].session;
        let alive = self.server.is_alive(session);
        for sent in std::mem::take(&mut self.nodes[n].late) {
            if alive {
                self.apply(n, session, &sent);
            }
        }
        let node = &mut self.nodes[n];
        if alive {
            self.server.ping(session);
        } else {
            node.mailbox.push_back(Event::Expired { session });
            node.session = self.server.session(TIMEOUT);
        }
        node.connected = true;
        node.mailbox.push_back(connected(node.session));
    }

    fn candidates(&self) -> Vec<String> {
        let znodes = self.server.znodes().iter();
        znodes.filter(|(_, znode)| znode.owner != 0).map(|(path, _)| path.clone()).collect()
    }

    fn fire_watches(&mut self) {
        let changed = std::mem::take(&mut self.server.changed);
        for node in &mut self.nodes {
            let (fired, kept) = std::mem::take(&mut node.watches)
                .into_iter()
                .partition::<BTreeMap<_, _>, _>(|(_, (_, path))| changed.contains(path));
            node.watches = kept;
            for (ticket, _) in fired.into_values() {
                node.from_server.push_back(Event::Reply(ticket, Reply::Campaign(campaign::Reply::Changed)));
            }
            let beaten = changed.iter().any(|path| path == path::LEADING);
            if let Some(ticket) = node.beats.take_if(|_| beaten) {
                node.from_server.push_back(Event::Reply(ticket, Reply::Changed));
            }
        }
    }

    fn invariants(&self) {
        self.invariant_epochs_of_commits_increase();
        match self.policy {
            Policy::AtMostOne if self.operator == Operator::Idle && !self.robbed => {
                self.invariant_one_leader_acts();
            }
            // An operator, or a session that was ended, may cause two leaders.
            Policy::AtMostOne => {}
            Policy::AtLeastOne { .. } => self.invariant_a_leader_acts_until_it_learns_of_a_successor(),
        }
        self.invariant_one_create_is_outstanding();
    }

    /// S3, S4
    fn invariant_epochs_of_commits_increase(&self) {
        assert!(self.committed.is_sorted(), "{:?}", self.committed);
    }

    /// S5
    fn invariant_one_leader_acts(&self) {
        let acting = self.nodes.iter().filter(|node| node.machine.may_act(self.now));
        let epochs: Vec<_> = acting.map(|node| node.machine.term().map(Term::epoch)).collect();
        assert!(epochs.len() <= 1, "epochs {epochs:?} act at the same time");
    }

    /// The promise of `AtLeastOne`.
    fn invariant_a_leader_acts_until_it_learns_of_a_successor(&self) {
        for node in self.nodes.iter().filter(|node| node.leads_on) {
            assert!(node.machine.may_act(self.now), "{:?}", node.machine.state());
        }
    }

    fn invariant_one_create_is_outstanding(&self) {
        let is_create = |sent: &&Sent| match sent {
            Sent::Request(_, Request::Campaign(request)) => matches!(
                request,
                campaign::Request::CreateSequential { .. } | campaign::Request::CreateEphemeral { .. }
            ),
            Sent::Request(
                _,
                Request::Read { .. } | Request::Claim(_) | Request::Beat { .. } | Request::WatchBeats,
            )
            | Sent::Write { .. } => false,
        };
        for node in &self.nodes {
            assert!(node.to_server.iter().filter(is_create).count() <= 1);
        }
    }

    /// The network recovers and all nodes stand. Returns when one node has led for a second, or after 20 s.
    fn calm_down(&mut self, strategy: Strategy) {
        for n in 0..NODES {
            self.step(n, Step::Thaw);
            self.step(n, Step::Stand);
        }
        let mut settled = 0;
        for _ in 0..400 {
            for n in 0..NODES {
                let steps =
                    [Step::Reconnect, Step::Ping, Step::Serve, Step::Receive, Step::Handle, Step::Handle];
                steps.into_iter().for_each(|step| self.step(n, step));
                self.step(n, Step::Tick);
            }
            self.step(0, Step::Advance(50));
            settled = if self.unsettled(strategy).is_none() { settled + 1 } else { 0 };
            if settled == 20 {
                break;
            }
        }
    }

    /// Returns the states if they are not those of one leader and of nodes that wait for it, or the candidates if their number is wrong.
    fn unsettled(&self, strategy: Strategy) -> Option<String> {
        let mut states = self.nodes.iter().map(|node| node.machine.state()).collect::<Vec<_>>();
        states.sort_by_key(|state| !matches!(state, LeadershipState::Active(_)));
        let waits = |state: &LeadershipState| *state == LeadershipState::Inactive(Inactive::Standby);
        if !matches!(states[0], LeadershipState::Active(_)) || !states[1..].iter().all(waits) {
            return Some(format!("states {states:?}"));
        }
        let candidates = self.candidates();
        let expected = match strategy {
            Strategy::Queue => NODES,
            Strategy::Single => 1,
        };
        // If the last candidate's znode was deleted, the node notices when its predecessor ends.
        let vandalised =
            self.operator == Operator::DeletesCandidates && (1..expected).contains(&candidates.len());
        let leaked = !vandalised && candidates.len() != expected;
        leaked.then(|| format!("candidates {candidates:?}"))
    }
}

fn run(strategy: Strategy, policy: Policy, operator: Operator, steps: Vec<(usize, Step)>) {
    let mut world = World::new(strategy, policy, operator);
    for n in 0..NODES {
        world.step(n, Step::Reconnect);
    }
    for (n, step) in steps {
        world.step(n, step);
    }
    world.calm_down(strategy);
    assert_eq!(world.unsettled(strategy), None);
}

/// Found by the property below: the delete of a candidate that leaves arrives after another one has replaced it.
#[test]
fn a_late_delete_by_the_former_owner_of_the_leaders_znode_does_not_delete_its_successors() {
    let leaves = [(2, Step::Run(7)), (2, Step::Leave), (0, Step::Run(5)), (2, Step::Run(1))];
    let replaced =
        [(2, Step::Cut { late: true }), (0, Step::Advance(3_000)), (0, Step::Tick), (0, Step::Run(2))];
    let deletes = [(2, Step::Reconnect), (1, Step::Run(5))];
    let steps = leaves.into_iter().chain(replaced).chain(deletes).collect();
    run(Strategy::Single, Policy::AtMostOne, Operator::Idle, steps);
}

fn strategy(single: bool) -> Strategy {
    if single { Strategy::Single } else { Strategy::Queue }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(CASES))]

    #[test]
    fn two_nodes_never_lead_at_the_same_time(single: bool, steps in prop::collection::vec(step(Operator::Idle), 0..400)) {
        run(strategy(single), Policy::AtMostOne, Operator::Idle, steps);
    }

    #[test]
    fn with_at_least_one_a_leader_acts_until_it_learns_of_a_successor_and_its_stale_writes_are_rejected(
        single: bool,
        steps in prop::collection::vec(step(Operator::Idle), 0..400),
    ) {
        run(strategy(single), Policy::AtLeastOne { paused_at_most: None }, Operator::Idle, steps);
    }

    /// Two nodes may consider themselves leaders until the event arrives, but only one of them commits.
    #[test]
    fn deleted_candidates_do_not_break_the_fence(
        single: bool,
        steps in prop::collection::vec(step(Operator::DeletesCandidates), 0..400),
    ) {
        run(strategy(single), Policy::AtMostOne, Operator::DeletesCandidates, steps);
    }

    /// S4: also by a node that has not seen it. A leader is elected.
    #[test]
    fn no_epoch_is_repeated_after_the_znode_was_deleted(
        single: bool,
        steps in prop::collection::vec(step(Operator::DeletesEpoch), 0..400),
    ) {
        run(strategy(single), Policy::AtMostOne, Operator::DeletesEpoch, steps);
    }
}
