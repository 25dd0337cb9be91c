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
//! | [`assign`] | epoch, worker's version, the queue entry, the turn | entry still queued ⇒ pending again; gone ⇒ the inbox tells |
//! | [`close`] | the record's version | read the record: closed by this attempt ⇒ ours; moved on ⇒ zombie, drop |
//! | [`take_back`] | the record's and the assignment's version (a leader: epoch) | list the inbox again |
//! | [`shun`] | nothing: it goes with a close, and is for people | – |
//! | [`promote`] | epoch, the delayed entry | list the minute again |
//! | [`cancel`], [`flag_cancel`], [`reopen`] | the record's or assignment's version | read it again and decide anew |
//! | [`release`] | the note, the record's version | read the job again: set aside at our version ⇒ again; else done |
//! | [`pause`], [`unpause`] | the pause's absence, its presence | read it: it is as was wanted, or it is done again |
//! | [`register`] | the worker id's uniqueness | read the ephemeral: owned by our session ⇒ ours |
//! | [`register_parents`] | nothing: making them twice is refused | the next registration tells |
//! | [`retire`] | an empty inbox | absent ⇒ done |
//! | [`claim`](Claim::ops) | the candidate, the epoch | read `/epoch`: our token in it ⇒ ours; else decide again |
//! | [`add_schedule`] | the schedule's absence | read it: the same spec ⇒ done |
//! | [`set_schedule`], [`remove_schedule`] | the schedule's version | read it again and decide anew |
//! | [`tick`] | epoch, [`check_removals`], the schedule's version, the job's absence | read the schedule: its cursor tells |
//! | [`discard`] | the record's version, or its absence | read the inbox again |
//! | [`remove_note`] | the record's absence (the leader: epoch) | read it again: absent ⇒ gone |
//! | [`remove_record`] | the record's version (the leader: epoch) | read it again: absent ⇒ gone |
//!
//! # Lanes
//!
//! A job with a lane has a *turn*, a znode under `/lanes`, from the transaction that makes it exist to the one that
//! makes it terminal. Neither it nor its removal is ever a transaction of its own, so each of the rows above answers
//! for it: what tells that a submission or a close was applied tells the same of the turn. A turn's name has the job's
//! generation, and a generation has one turn, so the check of a turn in [`assign`] cannot meet another one.
//!
//! S6 in three steps. (1) Turns are ordered by the transaction that created them, then by their [`TurnIndex`]; so
//! whichever is the lowest of a list that has it stays the lowest for as long as it is there. (2) A leader assigns a
//! job of a lane only once it has seen its turn as the lowest, and only while the turn is there. (3) The turn goes in
//! the multi that ends the job, so the next one is assigned after that. None of this needs the leader to be the only
//! one, or its list to be fresh.

use crate::job::{Assignment, JobRecord, Next, QueueEntry, Turn, TurnIndex};
use crate::name::{JobId, Kind, WorkerId};
use crate::path;
use crate::time::WallMillis;
use crate::wire::encode;
use crate::worker::{PauseRecord, WorkerInfo};

mod batch;
mod claim;
mod group;
mod schedule;
mod subject;
mod take_back;

pub use batch::{Batch, Locus};
pub use claim::{Claim, ClaimStep};
pub use group::{
    advance, gone_part, join_group, leave_group, make_chunk, make_group, make_sub_group, mark_spawned,
    rejoin_group, remove_chunk, remove_group, remove_member, seal, without_part,
};
pub use schedule::{
    add_schedule, check_removals, job_of_tick, remove_schedule, set_schedule, tick, trace_tick, trigger,
};
pub use subject::Subject;
pub use take_back::take_back;

/// How long a znode lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Lifetime {
    /// Until it is deleted.
    Persistent,
    /// Until the session that created it ends.
    Ephemeral,
}

/// One operation of a multi.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
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

    /// The version that its znode must have, if it asks for one.
    #[must_use]
    pub fn version(&self) -> Option<i32> {
        match self {
            Self::Check { version, .. } | Self::Set { version, .. } => Some(*version),
            Self::Delete { version, .. } => *version,
            Self::Create { .. } => None,
        }
    }

    /// Whether it ends a job's turn in its lane.
    #[must_use]
    pub fn leaves_turn(&self) -> bool {
        matches!(self, Self::Delete { .. }) && self.subject() == Subject::Turn
    }

    /// Whether it is what a group adds to the end of one of its jobs.
    #[must_use]
    pub fn leaves_group(&self) -> bool {
        match self {
            Self::Delete { .. } => self.subject() == Subject::Member,
            Self::Create { .. } => self.subject() == Subject::Mark,
            Self::Check { .. } | Self::Set { .. } => false,
        }
    }

    /// Whether it is a part of a job's end beside the record, its entry and its assignment: its turn, place or mark.
    #[must_use]
    pub fn is_part_of_end(&self) -> bool {
        self.leaves_turn() || self.leaves_group()
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

/// As ZooKeeper spells it.
const ANY_VERSION: i32 = -1;

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

/// Makes a job exist, queued or delayed, with its turn if it has a lane. `index` is its place among the submissions of one
/// multi. Rejected with [`Reason::NoNode`](crate::outcome::Reason::NoNode) at the entry while the minute is not there, and
/// at the turn while the lane is not: make it, a container at [`path::delayed_minute`] or [`path::lane`], and send again.
#[must_use]
pub fn submit(job: &JobId, record: &JobRecord, index: u32) -> Vec<Op> {
    let mut ops = vec![Op::create(path::record(job), encode(record)), wait(job, record)];
    ops.extend(take_turn(job, record, index));
    ops
}

/// The entry of an open job that nobody has: in the queue, or in its minute.
fn wait(job: &JobId, record: &JobRecord) -> Op {
    let entry =
        record.minute().map_or_else(|| path::queue_entry(job), |minute| path::delayed_entry(minute, job));
    Op::create(entry, encode(&record.entry()))
}

fn take_turn(job: &JobId, record: &JobRecord, index: u32) -> Option<Op> {
    Some(Op::create(path::turn(&record.turn()?, job), encode(&TurnIndex(index))))
}

/// What goes with a job's end, whoever ends it: its turn, and its place in its group.
fn leave(job: &JobId, record: &JobRecord) -> Vec<Op> {
    let turn = record.turn().map(|turn| Op::delete(path::turn(&turn, job)));
    turn.into_iter().chain(leave_group(job, record)).collect()
}

/// Moves a job from the queue to a worker's inbox. The record is not touched: its version stays the token. A job
/// with a lane moves only while it has this turn (S6).
#[must_use]
pub fn assign(job: &JobId, worker: WorkerId, assignment: &Assignment, turn: Option<&Turn>) -> Vec<Op> {
    let mut ops = vec![
        Op::delete(path::queue_entry(job)),
        Op::create(path::assignment(worker, job), encode(assignment)),
    ];
    // Nobody sets a turn's data, so that its first version is its only one.
    ops.extend(turn.map(|turn| Op::Check { path: path::turn(turn, job), version: 0 }));
    ops
}

/// Closes an attempt: by its worker (a result, a failure, a hand-back) or by the leader (a loss). The end of the job is
/// the end of its turn.
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
        Next::Terminal => ops.extend(leave(job, record)),
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EntryLocation {
    /// In the queue.
    Queued,
    /// Among the delayed jobs of this minute.
    Delayed(u64),
}

/// Ends a job that waits, by a client's wish or because its time to start has passed: as the record says. Rejected when it was assigned, promoted or ended meanwhile: look again.
#[must_use]
pub fn cancel(job: &JobId, version: i32, record: &JobRecord, waiting: EntryLocation) -> Vec<Op> {
    let entry = match waiting {
        EntryLocation::Queued => path::queue_entry(job),
        EntryLocation::Delayed(minute) => path::delayed_entry(minute, job),
    };
    let mut ops = vec![Op::Set { path: path::record(job), data: encode(record), version }, Op::delete(entry)];
    ops.extend(leave(job, record));
    ops
}

/// Asks the worker that has the job to cancel it.
#[must_use]
pub fn flag_cancel(job: &JobId, worker: WorkerId, version: i32, assignment: &Assignment) -> Op {
    let flagged = Assignment { cancel: true, ..assignment.clone() };
    Op::Set { path: path::assignment(worker, job), data: encode(&flagged), version }
}

/// Opens a terminal job again as a new generation, last in its lane. Its minute and lane must be there, and `index` is,
/// as for [`submit`].
#[must_use]
pub fn reopen(job: &JobId, version: i32, record: &JobRecord, index: u32) -> Vec<Op> {
    let set = Op::Set { path: path::record(job), data: encode(record), version };
    let mut ops = vec![set, wait(job, record)];
    ops.extend(take_turn(job, record, index));
    ops
}

/// Takes a job out of quarantine into the queue, where it is due now, whatever backoff it was in: somebody asked for
/// it. Rejected when its note is gone, its record moved on, or it is queued. Its turn stood all the while.
#[must_use]
pub fn release(job: &JobId, version: i32, record: &JobRecord) -> Vec<Op> {
    let entry = QueueEntry { not_before: WallMillis::default(), ..record.entry() };
    vec![
        Op::delete(path::quarantine(job)),
        Op::Set { path: path::record(job), data: encode(record), version },
        Op::create(path::queue_entry(job), encode(&entry)),
    ]
}

/// Pauses a kind: the leader assigns none of its jobs while this is there.
#[must_use]
pub fn pause(kind: &Kind, pause: &PauseRecord) -> Op {
    Op::create(path::pause(kind), encode(pause))
}

/// Lifts the pause of a kind.
#[must_use]
pub fn unpause(kind: &Kind) -> Op {
    Op::delete(path::pause(kind))
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

/// Marks a worker as draining: it gets no more jobs, and finishes or hands back those that it has. Fenced by the
/// registration's version. Lost reply: reading it, marked or gone is done.
#[must_use]
pub fn mark_draining(worker: WorkerId, info: &WorkerInfo, version: i32) -> Vec<Op> {
    let data = encode(&WorkerInfo { draining: true, ..info.clone() });
    vec![Op::Set { path: path::worker(worker), data, version }]
}

/// Makes a drained worker leave. Fails as a whole while anything is left in its inbox.
#[must_use]
pub fn retire(worker: WorkerId) -> Vec<Op> {
    vec![Op::delete(path::inbox(worker)), Op::delete(path::worker(worker))]
}

/// Says of a worker that an attempt was taken from it, for whoever asks why it gets nothing: by the time at which its inbox
/// was set, beside which an earlier one does not count. Nobody is fenced by it.
#[must_use]
pub fn shun(worker: WorkerId) -> Op {
    Op::Set { path: path::inbox(worker), data: Vec::new(), version: ANY_VERSION }
}

/// Removes the empty inbox of a worker that is gone.
#[must_use]
pub fn remove_inbox(worker: WorkerId) -> Vec<Op> {
    vec![Op::delete(path::inbox(worker))]
}

/// Sets a job aside whose stored bytes cannot be read: out of the inbox, with a note. Its record is left alone, and
/// so is its turn: what comes after it in its lane does not overtake it.
#[must_use]
pub fn quarantine(job: &JobId, worker: WorkerId, note: &str) -> Vec<Op> {
    vec![
        Op::delete(path::assignment(worker, job)),
        Op::create(path::quarantine(job), note.as_bytes().to_vec()),
    ]
}

/// Removes the record of a job that is over, at the version that was read: one that was retried meanwhile stays. With a
/// lost reply, read it again: absent ⇒ gone, by this or another removal.
#[must_use]
pub fn remove_record(job: &JobId, version: i32) -> Op {
    Op::Delete { path: path::record(job), version: Some(version) }
}

/// Removes a note of quarantine whose record is gone: rejected when there is one (again).
#[must_use]
pub fn remove_note(job: &JobId) -> Vec<Op> {
    let absent = [Op::create(path::record(job), Vec::new()), Op::delete(path::record(job))];
    absent.into_iter().chain([Op::delete(path::quarantine(job))]).collect()
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
mod fence_tests;
#[cfg(test)]
mod group_tests;
#[cfg(test)]
mod tests;
