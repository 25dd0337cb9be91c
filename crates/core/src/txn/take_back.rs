//! Closing an attempt by who does not run it: a leader whose worker is lost or hangs, or a worker that was given another
//! attempt than the record has under way.

use super::{Op, close, without_part};
use crate::job::{Assignment, Attempt, Ending, JobRecord};
use crate::name::{JobId, WorkerId};
use crate::time::WallMillis;

/// Closes the attempt that a job has under way: as `ending`, or as cancelled if its assignment says so (S12). The attempt is
/// the record's next, whatever the assignment says: attempts have no gaps (S9). Fenced by both versions, so that a renewal
/// or a cancel that comes meanwhile wins. The parts of the job's end that are [`gone`](super::gone_part) are left out.
/// Returns the record as the transaction leaves it, and the transaction.
#[must_use]
pub fn take_back(
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
    let (closed, next) = record.carry(assignment).close(attempt, ending, at, 0);
    let mut ops = close(job, worker, version, Some(assignment_version), &closed, &next);
    gone.iter().for_each(|gone| without_part(&closed, gone, &mut ops));
    (closed, ops)
}
