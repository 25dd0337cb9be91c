//! Closes an attempt that the caller does not run: the caller is a leader whose worker is lost or hangs, or a worker
//! that was assigned an attempt number which is not the one under way.

use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::{Op, close, without_part};
use crate::job::{Assignment, Attempt, Ending, JobRecord};
use crate::name::{JobId, WorkerId};
use crate::time::WallMillis;

/// Closes the attempt that is under way: as `ending`, or as cancelled if the assignment's cancel flag is set (S12).
/// The attempt number is the record's next one, regardless of the assignment: attempt numbers have no gaps (S9).
/// Fenced by both versions, so that a concurrent renewal or cancel wins. The [`gone`](super::gone_part) parts of the
/// job's end are left out. The jitter of the backoff is derived from job and attempt, so that the jobs of one worker do
/// not return together. Returns the record as the transaction writes it, and the transaction.
#[must_use]
pub fn reclaim(
    job: &JobId,
    worker: WorkerId,
    (assignment, assignment_version): (&Assignment, i32),
    (record, version): (JobRecord, i32),
    ending: Ending,
    gone: &[String],
    at: WallMillis,
) -> (JobRecord, Vec<Op>) {
    let attempt = Attempt { number: record.attempts + 1, worker };
    let ending = if assignment.cancel { Ending::Cancelled } else { ending };
    let random = xxh3_64_with_seed(job.as_str().as_bytes(), u64::from(attempt.number));
    let (closed, next) = record.carry(assignment).close(attempt, ending, at, random);
    let mut ops = close(job, worker, version, Some(assignment_version), &closed, &next);
    gone.iter().for_each(|gone| without_part(job, &closed, gone, &mut ops));
    (closed, ops)
}
