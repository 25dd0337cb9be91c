//! The states, the steps between them, and the properties.

use std::collections::BTreeMap;
use std::time::Duration;

use bellwether_core::failover::Failover;
use bellwether_core::machine::election::campaign::{self, Strategy};
use bellwether_core::machine::election::leadership::{
    Effect, Event, LeadershipState, Policy, Reply, Request, Why,
};
use bellwether_core::outcome::Outcome;
use bellwether_core::path;
use bellwether_core::time::Millis;
use bellwether_core::txn::{self, Claim, ClaimStep, Seat};
use stateright::{Model, Property};

use super::node::{News, Node, Sent, is_grave, outlives_connection};
use super::rules;
use crate::explore::{Milestones, invariants, milestones};
use crate::shared_part::Part;
use crate::zookeeper::ZooKeeper;

const NODES: usize = 3;
const TIMEOUT: Duration = Duration::from_secs(2);
const PASS: Duration = Duration::from_secs(1);

/// The trust of a beat and the wait for one end at the first half of the session timeout.
pub(crate) const FAST: Failover = Failover {
    beat: Duration::from_millis(450),
    trust: Duration::from_millis(900),
    wait: Duration::from_secs(1),
};
/// No beat is due before the end of the model.
pub(crate) const SLOW: Failover = Failover {
    beat: Duration::from_secs(1_000),
    trust: Duration::from_secs(2_700),
    wait: Duration::from_secs(3_000),
};

/// How often each adversity may happen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(crate) struct Bounds {
    /// Number of nodes whose connections may break and whose sessions may expire.
    pub(crate) faulty: usize,
    /// Lost connections.
    pub(crate) cuts: u8,
    /// Halves of a session timeout that pass.
    pub(crate) passes: u8,
    /// Writes of a leader.
    pub(crate) writes: u8,
    /// Times that a node steps down; it campaigns again at any time.
    pub(crate) leaves: u8,
    /// Deletions of the first candidate's znode by an operator.
    pub(crate) strange: u8,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Start {
    /// No node has a session.
    Cold,
    /// The first node leads, the others wait.
    Led,
    /// The first node's claim is in flight, the others wait.
    Claiming,
}

pub(crate) struct Election {
    strategy: Strategy,
    policy: Policy,
    start: Start,
    /// The nodes that take part.
    nodes: usize,
    failover: Failover,
    bounds: Bounds,
    milestones: Milestones<Milestone>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct State {
    now: Millis,
    zk: Part<ZooKeeper>,
    nodes: [Part<Node>; NODES],
    /// The node and session that claimed each epoch, from the server's view.
    claims: Part<BTreeMap<i32, (usize, i64)>>,
    left: Bounds,
    vandalised: bool,
    broken: Option<Invariant>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Action {
    /// Connects: a first or new session, or the same one again.
    Connect(usize),
    /// ZooKeeper serves the node's next request.
    Serve(usize),
    /// The machine handles its next event.
    Hear(usize),
    /// The machine receives the timer event that it asked for.
    Tick(usize),
    /// The connection breaks, after all requests in flight were served, or before.
    Cut {
        node: usize,
        served: bool,
        news: News,
    },
    /// ZooKeeper serves a request of a broken connection.
    Late(usize),
    Expire(usize),
    Write(usize),
    StepDown(usize),
    Stand(usize),
    DeleteFirst,
    Pass,
}

invariants! { Election {
    Claims = "S4: epochs increase, and each is claimed by one session",
    Terms = "S4: a term belongs to the session that claimed its epoch",
    Fence = "S3: a leader's write is applied only in its own epoch",
    Candidate = "S5: only the first candidate claims, and only while its znode exists",
}}

milestones! { Election {
    Active = "a node leads",
    LeadOn = "a paused leader resumes in the same term",
    Lapsed = "a term ends because its trust has ended",
    ClaimedAgain = "a session whose term has ended claims again",
    ClaimedBefore = "a claim is rejected because another one was applied first",
    LateReply = "a claim's reply is handled after its trust has ended",
    StaleWrite = "a stale leader's write is rejected",
    Committed = "a leader's write is applied",
    Successor = "another leads after a session ended",
    Replaced = "a silent leader is replaced",
    ReplacedAgain = "the successor of a silent leader is replaced, too",
    StaleBeat = "a replaced leader's beat is rejected",
    Beats = "a replacement is rejected because the leader has beaten",
    Released = "a leader that stepped down is followed by another",
    Vandalised = "a candidate that an operator deleted cannot claim",
}}

impl Election {
    pub(crate) fn new(
        strategy: Strategy,
        start: Start,
        bounds: Bounds,
        expected: &'static [Milestone],
    ) -> Self {
        let (policy, milestones) = (Policy::AtMostOne, Milestones::expecting(expected));
        Self { strategy, policy, start, nodes: NODES, failover: SLOW, bounds, milestones }
    }

    /// With leaders that act while they are cut off.
    pub(crate) fn at_least_one(self) -> Self {
        Self { policy: Policy::AtLeastOne { paused_at_most: None }, ..self }
    }

    /// Without the last node.
    pub(crate) fn of_two(self) -> Self {
        Self { nodes: 2, ..self }
    }

    /// With beats that may lapse before a session does.
    pub(crate) fn fast(self) -> Self {
        Self { failover: FAST, ..self }
    }

    /// Runs all pending steps without faults.
    fn settle(&self, state: &mut State) {
        for n in 0..self.nodes {
            self.connect(state, n);
            while let Some(action) =
                [Action::Hear(n), Action::Serve(n)].into_iter().find(|a| enabled(state, a))
            {
                if self.start == Start::Claiming && state.nodes[n].claims() {
                    break;
                }
                *state = self.step(state, action);
            }
        }
    }

    fn step(&self, before: &State, action: Action) -> State {
        let mut state = before.clone();
        match action {
            Action::Connect(n) => self.connect(&mut state, n),
            Action::Serve(n) => {
                while let Some(joins) = state.nodes[n].joins_the_next() {
                    self.serve_next(&mut state, n);
                    if !joins {
                        break;
                    }
                }
            }
            Action::Hear(n) => {
                let event = state.nodes[n].mailbox.pop_front().expect("the mailbox is not empty");
                self.handle(&mut state, n, event);
            }
            Action::Tick(n) => self.handle(&mut state, n, Event::Tick),
            Action::Cut { node: n, served, news } => {
                if state.nodes[n].alive {
                    state.left.cuts -= 1;
                }
                while served && let Some(sent) = state.nodes[n].sent.pop_front() {
                    let reply = self.serve(&mut state, n, sent);
                    state.nodes[n].mailbox.extend(reply);
                }
                for event in state.nodes[n].cut(news) {
                    self.handle(&mut state, n, event);
                }
            }
            Action::Late(n) => {
                let sent = state.nodes[n].late.pop_front().expect("there is a late request");
                self.serve(&mut state, n, sent);
            }
            Action::Expire(n) => {
                let node = &mut state.nodes[n];
                node.alive = false;
                let session = node.session;
                let gone = state.zk.end_session(session);
                fire(&mut state, &gone);
            }
            Action::Write(n) => {
                state.left.writes -= 1;
                let epoch = state.nodes[n].machine.term().expect("a leader has a term").epoch();
                state.nodes[n].sent.push_back(Sent::Write(epoch));
            }
            Action::StepDown(n) => {
                state.left.leaves -= 1;
                self.handle(&mut state, n, Event::StepDown);
            }
            Action::Stand(n) => self.handle(&mut state, n, Event::Stand),
            Action::DeleteFirst => {
                state.left.strange -= 1;
                state.vandalised = true;
                let first = first_candidate(&state.zk).expect("there is a candidate").0;
                state.zk.znodes.remove(&first);
                fire(&mut state, &[first]);
            }
            Action::Pass => {
                state.left.passes -= 1;
                state.now = state.now + PASS;
            }
        }
        state
    }

    fn connect(&self, state: &mut State, n: usize) {
        let now = state.now;
        let node = &mut *state.nodes[n];
        let over = node.session;
        if !node.alive {
            node.session += if over == 0 { 1 + i64::try_from(n).expect("there are few nodes") } else { 10 };
        }
        (node.up, node.alive, node.heard) = (true, true, now);
        node.late.retain(outlives_connection);
        let session = node.session;
        if over != 0 && over != session {
            self.handle(state, n, Event::Expired { session: over });
        }
        self.handle(state, n, Event::Connected { session, timeout: TIMEOUT, failover: self.failover });
    }

    /// Serves a request. Its reply stays in flight if it could have another effect later.
    fn serve_next(&self, state: &mut State, n: usize) {
        let now = state.now;
        let node = &mut *state.nodes[n];
        node.heard = now;
        let sent = node.sent.pop_front().expect("a request was sent");
        let stays =
            !node.mailbox.is_empty() || matches!(&sent, Sent::Request(_, request) if is_grave(request));
        let Some(reply) = self.serve(state, n, sent) else { return };
        if stays {
            state.nodes[n].mailbox.push_back(reply);
        } else {
            self.handle(state, n, reply);
        }
    }

    fn handle(&self, state: &mut State, n: usize, event: Event) {
        let now = state.now;
        let learns = shows_a_successor(state, n, &event);
        let node = &mut *state.nodes[n];
        let claimed = matches!(event, Event::Reply(_, Reply::Claimed(Outcome::Applied(()))));
        let before = node.machine.state();
        let mut effects = Vec::new();
        node.machine.handle(now, event, &mut effects);
        node.handled = now;
        node.leads_on = matches!(self.policy, Policy::AtLeastOne { .. })
            && (matches!(node.machine.state(), LeadershipState::Active(_)) || node.leads_on && !learns);
        let mut unsent = Vec::new();
        for effect in effects {
            match effect {
                Effect::Send(ticket, request) => {
                    if let Request::Claim(_) = request
                        && let Some((_, session)) = state.claims.values().last()
                        && *session == node.session
                    {
                        self.note(Milestone::ClaimedAgain);
                    }
                    unsent.extend(node.send(ticket, request));
                }
                Effect::Lost { why: Why::TrustLapsed, .. } => self.note(Milestone::Lapsed),
                Effect::Tell(_) | Effect::Lost { .. } | Effect::Refused(_) | Effect::EpochsUsedUp => {}
            }
        }
        match (before, node.machine.state()) {
            (LeadershipState::Paused { .. }, LeadershipState::Active(_)) => self.note(Milestone::LeadOn),
            (LeadershipState::Inactive(_), LeadershipState::Active(_)) => {
                self.note(Milestone::Active);
            }
            (_, LeadershipState::Inactive(_)) if claimed => self.note(Milestone::LateReply),
            _ => {}
        }
        if let Some(term) = node.machine.term()
            && state.claims.get(&term.epoch()) != Some(&(n, term.session()))
        {
            state.broken.get_or_insert(Invariant::Terms);
        }
        for event in unsent {
            self.handle(state, n, event);
        }
    }

    fn serve(&self, state: &mut State, n: usize, sent: Sent) -> Option<Event> {
        let session = state.nodes[n].session;
        match sent {
            Sent::Write(epoch) => match state.zk.commit(session, &[txn::fence(epoch)]) {
                Outcome::Applied(()) => {
                    self.note(Milestone::Committed);
                    let (present, (claimer, _)) =
                        state.claims.last_key_value().expect("an epoch was claimed");
                    if (*present, *claimer) != (epoch, n) {
                        state.broken.get_or_insert(Invariant::Fence);
                    }
                    None
                }
                Outcome::Rejected(_) | Outcome::Unknown => {
                    self.note(Milestone::StaleWrite);
                    Some(Event::FencedOut { epoch })
                }
            },
            Sent::Request(ticket, request) => {
                let first = first_candidate(&state.zk);
                let (reply, changed) = rules::serve(&mut state.zk, session, &request);
                match (&request, &reply) {
                    (Request::Claim(claim), Reply::Claimed(outcome)) => {
                        let first = first.is_some_and(|(path, owner)| match claim.seat() {
                            Seat::First { candidate } => path == *candidate && owner == session,
                            Seat::Queued { silent, .. } => silent.first() == Some(&path),
                            Seat::Replacement => path == path::LEADER,
                        });
                        match outcome {
                            Outcome::Applied(()) => self.claimed(state, n, session, claim, first),
                            Outcome::Rejected(rejection) => self.note(match claim.step(rejection.at) {
                                ClaimStep::RaiseEpoch | ClaimStep::ReplaceSilent => Milestone::ClaimedBefore,
                                ClaimStep::Beat => Milestone::Beats,
                                ClaimStep::CheckCandidate => Milestone::Vandalised,
                            }),
                            Outcome::Unknown => {}
                        }
                    }
                    (Request::Beat { .. }, Reply::Beaten(Outcome::Rejected(_))) => {
                        self.note(Milestone::StaleBeat);
                    }
                    (Request::WatchBeats, _) => {
                        // Its reply has no effect.
                        state.nodes[n].beats = Some(ticket);
                        return None;
                    }
                    (Request::Campaign(campaign::Request::Watch { target, path }), _) => {
                        state.nodes[n].watches.insert(*target, (ticket, path.clone()));
                    }
                    _ => {}
                }
                fire(state, &changed);
                Some(Event::Reply(ticket, reply))
            }
        }
    }

    fn claimed(&self, state: &mut State, n: usize, session: i64, claim: &Claim, first: bool) {
        let epoch = claim.epoch();
        if *claim.seat() != claim.seat().after() {
            self.note(Milestone::Replaced);
            if state.claims.len() > 1 {
                self.note(Milestone::ReplacedAgain);
            }
        }
        let highest = state.claims.last_key_value().map_or(0, |(epoch, _)| *epoch);
        let stands_at = rules::sighting(&state.zk).map(|seen| seen.version);
        if epoch <= highest || stands_at != Some(epoch) {
            state.broken.get_or_insert(Invariant::Claims);
        }
        if !first {
            state.broken.get_or_insert(Invariant::Candidate);
        }
        if state.claims.values().any(|(claimer, _)| *claimer != n) {
            self.note(if state.nodes[..self.nodes].iter().all(|node| node.alive) {
                Milestone::Released
            } else {
                Milestone::Successor
            });
        }
        state.claims.insert(epoch, (n, session));
    }
}

/// Returns the lowest candidate and its session.
fn first_candidate(zk: &ZooKeeper) -> Option<(String, i64)> {
    if let Some(leader) = zk.znodes.get(path::LEADER) {
        return Some((path::LEADER.to_owned(), leader.owner));
    }
    let candidates = zk.names(path::ELECTION);
    let first =
        candidates.min_by_key(|(name, _)| name.rsplit_once('-').map(|(_, sequence)| sequence.to_owned()));
    first.map(|(name, znode)| (path::candidate(name), znode.owner))
}

fn fire(state: &mut State, changed: &[String]) {
    for node in &mut state.nodes {
        let (fired, kept) = std::mem::take(&mut node.watches)
            .into_iter()
            .partition::<BTreeMap<_, _>, _>(|(_, (_, path))| changed.contains(path));
        node.watches = kept;
        for (ticket, _) in fired.into_values() {
            node.mailbox.push_back(Event::Reply(ticket, Reply::Campaign(campaign::Reply::Changed)));
        }
        if changed.iter().any(|path| path == path::LEADING)
            && let Some(ticket) = node.beats.take()
        {
            node.mailbox.push_back(Event::Reply(ticket, Reply::Changed));
        }
    }
}

fn enabled(state: &State, action: &Action) -> bool {
    let leads = |node: &Node| node.machine.term().is_some();
    match action {
        Action::Connect(n) => !state.nodes[*n].up,
        Action::Serve(n) => state.nodes[*n].up && state.nodes[*n].alive && !state.nodes[*n].sent.is_empty(),
        Action::Hear(n) => !state.nodes[*n].mailbox.is_empty(),
        Action::Tick(n) => state.nodes[*n].machine.next_wake().is_some_and(|at| at <= state.now),
        Action::Cut { node, served, news } => {
            let (at, node) = (*node, &*state.nodes[*node]);
            let may = if node.alive { at < state.left.faulty && state.left.cuts > 0 } else { !served };
            node.up && may && (!served || !node.sent.is_empty()) && (*news == News::First || node.awaits())
        }
        Action::Late(n) => {
            let node = &state.nodes[*n];
            node.late.front().is_some_and(|sent| outlives_connection(sent) || (node.alive && !node.up))
        }
        Action::Expire(n) => {
            *n < state.left.faulty
                && state.nodes[*n].alive
                && state.now.since(state.nodes[*n].heard) >= TIMEOUT
        }
        Action::Write(n) => state.left.writes > 0 && leads(&state.nodes[*n]) && state.nodes[*n].up,
        Action::StepDown(n) => state.left.leaves > 0 && leads(&state.nodes[*n]),
        Action::Stand(n) => {
            let out =
                LeadershipState::Inactive(bellwether_core::machine::election::leadership::Inactive::Idle);
            state.nodes[*n].machine.state() == out && state.nodes[*n].session != 0
        }
        Action::DeleteFirst => state.left.strange > 0 && first_candidate(&state.zk).is_some(),
        Action::Pass => state.left.passes > 0,
    }
}

impl Model for Election {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let parents = [path::ELECTION, path::EPOCH, path::LEADING].map(str::to_owned);
        let mut state = State {
            now: Millis(0),
            zk: Part::new(ZooKeeper::with(parents)),
            nodes: std::array::from_fn(|n| Part::new(Node::new(n, self.strategy, self.policy))),
            claims: Part::new(BTreeMap::new()),
            left: self.bounds,
            vandalised: false,
            broken: None,
        };
        match self.start {
            Start::Cold => {}
            Start::Led | Start::Claiming => self.settle(&mut state),
        }
        vec![state]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        if state.broken.is_some() {
            return;
        }
        for n in 0..self.nodes {
            let cuts = [(false, News::First), (false, News::Last), (true, News::First), (true, News::Last)];
            let cuts = cuts.map(|(served, news)| Action::Cut { node: n, served, news });
            let others = [
                Action::Connect(n),
                Action::Serve(n),
                Action::Hear(n),
                Action::Tick(n),
                Action::Late(n),
                Action::Expire(n),
                Action::Write(n),
                Action::StepDown(n),
                Action::Stand(n),
            ];
            actions.extend(cuts.into_iter().chain(others).filter(|action| enabled(state, action)));
        }
        actions
            .extend([Action::DeleteFirst, Action::Pass].into_iter().filter(|action| enabled(state, action)));
    }

    fn next_state(&self, state: &State, action: Action) -> Option<State> {
        Some(self.step(state, action))
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let mut properties = invariants();
        properties.extend([
            Property::<Self>::always(
                "S5: two nodes do not act as leader at the same time",
                |model, state| {
                    let acting = state.nodes.iter().filter(|node| node.machine.may_act(state.now));
                    model.policy != Policy::AtMostOne || state.vandalised || acting.count() <= 1
                },
            ),
            Property::<Self>::always("a leader acts until it learns of a successor", |_, state| {
                state.nodes.iter().all(|node| !node.leads_on || node.machine.may_act(state.now))
            }),
            Property::<Self>::always(
                "S5: a leader that has noticed its lost connection does not act",
                |model, state| {
                    state.nodes.iter().all(|node| {
                        model.policy != Policy::AtMostOne
                            || !matches!(node.machine.state(), LeadershipState::Paused { .. })
                            || !node.machine.may_act(state.now)
                    })
                },
            ),
            Property::<Self>::always("L5: a term is never kept beyond its trust", |_, state| {
                state.nodes.iter().all(|node| {
                    let Some(until) = node.machine.term_until() else { return true };
                    node.handled < until && node.machine.next_wake().is_some_and(|wake| wake <= until)
                })
            }),
        ]);
        properties.extend(self.milestones());
        properties
    }
}

/// Whether a node learns from an event that another node has claimed, or is asked to stop.
fn shows_a_successor(state: &State, n: usize, event: &Event) -> bool {
    match event {
        Event::Reply(_, Reply::Read(Outcome::Applied(found))) => {
            let claim = found.epoch.and_then(|seen| state.claims.get(&seen.version));
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
