//! All transactions that change a namespace, as data.
//!
//! The state of an open job is defined by the one znode that represents it: its entry under `/ready`, its delayed entry or
//! its assignment. Each move is one multi that deletes the znode in one place and creates it in another. A lost reply is
//! therefore harmless: of two competing moves at most one commits, because each deletes, or checks the version of, a
//! znode that the other needs. Versions cannot alias: the version of a znode only grows while the znode exists, and the
//! record of an open job is never deleted.
//!
//! | transaction | fenced by | if the reply is lost |
//! | --- | --- | --- |
//! | [`submit`] | the record's absence | read the record: has our token ⇒ ours; absent ⇒ send again; other token ⇒ duplicate |
//! | [`assign`] | epoch, worker's version, the entry, the turn | entry still there ⇒ pending again; deleted ⇒ list the inbox |
//! | [`close`] | the record's version | read the record: closed by this attempt ⇒ ours; newer ⇒ zombie, drop the result |
//! | [`reclaim`] | the record's and the assignment's version (a leader: epoch) | list the inbox again |
//! | [`take_over`] | the new worker's version, the record's and the assignment's version | read the new assignment: there ⇒ moved; else decide again |
//! | [`shun`] | nothing: part of a close, information for operators | – |
//! | [`promote`] | epoch, the delayed entry | list the minute again |
//! | [`cancel`], [`flag_cancel`], [`reopen`] | the record's or assignment's version | read it again and decide again |
//! | [`release`] | the note, the record's version | read the job: still quarantined at our version ⇒ send again; else done |
//! | [`pause`], [`unpause`] | the pause's absence, its presence | read it: in the wanted state ⇒ done; else send again |
//! | [`register`] | the worker id's uniqueness | read the ephemeral: owned by our session ⇒ ours |
//! | [`register_parents`] | nothing: a second create is rejected | the next registration shows whether they exist |
//! | [`retire`] | an empty inbox | absent ⇒ done |
//! | [`claim`](Claim::ops) | the candidate, the epoch, the version of `/leading` | read `/epoch`: has our token ⇒ ours; else decide again |
//! | [`beat`] | epoch, the candidate | beat again: an unknown beat extends no trust |
//! | [`add_schedule`] | the schedule's absence | read it: the same spec ⇒ done |
//! | [`set_schedule`], [`remove_schedule`] | the schedule's version | read it again and decide again |
//! | [`tick`] | epoch, [`check_removals`], the schedule's version, the job's absence or version | read the cursor of the schedule |
//! | [`discard`] | the record's version, or its absence | read the inbox again |
//! | [`remove_note`] | the record's absence (the leader: epoch) | read it again: absent ⇒ removed |
//! | [`read_clock`] | nothing: only its time counts | send it again |
//! | [`report_clock`], [`update_clock_report`], [`withdraw_clock_report`] | nothing: only the session writes its report | report again after the next reading |
//! | [`remove_record`] after [`count_removal`] | the record's version, the bucket's version (the leader: epoch) | read it again: absent ⇒ removed |
//!
//! # Containers
//!
//! A class and a slot under `/ready`, a minute under `/delayed` and a lane under `/lanes` are containers, which ZooKeeper
//! removes when they are empty. The driver that commits a transaction creates the missing ones ([`Parents`]); a transaction does not mention them.
//!
//! # Lanes
//!
//! A job with a lane has a *turn*, a znode under `/lanes`. It is created in the transaction that creates the job and
//! deleted in the one that ends the job, never in a separate transaction. So the table above covers it: if a
//! submission or a close was applied, so was the change of the turn. The name of a turn contains the job's generation,
//! and a generation has one turn, so the check of a turn in [`assign`] cannot match another one.
//!
//! A job with sub-jobs ends with the last of them. So its close keeps the turn, and the [`advance`] that makes their
//! group done deletes it. It is fenced by the group's version, and each parent that ends has a group that becomes done:
//! a stopped one, too, once its open members have ended. If an operator has deleted the group, the close deletes the turn
//! ([`without_part`]).
//!
//! S6 in three steps. (1) Turns are ordered by the transaction that created them, then by their [`TurnIndex`]. A
//! turn that is the lowest of any list that contains it therefore stays the lowest until it is deleted. (2) A leader
//! assigns a job of a lane only after it has seen the job's turn as the lowest, and only while that turn exists. (3)
//! The turn is deleted in the multi that ends the job and its sub-jobs, so the next job of the lane is assigned after
//! that. None of this requires a single leader or a fresh list.

use crate::change::{Change, Noted};
use crate::clock_report::ClockReport;
use crate::job::{Assignment, Delay, JobRecord, Next, QueueEntry, Turn, TurnIndex, dead_letter};
use crate::name::{JobId, Kind, WorkerId};
use crate::path::{self, Bucket};
use crate::ready::ReadyEntry;
use crate::time::WallMillis;
use crate::wire::encode;
use crate::worker::{PauseRecord, WorkerInfo, WorkerSettings};

mod batch;
mod claim;
mod group;
mod parents;
mod reclaim;
mod schedule;
pub mod segment;
mod subject;
mod take_over;

pub use batch::{Batch, Locus};
pub use claim::{BeatStep, Claim, ClaimStep, Found, Seat, beat, claimed_epoch, unclaimed_since};
pub use group::{
    advance, extend_parent, gone_part, join_group, leave_group, make_chunk, make_group, make_sub_group,
    mark_spawned, rejoin_group, remove_chunk, remove_group, remove_member, set_group, without_part,
};
pub use parents::{Delivery, Parents, SeenParents};
pub use reclaim::reclaim;
pub use schedule::{
    Prior, add_schedule, check_removals, job_of_tick, remove_schedule, set_schedule, tick, trace_tick,
    trigger,
};
pub use subject::Subject;
pub use take_over::take_over;

/// How long a znode lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Lifetime {
    /// Until it is deleted.
    Persistent,
    /// Until the session that created it ends.
    Ephemeral,
    /// Until ZooKeeper removes it, some time after its last child was deleted.
    Container,
}

/// One operation of a multi.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Op {
    /// Fails unless the znode has this version.
    Check {
        /// The znode.
        path: String,
        /// The version that it must have.
        version: i32,
    },
    /// Fails if the znode exists.
    Create {
        /// The znode.
        path: String,
        /// Its data.
        data: Vec<u8>,
        /// How long the znode lives.
        lifetime: Lifetime,
    },
    /// Fails unless the znode has this version.
    Set {
        /// The znode.
        path: String,
        /// Its new data.
        data: Vec<u8>,
        /// The version to replace.
        version: i32,
    },
    /// Fails unless the znode exists, has no children, and has this version if one is given.
    Delete {
        /// The znode.
        path: String,
        /// The version to delete.
        version: Option<i32>,
    },
}

impl Op {
    /// The znode that the operation reads or writes.
    #[must_use]
    pub fn path(&self) -> &str {
        match self {
            Self::Check { path, .. }
            | Self::Create { path, .. }
            | Self::Set { path, .. }
            | Self::Delete { path, .. } => path,
        }
    }

    /// The version that the znode must have, if the operation requires one.
    #[must_use]
    pub fn version(&self) -> Option<i32> {
        match self {
            Self::Check { version, .. } | Self::Set { version, .. } => Some(*version),
            Self::Delete { version, .. } => *version,
            Self::Create { .. } => None,
        }
    }

    /// Whether the operation deletes a job's turn in its lane.
    #[must_use]
    pub fn leaves_turn(&self) -> bool {
        matches!(self, Self::Delete { .. }) && self.subject() == Subject::Turn
    }

    /// Whether a group adds this operation to the end of one of its jobs.
    #[must_use]
    pub fn leaves_group(&self) -> bool {
        match self {
            Self::Delete { .. } => self.subject() == Subject::Member,
            Self::Create { .. } => self.subject() == Subject::Mark,
            Self::Check { .. } | Self::Set { .. } => false,
        }
    }

    /// Whether the operation is a secondary part of a job's end: its turn, place or mark, but not its record, entry or
    /// assignment.
    #[must_use]
    pub fn is_part_of_end(&self) -> bool {
        self.leaves_turn() || self.leaves_group()
    }

    /// Its approximate size on the wire, in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        // A multi header, one length each for path and data, a version or flags, one open ACL.
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

/// ZooKeeper's value for "any version".
const ANY_VERSION: i32 = -1;

/// The first operation of every multi of a leader: the multi is rejected once another leader has claimed (S3).
#[must_use]
pub fn fence(epoch: i32) -> Op {
    Op::Check { path: path::EPOCH.to_owned(), version: epoch }
}

/// Precedes the assignments to a worker: they are rejected once the worker has left or begun to drain.
#[must_use]
pub fn check_worker(worker: WorkerId, version: i32) -> Op {
    Op::Check { path: path::worker(worker), version }
}

/// Creates a job, ready or delayed, with its turn if it has a lane. `index` is its position among the submissions
/// of the same multi.
#[must_use]
pub fn submit(job: &JobId, record: &JobRecord, index: u32) -> Vec<Op> {
    let mut ops = vec![Op::create(path::record(job), encode(record)), wait(job, record, 0)];
    ops.extend(take_turn(job, record, index));
    ops
}

/// The entry of an open job that is not assigned, ready or in its minute. `version` is the version of the record after the
/// transaction.
fn wait(job: &JobId, record: &JobRecord, version: i32) -> Op {
    let entry = record.entry(version);
    match record.delay() {
        Some(delay) => Op::create(path::delayed_entry(delay, job), encode(&entry)),
        None => ready(job, &entry),
    }
}

/// The entry of a job that is ready. It has no data if its path says everything.
fn ready(job: &JobId, entry: &QueueEntry) -> Op {
    let at = ReadyEntry::of(job, entry);
    Op::create(path::ready_entry(&at), if at.name.has_data { encode(entry) } else { Vec::new() })
}

/// The version of a znode after a `Set` of `version`. ZooKeeper wraps around, too.
fn after(version: i32) -> i32 {
    version.wrapping_add(1)
}

fn take_turn(job: &JobId, record: &JobRecord, index: u32) -> Option<Op> {
    Some(Op::create(path::turn(&record.turn()?, job), encode(&TurnIndex(index))))
}

/// The secondary parts of a job's end: its turn is deleted, its place in its group becomes a mark, and its dead-letter
/// job is created. A job with sub-jobs keeps its turn until their group is done ([`advance`]).
fn leave(job: &JobId, record: &JobRecord) -> Vec<Op> {
    let turn = record.turn().filter(|_| !record.spawned).map(|turn| Op::delete(path::turn(&turn, job)));
    let letter = dead_letter(job, record).map(|(letter, record)| submit(&letter, &record, 0));
    turn.into_iter().chain(leave_group(job, record)).chain(letter.into_iter().flatten()).collect()
}

/// Moves a job from its entry to a worker's inbox. The record is not written, so its version stays the fencing token. A
/// job with a lane is moved only while it has this turn (S6).
#[must_use]
pub fn assign(entry: &ReadyEntry, worker: WorkerId, assignment: &Assignment, turn: Option<&Turn>) -> Vec<Op> {
    let job = entry.job();
    let mut ops = vec![
        Op::delete(path::ready_entry(entry)),
        Op::create(path::assignment(worker, job), encode(assignment)),
    ];
    // The data of a turn is never set, so its version stays 0.
    ops.extend(turn.map(|turn| Op::Check { path: path::turn(turn, job), version: 0 }));
    ops
}

/// Closes an attempt. The caller is its worker (a result, a failure, a hand-back) or the leader (a loss). A close that
/// ends the job also deletes its turn.
///
/// `assignment` is the version of the assignment if its cancel flag decides what happens next, so that a concurrent
/// cancel rejects the close (S12). It is `None` for a run that has finished and wins in any case.
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
        Next::Queue | Next::Delay(_) => ops.push(wait(job, record, after(version))),
    }
    ops
}

/// Moves the entry of a delayed job that is due under `/ready`. Rejected unless this attempt still waits: the name of the entry denotes
/// it.
#[must_use]
pub fn promote(job: &JobId, delay: Delay, entry: &QueueEntry) -> Vec<Op> {
    let due = QueueEntry { not_before: WallMillis::default(), ..entry.clone() };
    vec![Op::delete(path::delayed_entry(delay, job)), ready(job, &due)]
}

/// Where a waiting job has its entry.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum EntryLocation {
    /// Under `/ready`.
    Ready(ReadyEntry),
    /// Among the delayed jobs of a minute.
    Delayed(Delay),
}

impl EntryLocation {
    /// The path of the job's entry.
    #[must_use]
    pub fn path(&self, job: &JobId) -> String {
        match self {
            Self::Ready(entry) => path::ready_entry(entry),
            Self::Delayed(delay) => path::delayed_entry(*delay, job),
        }
    }
}

/// Ends a waiting job, because a client cancelled it or because it has expired; the record states which. Rejected if
/// the job was assigned, promoted or ended in the meantime: the caller reads it again.
#[must_use]
pub fn cancel(job: &JobId, version: i32, record: &JobRecord, waiting: &EntryLocation) -> Vec<Op> {
    let set = Op::Set { path: path::record(job), data: encode(record), version };
    let mut ops = vec![set, Op::delete(waiting.path(job))];
    ops.extend(leave(job, record));
    ops
}

/// Asks the worker that has the job to cancel it.
#[must_use]
pub fn flag_cancel(job: &JobId, worker: WorkerId, version: i32, assignment: &Assignment) -> Op {
    let flagged = Assignment { cancel: true, ..assignment.clone() };
    Op::Set { path: path::assignment(worker, job), data: encode(&flagged), version }
}

/// Opens a terminal job again as a new generation, last in its lane. `index` has the same meaning as in [`submit`].
#[must_use]
pub fn reopen(job: &JobId, version: i32, record: &JobRecord, index: u32) -> Vec<Op> {
    let set = Op::Set { path: path::record(job), data: encode(record), version };
    let mut ops = vec![set, wait(job, record, after(version))];
    ops.extend(take_turn(job, record, index));
    ops
}

/// Makes a job in quarantine ready. It is due immediately, even if it was in a backoff, because an operator asked for it.
/// Rejected if its note was deleted, its record has changed, or it is ready. Its turn was kept.
#[must_use]
pub fn release(job: &JobId, version: i32, record: &JobRecord) -> Vec<Op> {
    let record = JobRecord { released: true, ..record.clone() };
    let entry = QueueEntry { not_before: WallMillis::default(), ..record.entry(after(version)) };
    vec![
        Op::delete(path::quarantine(job)),
        Op::Set { path: path::record(job), data: encode(&record), version },
        ready(job, &entry),
    ]
}

/// Pauses a kind: the leader assigns none of its jobs while this znode exists.
#[must_use]
pub fn pause(kind: &Kind, pause: &PauseRecord) -> Op {
    Op::create(path::pause(kind), encode(pause))
}

/// Resumes a kind, and writes the author to the parent.
#[must_use]
pub fn unpause(kind: &Kind, change: Option<&Change>) -> Vec<Op> {
    vec![Op::delete(path::pause(kind)), note(path::PAUSES.to_owned(), change, ANY_VERSION)]
}

/// Writes the author of a removal to the parent, which has no other data. Without an author it only raises the version.
fn note(parent: String, change: Option<&Change>, version: i32) -> Op {
    Op::Set { path: parent, data: change.map(encode).unwrap_or_default(), version }
}

/// Registers a worker: creates its inbox, then its ephemeral, in one multi, so that no leader sees one without the
/// other.
#[must_use]
pub fn register(worker: WorkerId, info: &WorkerInfo) -> Vec<Op> {
    vec![
        Op::create(path::inbox(worker), Vec::new()),
        Op::Create { path: path::worker(worker), data: encode(info), lifetime: Lifetime::Ephemeral },
    ]
}

/// Creates the parents that [`register`] needs. Each is a separate write; one that exists is rejected, which is
/// harmless.
#[must_use]
pub fn register_parents() -> [Op; 2] {
    [path::WORKERS, path::ASSIGNMENTS].map(|parent| Op::create(parent.to_owned(), Vec::new()))
}

/// Marks a worker as draining: it gets no new jobs, and finishes or hands back the ones it has. Fenced by the
/// version of the registration. After a lost reply, read the registration: marked or deleted ⇒ done.
#[must_use]
pub fn mark_draining(worker: WorkerId, info: &WorkerInfo, version: i32) -> Vec<Op> {
    let data = encode(&WorkerInfo { draining: true, ..info.clone() });
    vec![Op::Set { path: path::worker(worker), data, version }]
}

/// Changes the settings of a worker: its later assignments check the new version. Fenced by the version of the
/// registration. After a lost reply, read the registration: with these settings or deleted ⇒ done.
#[must_use]
pub fn set_worker(
    worker: WorkerId,
    info: &WorkerInfo,
    settings: Noted<WorkerSettings>,
    version: i32,
) -> Vec<Op> {
    let data = encode(&WorkerInfo { settings, ..info.clone() });
    vec![Op::Set { path: path::worker(worker), data, version }]
}

/// Removes a drained worker. Rejected as a whole while its inbox is not empty.
#[must_use]
pub fn retire(worker: WorkerId) -> Vec<Op> {
    vec![Op::delete(path::inbox(worker)), Op::delete(path::worker(worker))]
}

/// Records that an attempt was taken from a worker, so that `explain` can show why the worker gets no jobs. The
/// record is the modification time of the inbox; the latest one counts. Fences nothing.
#[must_use]
pub fn shun(worker: WorkerId) -> Op {
    Op::Set { path: path::inbox(worker), data: Vec::new(), version: ANY_VERSION }
}

/// Removes the empty inbox of a dead worker.
#[must_use]
pub fn remove_inbox(worker: WorkerId) -> Vec<Op> {
    vec![Op::delete(path::inbox(worker))]
}

/// Quarantines a job whose stored bytes cannot be read: deletes its assignment and creates a note. The record and the
/// turn are kept, so the next jobs of its lane keep waiting.
#[must_use]
pub fn quarantine(job: &JobId, worker: WorkerId, note: &str) -> Vec<Op> {
    vec![
        Op::delete(path::assignment(worker, job)),
        Op::create(path::quarantine(job), note.as_bytes().to_vec()),
    ]
}

/// Precedes [`remove_record`] of records in this bucket, by retention or by a purge. `removals` is the version of the bucket,
/// which must be read before the records.
///
/// The version of a record does not identify it: when a record is removed and its id is submitted again, the versions
/// start at 0 again. A removal that arrives late could delete the new job. It is rejected, because the removal of the earlier
/// record has set the bucket.
#[must_use]
pub fn count_removal(bucket: Bucket, removals: i32, change: Option<&Change>) -> Op {
    note(bucket.jobs(), change, removals)
}

/// Sets `/jobs`, which has no data. The caller then reads ZooKeeper's time from its modification time.
#[must_use]
pub fn read_clock() -> Op {
    Op::Set { path: path::JOBS.to_owned(), data: Vec::new(), version: ANY_VERSION }
}

/// Reports a wrong wall clock in the session's own ephemeral znode. Rejected if the session has reported before: then
/// [`update_clock_report`] replaces the report. After a lost reply, report again.
#[must_use]
pub fn report_clock(session: i64, report: &ClockReport) -> Op {
    Op::Create { path: path::clock_report(session), data: encode(report), lifetime: Lifetime::Ephemeral }
}

/// Replaces the report of the session. Fences nothing: only this session writes its report.
#[must_use]
pub fn update_clock_report(session: i64, report: &ClockReport) -> Op {
    Op::Set { path: path::clock_report(session), data: encode(report), version: ANY_VERSION }
}

/// Withdraws the report of the session. Rejected if there is none, which is harmless.
#[must_use]
pub fn withdraw_clock_report(session: i64) -> Op {
    Op::delete(path::clock_report(session))
}

/// Removes the record of a terminal job at the version that was read: a job that was retried in the meantime is kept.
/// After a lost reply, read it again: absent ⇒ removed, by this or another removal. A removal of a record without a group
/// needs [`count_removal`]; that of a group's record deletes its mark, which a new group of the same name does not have yet.
#[must_use]
pub fn remove_record(job: &JobId, version: i32) -> Op {
    Op::Delete { path: path::record(job), version: Some(version) }
}

/// Removes a quarantine note whose record was removed. Rejected if the record exists (again).
#[must_use]
pub fn remove_note(job: &JobId) -> Vec<Op> {
    let absent = [Op::create(path::record(job), Vec::new()), Op::delete(path::record(job))];
    absent.into_iter().chain([Op::delete(path::quarantine(job))]).collect()
}

/// Removes an assignment whose attempt is closed or whose record was removed. Only a manual change of the namespace
/// leaves such an assignment. Fenced by the record version that was read, so that a job that was submitted, retried
/// or assigned again in the meantime keeps its assignment. `None` asserts the record's absence by creating and
/// deleting it.
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
