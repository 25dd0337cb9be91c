//! Hand-written histories for the tests of the rules: one line of a test per event.

mod attempts;
mod calls;
mod groups;
mod jobs;
mod leaders;
mod schedules;
mod workers;

use std::time::Duration;

use bellwether_core::backoff::Backoff;
use bellwether_core::job::{Assignment, JobRecord, Payload, Placement, Policy};
use bellwether_core::name::{JobId, Kind, Lane, NodeId, WorkerId};
use bellwether_core::path;
use bellwether_core::time::WallMillis;
use bellwether_core::txn::{self, Lifetime, Op};
use uuid::Uuid;

use crate::history::event::{Event, EventKind, TxnOp};
use crate::history::truth::Truth;
use crate::history::{Bounds, Checker, Violation};

pub(super) const W1: WorkerId = WorkerId::new(Uuid::from_u128(1));
pub(super) const W2: WorkerId = WorkerId::new(Uuid::from_u128(2));

/// The session of the leader, which owns epoch 1.
pub(super) const LEADER: i64 = 0x10;
pub(super) const OTHER: i64 = 0x20;
const CLIENT: i64 = 0x30;

pub(super) const SESSION_END: u64 = 10_500;
const BOUNDS: Bounds = Bounds { session_timeout: Duration::from_secs(10), tick: Duration::from_millis(500) };

pub(super) struct Story {
    events: Vec<Event>,
    now: u64,
    zxid: i64,
    calls: u64,
    truth: Truth,
}

pub(super) fn session_of(worker: WorkerId) -> i64 {
    0x100 + i64::try_from(worker.uuid().as_u128()).expect("small")
}

fn job_id(job: &str) -> JobId {
    JobId::new(job).expect("a valid name")
}

pub(crate) fn kind() -> Kind {
    Kind::new("sum").expect("a valid name")
}

fn node_id(node: &str) -> NodeId {
    NodeId::new(node).expect("a valid name")
}

impl Story {
    pub(super) fn new() -> Self {
        let mut story = Self { events: vec![], now: 0, zxid: 0, calls: 0, truth: Truth::default() };
        let data = story.claim_data(LEADER, 1);
        let path = path::EPOCH.to_owned();
        let create = Op::Create { path: path.clone(), data: vec![], lifetime: Lifetime::Persistent };
        story.txn(LEADER, vec![create, Op::Set { path, data, version: 0 }]);
        story
    }

    /// Creates a story with W1 on node n1 and W2 on node n2.
    pub(super) fn with_workers() -> Self {
        let mut story = Self::new();
        story.register(W1, "n1");
        story.register(W2, "n2");
        story
    }

    pub(super) fn push(&mut self, what: EventKind) {
        self.now += 1;
        self.events.push(Event { at: self.now, what });
    }

    pub(super) fn pass(&mut self, millis: u64) {
        self.now += millis;
    }

    fn txn(&mut self, session: i64, ops: Vec<Op>) {
        self.commit(session, ops.into_iter().map(carried_out).collect());
    }

    fn commit(&mut self, session: i64, ops: Vec<TxnOp>) {
        self.zxid += 1;
        let mut flaws = vec![];
        self.truth.apply(self.zxid, session, &ops, &mut flaws);
        assert_eq!(flaws, Vec::<String>::new(), "the story is a consistent history");
        self.push(EventKind::Txn { zxid: self.zxid, session, ops });
    }

    fn record(&self, job: &str) -> (JobRecord, i32) {
        let znode = self.truth.record(&job_id(job)).expect("submitted before");
        (znode.record().expect("readable").clone(), znode.version)
    }

    pub(super) fn delete(&mut self, paths: &[&str]) {
        let delete = |path: &&str| TxnOp::Delete { path: (*path).to_owned() };
        self.commit(CLIENT, paths.iter().map(delete).collect());
    }

    fn violations(self) -> Vec<Violation> {
        let mut checker = Checker::new(BOUNDS);
        // Events are written and parsed, as with a recorder.
        let read = |event: &Event| Event::from_line(&event.to_line()).expect("written by this build");
        let mut violations: Vec<_> =
            self.events.iter().flat_map(|event| checker.observe(&read(event))).collect();
        violations.extend(checker.finish(self.now));
        violations
    }

    /// Asserts that neither rules with this id nor any safety rule finds a violation. Other liveness rules may find
    /// some.
    #[track_caller]
    pub(super) fn assert_keeps(self, id: &str) {
        let mut violations = self.violations();
        violations.retain(|violation| violation.id == id || !violation.id.starts_with('L'));
        assert!(violations.is_empty(), "{id} should hold: {violations:#?}");
    }

    /// Returns whether a rule with this id reports a violation that contains this text; to select one of several rules.
    pub(super) fn finds(self, id: &str, what: &str) -> bool {
        self.violations().iter().any(|violation| violation.id == id && violation.what.contains(what))
    }

    #[track_caller]
    pub(super) fn assert_breaks(self, id: &str) {
        let violations = self.violations();
        assert!(violations.iter().any(|violation| violation.id == id), "{id} should break: {violations:#?}");
    }
}

fn fresh(lane: Option<Lane>) -> JobRecord {
    JobRecord {
        policy: Policy {
            backoff: Backoff { initial: Duration::from_millis(100), max: Duration::from_secs(1) },
            ..Policy::default()
        },
        placement: Placement { lane, ..Placement::default() },
        ..JobRecord::new(kind(), Payload::json(*b"{}").expect("small"), Uuid::from_u128(1), WallMillis(0))
    }
}

fn assignment(attempt: u32) -> Assignment {
    Assignment::new(attempt, 1, WallMillis(0))
}

fn fenced(epoch: Option<i32>, ops: Vec<Op>) -> Vec<Op> {
    epoch.map(txn::fence).into_iter().chain(ops).collect()
}

fn carried_out(op: Op) -> TxnOp {
    match op {
        Op::Check { path, version } => TxnOp::Check { path, version },
        Op::Create { path, data, lifetime } => {
            TxnOp::Create { path, data: data.into(), ephemeral: lifetime == Lifetime::Ephemeral }
        }
        Op::Set { path, data, version } => TxnOp::Set { path, data: data.into(), version: version + 1 },
        Op::Delete { path, version: _ } => TxnOp::Delete { path },
    }
}
