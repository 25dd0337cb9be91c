//! Views of a namespace that a test makes up: for a program that shows them.
//!
//! The views can grow, so they have no public constructor. These functions return views with the given parts and
//! nothing else; all fields can be set.

use std::time::SystemTime;

use crate::client::{
    Depths, Event, KindSample, KindView, LeaderView, OldestQueued, Paused, RecordTotals, Setting, Snapshot,
    WorkerInfo, WorkerSettings, WorkerView, WrappingCount, WrongClock,
};
use crate::{JobId, Kind, NodeId, State, WorkerId};

/// Returns a snapshot of an empty namespace without a leader.
#[must_use]
pub fn snapshot(at: SystemTime) -> Snapshot {
    Snapshot {
        at,
        leader: None,
        workers: Vec::new(),
        kinds: Vec::new(),
        depths: Depths::default(),
        further_minutes: 0,
        orphaned: 0,
        record_totals: RecordTotals::default(),
        queued: KindSample::default(),
        running: KindSample::default(),
        oldest_queued: None,
        wrong_clocks: Vec::new(),
    }
}

/// Returns a leader that holds the epoch.
#[must_use]
pub fn leader(node: NodeId, epoch: i32, session: i64, since: SystemTime) -> LeaderView {
    LeaderView { node, epoch, session, since, standing: true, beat_at: None }
}

/// Returns the report of a client whose clock is ahead by these seconds.
#[must_use]
pub fn wrong_clock(host: &str, ahead: i64) -> WrongClock {
    WrongClock { host: host.to_owned(), node: None, session: 7, ahead }
}

/// Returns an idle worker with one slot and no handlers. Its host has the name of its node.
#[must_use]
pub fn worker(id: WorkerId, node: NodeId, started_at: SystemTime) -> WorkerView {
    let info = WorkerInfo {
        host: node.to_string(),
        node,
        kinds: Vec::new(),
        slots: 1,
        tags: Vec::new(),
        started_at,
        draining: false,
        settings: Setting { value: WorkerSettings::default(), changed: None },
    };
    WorkerView { id, info: Ok(info), assigned: 0, ended: WrappingCount::default(), shunned_until: None }
}

/// Returns the event of a job that reached this state before its first attempt.
#[must_use]
pub fn event(job: JobId, kind: Option<Kind>, state: State) -> Event {
    Event { job, kind, state, worker: None, attempt: 0, generation: 1, error: None, run_time: None }
}

/// Returns a job that has waited longest of all.
#[must_use]
pub fn oldest_queued(id: JobId, since: SystemTime) -> OldestQueued {
    OldestQueued { id, since, exact: true }
}

/// Returns a kind that no worker serves.
#[must_use]
pub fn kind(kind: Kind) -> KindView {
    KindView { kind, workers: Vec::new(), paused_on: Vec::new(), slots: 0, assigned: 0, paused: None }
}

/// Returns a pause by this operator.
#[must_use]
pub fn pause(by: impl Into<String>, since: SystemTime) -> Paused {
    Paused { by: Some(by.into()), note: None, since: Some(since) }
}
