//! Passes the events of a history to every rule.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

use bellwether_core::failover::Failover;
use bellwether_core::name::NodeId;
use bellwether_core::time::as_millis;

use super::event::{Call, Event, EventKind, Leading, Life};
use super::rules::{Predicate, RULES};
use super::truth::{Commit, Truth};

/// The violation id of a history that contradicts itself.
const FLAW: &str = "H";

/// The parameters of the liveness bounds.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// The session timeout of the nodes.
    pub session_timeout: Duration,
    /// ZooKeeper's `tickTime`.
    pub tick: Duration,
}

/// A broken invariant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// The invariant's id in `docs/invariants.md`; `H` if the history contradicts itself.
    pub id: &'static str,
    /// When it was detected.
    pub at: u64,
    /// The newest transaction at that time.
    pub zxid: i64,
    /// A description of the violation.
    pub what: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {} ms, transaction {:#x}: {}", self.id, self.at, self.zxid, self.what)
    }
}

/// Collects the violations that a rule finds.
pub(super) struct Found<'a> {
    id: &'static str,
    at: u64,
    zxid: i64,
    violations: &'a mut Vec<Violation>,
}

impl Found<'_> {
    pub(super) fn push(&mut self, what: impl Into<String>) {
        let Self { id, at, zxid, .. } = *self;
        self.violations.push(Violation { id, at, zxid, what: what.into() });
    }
}

/// A call that a client has made.
#[derive(Debug, Clone)]
pub(super) struct Invoked {
    pub(super) client: u32,
    pub(super) what: Call,
    pub(super) deadline: Option<u64>,
}

/// The state that rules can read, as it is after the event.
pub(super) struct World {
    pub(super) bounds: Bounds,
    pub(super) now: u64,
    pub(super) truth: Truth,
    pub(super) nodes: BTreeMap<NodeId, Life>,
    /// The nodes whose last report says that they lead, and the end of their trust if it is known.
    active: BTreeMap<NodeId, Option<u64>>,
    /// Calls without an answer, including the one that is being answered.
    pub(super) calls: BTreeMap<u64, Invoked>,
    /// Nodes whose election handles no messages.
    stalled: BTreeSet<NodeId>,
    /// Nodes that never lead, because their clocks are wrong.
    no_candidates: BTreeSet<NodeId>,
    /// Whether a client has purged records or is doing it.
    pub(super) purged: bool,
    /// When the last fault ended.
    pub(super) healed: Option<u64>,
}

impl World {
    /// Returns whether a process is running and not frozen. A process without events counts as running.
    pub(super) fn runs(&self, node: &NodeId) -> bool {
        match self.nodes.get(node) {
            Some(Life::Stopped | Life::Killed | Life::Failed | Life::Frozen) => false,
            None | Some(_) => true,
        }
    }

    /// Returns whether the election of a process handles its messages.
    pub(super) fn election_runs(&self, node: &NodeId) -> bool {
        self.runs(node) && !self.stalled.contains(node)
    }

    /// Returns whether every node that may lead was stopped and none was killed. Then the time of the next start is not
    /// bounded.
    pub(super) fn all_left(&self) -> bool {
        let mut candidates = self.nodes.iter().filter(|(node, _)| !self.no_candidates.contains(*node));
        !self.nodes.is_empty() && candidates.all(|(_, life)| *life == Life::Stopped)
    }

    /// Returns whether there is a running leader that may act. One whose election hangs may act until its trust ends.
    pub(super) fn is_led(&self) -> bool {
        let may_act = |until: &Option<u64>| until.is_none_or(|until| self.now < until);
        self.active.iter().any(|(node, until)| self.runs(node) && may_act(until))
    }

    /// Returns how long a candidate waits for a beat of the leader.
    pub(super) fn wait(&self) -> u64 {
        as_millis(Failover::default().wait)
    }

    /// Returns T + tick: the time after which the session of a vanished client has ended.
    pub(super) fn session_end(&self) -> u64 {
        as_millis(self.bounds.session_timeout + self.bounds.tick)
    }
}

/// One event, with its transaction decoded.
pub(super) struct Step<'a> {
    pub(super) event: &'a EventKind,
    pub(super) commit: Option<&'a Commit>,
}

/// Checks a history against the invariants, event by event.
pub struct Checker {
    world: World,
    rules: Vec<(&'static str, Box<dyn Predicate>)>,
}

impl fmt::Debug for Checker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Checker").field("zxid", &self.world.truth.zxid()).finish_non_exhaustive()
    }
}

impl Checker {
    /// Creates a checker of an empty history.
    #[must_use]
    pub fn new(bounds: Bounds) -> Self {
        let world = World {
            bounds,
            now: 0,
            truth: Truth::default(),
            nodes: BTreeMap::new(),
            active: BTreeMap::new(),
            calls: BTreeMap::new(),
            purged: false,
            stalled: BTreeSet::new(),
            no_candidates: BTreeSet::new(),
            healed: None,
        };
        Self { world, rules: RULES.iter().map(|rule| (rule.id, (rule.make)())).collect() }
    }

    /// Names the nodes that never lead, because their clocks are wrong.
    #[must_use]
    pub fn with_wrong_clocks(mut self, nodes: impl IntoIterator<Item = NodeId>) -> Self {
        self.world.no_candidates.extend(nodes);
        self
    }

    /// Returns the current state of the namespace.
    #[must_use]
    pub fn truth(&self) -> &Truth {
        &self.world.truth
    }

    /// Checks the next event. Returns the invariants that it breaks.
    pub fn observe(&mut self, event: &Event) -> Vec<Violation> {
        let mut flaws = Vec::new();
        let world = &mut self.world;
        if event.at < world.now {
            flaws.push(format!("an event at {} ms follows one at {} ms", event.at, world.now));
        }
        world.now = world.now.max(event.at);
        let mut commit = None;
        match &event.what {
            EventKind::Invoke { client, call, what, deadline } => {
                world.purged |= *what == Call::Purge;
                let invoked = Invoked { client: *client, what: what.clone(), deadline: *deadline };
                if world.calls.insert(*call, invoked).is_some() {
                    flaws.push(format!("call {call} was made twice"));
                }
            }
            EventKind::Return { call, .. } if !world.calls.contains_key(call) => {
                flaws.push(format!("call {call} was answered but never made"));
            }
            EventKind::Node { node, is } => {
                match is {
                    Life::Started | Life::Stopped | Life::Killed | Life::Failed => {
                        world.active.remove(node);
                        world.stalled.remove(node);
                    }
                    Life::Frozen | Life::Thawed => {}
                    Life::ElectionStalled => {
                        world.stalled.insert(node.clone());
                    }
                    Life::ElectionGoesOn => {
                        world.stalled.remove(node);
                    }
                }
                if !matches!(is, Life::ElectionStalled | Life::ElectionGoesOn) {
                    world.nodes.insert(node.clone(), *is);
                }
            }
            EventKind::Leadership { node, state: Leading::Active, until, .. } => {
                world.active.insert(node.clone(), *until);
            }
            EventKind::Leadership { node, state: Leading::Inactive | Leading::Paused, .. } => {
                world.active.remove(node);
            }
            EventKind::Txn { zxid, session, ops } => {
                commit = Some(world.truth.apply(*zxid, *session, ops, &mut flaws));
            }
            EventKind::Healed => world.healed = Some(world.now),
            EventKind::Return { .. }
            | EventKind::Run { .. }
            | EventKind::Refused { .. }
            | EventKind::Link { .. }
            | EventKind::LeaderWrites { .. }
            | EventKind::Evicted { .. } => {}
        }
        let step = Step { event: &event.what, commit: commit.as_ref() };
        let violations = self.ask(flaws, |rule, world, found| rule.observe(&step, world, found));
        if let EventKind::Return { call, .. } = &event.what {
            self.world.calls.remove(call);
        }
        violations
    }

    /// Ends the history at this time: everything that is still missing counts as missing.
    pub fn finish(mut self, at: u64) -> Vec<Violation> {
        self.world.now = self.world.now.max(at);
        self.ask(Vec::new(), |rule, world, found| rule.finish(world, found))
    }

    fn ask(
        &mut self,
        flaws: Vec<String>,
        mut ask: impl FnMut(&mut dyn Predicate, &World, &mut Found<'_>),
    ) -> Vec<Violation> {
        let (at, zxid) = (self.world.now, self.world.truth.zxid());
        let mut violations = Vec::new();
        let mut found = Found { id: FLAW, at, zxid, violations: &mut violations };
        flaws.into_iter().for_each(|flaw| found.push(flaw));
        for (id, rule) in &mut self.rules {
            found.id = id;
            ask(rule.as_mut(), &self.world, &mut found);
        }
        violations
    }
}
