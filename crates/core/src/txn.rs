//! Every transaction that changes a namespace, as data.
//!
//! A job's open state is told by the one place that holds its entry (queue, delayed, an inbox), so every move
//! is one multi that takes it from one place and puts it into another. That is what makes a lost reply
//! harmless: at most one of two competing moves can commit, because each begins by removing, or by versioning,
//! what the other needs. Tokens cannot alias: a znode's version only grows while the znode lives, and no
//! record is deleted while its job is open.
//!
//! | transaction | fenced by | if the reply is lost |
//! | --- | --- | --- |
//! | [`submit`] | the record's absence | read the record: our token in it ⇒ ours; absent ⇒ send again; foreign ⇒ duplicate |
//! | [`assign`] | epoch, worker's version, the queue entry | entry still queued ⇒ pending again; gone ⇒ the inbox tells |
//! | [`close`] | the record's version | read the record: closed by this attempt ⇒ ours; moved on ⇒ zombie, drop |
//! | [`promote`] | epoch, the delayed entry | list the minute again |
//! | [`cancel`], [`flag_cancel`], [`reopen`] | the record's or assignment's version | read it again and decide anew |
//! | [`register`] | the worker id's uniqueness | read the ephemeral: owned by our session ⇒ ours |
//! | [`register_parents`] | nothing: making them twice is refused | the next registration tells |
//! | [`retire`] | an empty inbox | absent ⇒ done |
//! | [`claim`](Claim::ops) | the candidate, the epoch | read `/epoch`: our token in it ⇒ ours; else decide again |
//! | [`discard`] | the record's version, or its absence | read the inbox again |

use crate::job::{Assignment, Attempt, Ending, JobRecord, Next, QueueEntry};
use crate::name::{JobId, WorkerId};
use crate::path;
use crate::time::WallMillis;
use crate::wire::encode;
use crate::worker::WorkerInfo;

mod batch;
mod claim;

pub use batch::{Batch, Locus};
pub use claim::Claim;

/// How long a znode lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lifetime {
    /// Until it is deleted.
    Persistent,
    /// Until the session that created it ends.
    Ephemeral,
}

/// One operation of a multi.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Op {
    /// Fails unless the znode has this version.
    Check {
        /// Which znode.
        path: String,
        /// Its version.
        version: i32,
    },
    /// Fails if the znode is there.
    Create {
        /// Which znode.
        path: String,
        /// Its data.
        data: Vec<u8>,
        /// How long it lives.
        lifetime: Lifetime,
    },
    /// Fails unless the znode has this version.
    Set {
        /// Which znode.
        path: String,
        /// Its new data.
        data: Vec<u8>,
        /// The version to replace.
        version: i32,
    },
    /// Fails unless the znode is there, childless, and has this version if one is given.
    Delete {
        /// Which znode.
        path: String,
        /// The version to delete.
        version: Option<i32>,
    },
}

impl Op {
    /// The znode that it is about.
    #[must_use]
    pub fn path(&self) -> &str {
        match self {
            Self::Check { path, .. }
            | Self::Create { path, .. }
            | Self::Set { path, .. }
            | Self::Delete { path, .. } => path,
        }
    }

    /// About how many bytes it takes on the wire.
    #[must_use]
    pub fn bytes(&self) -> usize {
        // A multi header, a length each for path and data, version or flags, one open ACL.
        const OVERHEAD: usize = 64;
        let data = match self {
            Self::Create { data, .. } | Self::Set { data, .. } => data.len(),
            Self::Check { .. } | Self::Delete { .. } => 0,
        };
        OVERHEAD + self.path().len() + data
    }

    fn create(path: String, data: Vec<u8>) -> Self {
        Self::Create { path, data, lifetime: Lifetime::Persistent }
    }

    fn delete(path: String) -> Self {
        Self::Delete { path, version: None }
    }
}

/// The first operation of every leader's multi: nothing of it happens once another leader has claimed (S3).
#[must_use]
pub fn fence(epoch: i32) -> Op {
    Op::Check { path: path::EPOCH.to_owned(), version: epoch }
}

/// Stands before the assignments to a worker: none is made once it has left or begun to drain.
#[must_use]
pub fn check_worker(worker: WorkerId, version: i32) -> Op {
    Op::Check { path: path::worker(worker), version }
}

/// Makes a job exist, queued.
#[must_use]
pub fn submit(job: &JobId, record: &JobRecord) -> Vec<Op> {
    vec![
        Op::create(path::record(job), encode(record)),
        Op::create(path::queue_entry(job), encode(&record.entry())),
    ]
}

/// Moves a job from the queue to a worker's inbox. The record is not touched: its version stays the token.
#[must_use]
pub fn assign(job: &JobId, worker: WorkerId, assignment: &Assignment) -> Vec<Op> {
    vec![Op::delete(path::queue_entry(job)), Op::create(path::assignment(worker, job), encode(assignment))]
}

/// Closes an attempt: by its worker (a result, a failure, a hand-back) or by the leader (a loss).
///
/// `assignment` is the assignment's version when what happens next depends on its cancel flag, so that a
/// cancel that came meanwhile is seen (S12); `None` when a finished run wins in any case.
#[must_use]
pub fn close(
    job: &JobId,
    worker: WorkerId,
    version: i32,
    assignment: Option<i32>,
    record: &JobRecord,
    next: &Next,
) -> Vec<Op> {
    let mut ops = vec![
        Op::Set { path: path::record(job), data: encode(record), version },
        Op::Delete { path: path::assignment(worker, job), version: assignment },
    ];
    match next {
        Next::Terminal => {}
        Next::Queue(entry) => ops.push(Op::create(path::queue_entry(job), encode(entry))),
        Next::Delay(entry) => {
            let minute = entry.not_before.minute();
            ops.push(Op::create(path::delayed_entry(minute, job), encode(entry)));
        }
    }
    ops
}

/// Moves a job whose time has come from the delayed jobs to the queue.
#[must_use]
pub fn promote(job: &JobId, minute: u64, entry: &QueueEntry) -> Vec<Op> {
    let queued = QueueEntry { not_before: WallMillis::default(), ..entry.clone() };
    vec![Op::delete(path::delayed_entry(minute, job)), Op::create(path::queue_entry(job), encode(&queued))]
}

/// Where the entry of a waiting job stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Waiting {
    /// In the queue.
    Queued,
    /// Among the delayed jobs of this minute.
    Delayed(u64),
}

/// Ends a job that waits. Rejected when it was assigned, promoted or ended meanwhile: look again.
#[must_use]
pub fn cancel(job: &JobId, version: i32, record: &JobRecord, waiting: Waiting) -> Vec<Op> {
    let entry = match waiting {
        Waiting::Queued => path::queue_entry(job),
        Waiting::Delayed(minute) => path::delayed_entry(minute, job),
    };
    vec![Op::Set { path: path::record(job), data: encode(record), version }, Op::delete(entry)]
}

/// Asks the worker that has the job to cancel it.
#[must_use]
pub fn flag_cancel(job: &JobId, worker: WorkerId, version: i32, assignment: &Assignment) -> Op {
    let flagged = Assignment { cancel: true, ..*assignment };
    Op::Set { path: path::assignment(worker, job), data: encode(&flagged), version }
}

/// Queues a terminal job again as a new generation.
#[must_use]
pub fn reopen(job: &JobId, version: i32, record: &JobRecord) -> Vec<Op> {
    vec![
        Op::Set { path: path::record(job), data: encode(record), version },
        Op::create(path::queue_entry(job), encode(&record.entry())),
    ]
}

/// Makes a worker exist: its inbox first, then its ephemeral, in one multi, so that no leader sees either
/// without the other.
#[must_use]
pub fn register(worker: WorkerId, info: &WorkerInfo) -> Vec<Op> {
    vec![
        Op::create(path::inbox(worker), Vec::new()),
        Op::Create { path: path::worker(worker), data: encode(info), lifetime: Lifetime::Ephemeral },
    ]
}

/// Makes the parents that [`register`] needs: each its own write, and one that is there already says so.
#[must_use]
pub fn register_parents() -> [Op; 2] {
    [path::WORKERS, path::ASSIGNMENTS].map(|parent| Op::create(parent.to_owned(), Vec::new()))
}

/// Makes a drained worker leave. Fails as a whole while anything is left in its inbox.
#[must_use]
pub fn retire(worker: WorkerId) -> Vec<Op> {
    vec![Op::delete(path::inbox(worker)), Op::delete(path::worker(worker))]
}

/// Queues a job again whose assignment names another attempt than its record has under way: the attempt is
/// closed as handed back, unrun, or as cancelled if the assignment says so (S12); fenced by both versions.
#[must_use]
pub fn requeue(
    job: &JobId,
    worker: WorkerId,
    version: i32,
    assignment: &Assignment,
    assignment_version: i32,
    record: JobRecord,
    at: WallMillis,
) -> Vec<Op> {
    let attempt = Attempt { number: record.attempts + 1, worker };
    let ending = if assignment.cancel { Ending::Cancelled } else { Ending::Released };
    let (closed, next) = record.close(attempt, ending, at, 0);
    close(job, worker, version, Some(assignment_version), &closed, &next)
}

/// Removes the empty inbox of a worker that is gone.
#[must_use]
pub fn remove_inbox(worker: WorkerId) -> Vec<Op> {
    vec![Op::delete(path::inbox(worker))]
}

/// Sets a job aside whose stored bytes cannot be read: out of the inbox, with a note. Its record is left alone.
#[must_use]
pub fn quarantine(job: &JobId, worker: WorkerId, note: &str) -> Vec<Op> {
    vec![
        Op::delete(path::assignment(worker, job)),
        Op::create(path::quarantine(job), note.as_bytes().to_vec()),
    ]
}

/// Removes an assignment whose attempt is closed or whose record is gone, which only an operator's hand can
/// leave behind. Fenced by what was read of the record, so that a job that was submitted, retried or assigned
/// anew meanwhile keeps its assignment: `None` asserts the record's absence, by creating and deleting it.
#[must_use]
pub fn discard(job: &JobId, worker: WorkerId, assignment: i32, record: Option<i32>) -> Vec<Op> {
    let mut ops = match record {
        Some(version) => vec![Op::Check { path: path::record(job), version }],
        None => vec![Op::create(path::record(job), Vec::new()), Op::delete(path::record(job))],
    };
    ops.push(Op::Delete { path: path::assignment(worker, job), version: Some(assignment) });
    ops
}

#[cfg(test)]
mod tests;
