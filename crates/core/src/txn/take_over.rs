//! Moves an attempt that runs from one worker to another.
//!
//! The attempt stays open: attempt number, generation, lease, progress and the cancel flag are kept, and the record keeps its
//! content. Only the version of the record grows, so the attempt has a new fencing token.
//!
//! **Tokens cannot alias.** Each close and each move sets the record at the version that it read, and the record of an open job
//! is never deleted. So of all closes and moves of one token exactly one commits. The former worker, if it lives, is fenced as
//! by any close: its own close names the old version, and its beats and hand-backs name a deleted assignment.
//!
//! **The epoch is not checked**, because the caller is not a leader; this is the second exception to S3, after the close by a
//! worker. A stale leader can neither cause nor prevent a move. The leader's writes about the attempt (recovery, revocation,
//! quarantine) delete the old assignment or set the record, so one of the two is rejected. The new worker is alive and does not
//! drain (S14, S18), because its registration is checked at the version that was read.

use super::{Op, after, check_worker};
use crate::job::{Assignment, JobRecord};
use crate::name::{JobId, WorkerId};
use crate::path;
use crate::wire::encode;

/// Moves an attempt to another worker, whose registration has this version. Returns the new assignment, and the transaction.
///
/// After a lost reply, read the new assignment: it is there ⇒ moved, and [`Assignment::moved_from`] names the earlier token;
/// otherwise decide again.
#[must_use]
pub fn take_over(
    job: &JobId,
    from: WorkerId,
    (to, registration): (WorkerId, i32),
    (assignment, assignment_version): (&Assignment, i32),
    (record, version): (&JobRecord, i32),
) -> (Assignment, Vec<Op>) {
    let moved = Assignment { fencing_token: after(version), moved_from: Some(version), ..assignment.clone() };
    let ops = vec![
        check_worker(to, registration),
        Op::Set { path: path::record(job), data: encode(record), version },
        Op::Delete { path: path::assignment(from, job), version: Some(assignment_version) },
        Op::create(path::assignment(to, job), encode(&moved)),
    ];
    (moved, ops)
}
