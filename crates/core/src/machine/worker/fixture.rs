//! Jobs, assignments and their beginnings, for the tests of this folder.

use uuid::Uuid;

use super::Start;
use crate::job::{Assignment, JobRecord, JobState, Payload, Placement, Policy};
use crate::name::{JobId, Kind, Lane, WorkerId};
use crate::time::WallMillis;

pub(super) fn job(n: usize) -> JobId {
    JobId::new(format!("job-{n}")).unwrap()
}

pub(super) fn worker() -> WorkerId {
    WorkerId::new(Uuid::from_u128(7))
}

pub(super) fn result() -> Payload {
    Payload::json(*b"42").unwrap()
}

pub(super) fn record() -> JobRecord {
    JobRecord {
        kind: Kind::new("sum").unwrap(),
        payload: Payload::json(*b"{}").unwrap(),
        policy: Policy::default(),
        placement: Placement::default(),
        token: Uuid::nil(),
        submitted_at: WallMillis(0),
        generation: 1,
        attempts: 0,
        failures: 0,
        losses: 0,
        last: None,
        last_error: None,
        state: JobState::Open { not_before: None },
    }
}

pub(super) fn assignment(attempt: u32) -> Assignment {
    Assignment { attempt, epoch: 3, cancel: false, assigned_at: WallMillis(0) }
}

/// Every other one has a lane.
pub(super) fn start(n: usize) -> Start {
    let lane = (n % 2 == 1).then(|| Lane::new(format!("lane-{n}")).unwrap());
    let record = JobRecord { placement: Placement { lane, ..Placement::default() }, ..record() };
    Start { job: job(n), assignment: assignment(1), assignment_version: 0, record, version: 5 }
}
