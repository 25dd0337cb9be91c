//! Jobs, assignments and their start data, for the tests of this folder.

use uuid::Uuid;

use super::Start;
use crate::job::{Assignment, JobRecord, Payload, Placement};
use crate::name::{JobId, Kind, Lane, WorkerId};
use crate::time::{Millis, WallMillis};

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
    JobRecord::new(Kind::new("sum").unwrap(), Payload::json(*b"{}").unwrap(), Uuid::nil(), WallMillis(0))
}

pub(super) fn assignment(attempt: u32) -> Assignment {
    Assignment::new(attempt, 3, WallMillis(0))
}

/// Creates the start of job `n`. Jobs with an odd number have a lane.
pub(super) fn start(n: usize) -> Start {
    let lane = (n % 2 == 1).then(|| Lane::new(format!("lane-{n}")).unwrap());
    let record = Box::new(JobRecord { placement: Placement { lane, ..Placement::default() }, ..record() });
    Start {
        job: job(n),
        assignment: assignment(1),
        assignment_version: 0,
        record,
        version: 5,
        asked: Millis(0),
        packed: None,
    }
}
