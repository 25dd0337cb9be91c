//! Cancelling and retrying.
//!
//! Both modify a record and check the version that they read. If a write is rejected, the job has moved on: it is
//! read and decided again, up to a limit. If a reply is lost, the job is read as well: the change is visible, or the
//! write is repeated. Repeating is harmless: if the first copy is applied late, its version has passed.
//!
//! An open member of a segment has no record to modify. If its segment waits, a cancel extracts the members, which writes their
//! records. If its segment is assigned, only the worker and the leader may do that, and do it soon: a cancel looks again until
//! the member has ended or has a record.

use std::collections::BTreeSet;
use std::time::Duration;

use bellwether_core::change::ChangeKind;
use bellwether_core::job::{Assignment, JobRecord};
use bellwether_core::name::{JobId, WorkerId};
use bellwether_core::path;
use bellwether_core::segment::{Chunks, EXTRACT_AFTER};
use bellwether_core::txn::{self, EntryLocation as Entry, Op};
use futures::FutureExt as _;
use futures::future::BoxFuture;

use super::Client;
use super::error::{Error, Subject};
use super::locate::{Found, Location};
use super::packed::Packed;
use super::session::{Deadline, Written};
use super::view::{JobView, State};

/// Limit of attempts for a job that changes concurrently. Each lost attempt means that the job made progress.
const TRIES: u32 = 16;

/// The first pause before another look at a member of an assigned segment: most members end within milliseconds.
const SHORTEST_PAUSE: Duration = Duration::from_millis(20);

/// The longest one: the time after which a worker extracts a member.
const LONGEST_PAUSE: Duration = EXTRACT_AFTER;

/// The outcome of a cancel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cancelled {
    /// The job was waiting and will never run (again).
    Cancelled,
    /// The job is assigned to this worker, which was asked to stop it. If it finishes first, its result stands.
    Requested(WorkerId),
    /// The job had already ended.
    AlreadyTerminal(State),
}

/// The outcome of a retry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retried {
    /// The job is queued again, as this generation.
    Reopened(u32),
    /// The job was quarantined and is queued again, in the same generation and with the same counts.
    Released,
    /// The job has not ended: it needs no retry.
    StillOpen,
    /// The job succeeded: its result stands.
    Succeeded,
}

/// What a retry knows about a quarantined job.
///
/// A note may be stale, and the places of a job are not read in one instant: the job may be promoted and assigned
/// between two reads, and neither changes its version. But it cannot hide between two looks that find it quarantined
/// at the same version: if it was not delayed at the first look and is not queued at the second, it is in an inbox by
/// then, or in no place.
#[derive(Debug, Clone, Copy)]
enum Aside {
    Unseen,
    /// Seen at this version.
    Seen(i32),
    /// Seen at this version, and the reply to its release was lost.
    Unknown(i32),
}

impl Client {
    /// Cancels a job that waits, or asks the worker that it is assigned to to stop it.
    ///
    /// After [`Cancelled::Cancelled`] no attempt begins (S12). If the cancel races with the end of the job, exactly
    /// one of them wins, and the result says which.
    ///
    /// Jobs that were submitted together may share an assignment at first. Then this waits until the job has ended or has an
    /// own assignment: 250 ms, or about 5 s if the worker hangs.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::Quarantined`], [`Error::Unreadable`], [`Error::Contended`], or no answer within
    /// the client's deadline. Then the job may or may not be cancelled, and cancelling again is safe.
    pub fn cancel<'a>(&'a self, id: &'a JobId) -> BoxFuture<'a, Result<Cancelled, Error>> {
        async move {
            let by = self.by();
            let mut generation = None;
            let mut unknown = false;
            for _ in 0..TRIES {
                let found = self.unpacked(id, by).await?;
                let record = found.record;
                if *generation.get_or_insert(record.generation) != record.generation {
                    // It ended, by our lost write or another's, and a client has retried it since: the retry is newer.
                    break;
                }
                let (op, done): (Vec<Op>, _) = match found.place {
                    Location::Terminal => {
                        let state = JobView::of(id.clone(), record).state;
                        let ours = unknown && state == State::Cancelled;
                        return Ok(if ours {
                            Cancelled::Cancelled
                        } else {
                            Cancelled::AlreadyTerminal(state)
                        });
                    }
                    Location::Queued(entry) => (
                        self.cancel_waiting(id, record, found.version, Entry::Ready(entry), by).await?,
                        Cancelled::Cancelled,
                    ),
                    Location::Delayed(delay) => (
                        self.cancel_waiting(id, record, found.version, Entry::Delayed(delay), by).await?,
                        Cancelled::Cancelled,
                    ),
                    Location::Assigned { worker, assignment: Ok(assignment), .. } if assignment.cancel => {
                        return Ok(Cancelled::Requested(worker));
                    }
                    Location::Assigned { worker, assignment: Ok(assignment), version } => {
                        let cancelled = self.change(ChangeKind::Cancelled);
                        let assignment = Assignment { cancelled, ..assignment };
                        (
                            vec![txn::flag_cancel(id, worker, version, &assignment)],
                            Cancelled::Requested(worker),
                        )
                    }
                    Location::Assigned { assignment: Err(reason), .. } => {
                        return Err(Error::Unreadable { id: id.clone(), reason });
                    }
                    Location::Quarantined { .. } => {
                        return Err(Error::Quarantined(id.clone()));
                    }
                    Location::Nowhere => continue,
                };
                match self.0.session.commit(by, op).await? {
                    Written::Applied => return Ok(done),
                    Written::Rejected => {}
                    Written::Unknown => unknown = true,
                }
            }
            Err(Error::Contended { subject: Subject::Job(id.clone()), tries: TRIES })
        }
        .boxed()
    }

    /// Queues a dead or cancelled job again. Its counts start at zero; its last error is kept.
    ///
    /// A quarantined job whose record can be read (again) leaves the quarantine and is queued. Of its
    /// record only the note of the change is new, and the version, so an earlier run cannot commit. Members of a segment are quarantined
    /// together, and are released together: each gets a record.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::Unreadable`], [`Error::Contended`]; [`GroupError::Spawned`](crate::client::GroupError::Spawned)
    /// while sub-jobs of the job are open; or no answer within the client's deadline. Then the job may or may not be queued,
    /// and retrying again is safe.
    pub fn retry<'a>(&'a self, id: &'a JobId) -> BoxFuture<'a, Result<Retried, Error>> {
        async move {
            let by = self.by();
            let mut wanted = None;
            let (mut aside, mut released) = (Aside::Unseen, false);
            for _ in 0..TRIES {
                let found = self.found(id, by).await?;
                if let (Location::Quarantined { .. }, Some(packed)) = (&found.place, &found.packed) {
                    match self.release_segment(packed, by).await? {
                        Written::Applied => return Ok(Retried::Released),
                        Written::Rejected => {}
                        Written::Unknown => released = true,
                    }
                    continue;
                }
                if let Location::Quarantined { .. } = found.place {
                    if !matches!(aside, Aside::Seen(at) | Aside::Unknown(at) if at == found.version) {
                        aside = Aside::Seen(found.version);
                        continue;
                    }
                    let changed = self.change(ChangeKind::Released).or(found.record.changed.clone());
                    let record = JobRecord { changed, ..found.record };
                    match self.0.session.commit(by, txn::release(id, found.version, &record)).await? {
                        Written::Applied => return Ok(Retried::Released),
                        Written::Rejected => {}
                        Written::Unknown => aside = Aside::Unknown(found.version),
                    }
                    continue;
                }
                if matches!(aside, Aside::Unknown(at) if at != found.version) {
                    // A lost reply of ours, or another client's release of the same version: the effect is the same.
                    return Ok(Retried::Released);
                }
                if released && found.packed.is_none() {
                    return Ok(Retried::Released);
                }
                let view = JobView::of(id.clone(), found.record.clone());
                if wanted.is_some_and(|wanted| view.generation >= wanted) {
                    // A lost reply of ours, or another client's retry of the same generation: the effect is the same.
                    return Ok(Retried::Reopened(view.generation));
                }
                match view.state {
                    State::Dead | State::Cancelled => {}
                    State::Succeeded => return Ok(Retried::Succeeded),
                    State::Queued | State::Delayed | State::Running | State::Quarantined => {
                        return Ok(Retried::StillOpen);
                    }
                }
                let mut record = found.record;
                let rejoined = self.rejoin(id, &mut record, by).await?;
                let changed = self.change(ChangeKind::Reopened);
                let record = JobRecord { changed, ..record.reopen() };
                let generation = record.generation;
                let mut ops = txn::reopen(id, found.version, &record, 0);
                ops.extend(rejoined);
                match self.0.session.commit(by, ops).await? {
                    Written::Applied => return Ok(Retried::Reopened(generation)),
                    Written::Rejected => {}
                    Written::Unknown => wanted = Some(generation),
                }
            }
            Err(Error::Contended { subject: Subject::Job(id.clone()), tries: TRIES })
        }
        .boxed()
    }

    /// Builds the operations of a cancel. Parts of the end that an operator removed by hand are left out: a turn or a
    /// place that is missing next to an open record, a mark that already exists, or a mark whose group is missing. A
    /// session that has read the record would see them otherwise. What replaces such a part may be missing as well,
    /// so the loop repeats.
    async fn cancel_waiting(
        &self,
        id: &JobId,
        record: JobRecord,
        version: i32,
        entry: Entry,
        by: Deadline,
    ) -> Result<Vec<Op>, Error> {
        let changed = self.change(ChangeKind::Cancelled).or(record.changed.clone());
        let ended = JobRecord { changed, ..record.cancel(self.0.session.wall()) };
        let mut ops = txn::cancel(id, version, &ended, &entry);
        let mut looked = BTreeSet::new();
        loop {
            let parts = ops.iter().filter(|op| op.is_part_of_end() && !looked.contains(op.path()));
            let parts = parts.cloned().collect::<Vec<_>>();
            if parts.is_empty() {
                return Ok(ops);
            }
            let parent = |path: &str| path.rsplit_once('/').map_or(path, |(parent, _)| parent).to_owned();
            let paths = parts.iter().flat_map(|part| [part.path().to_owned(), parent(part.path())]);
            let paths = paths.collect::<Vec<_>>();
            let nodes = self.0.session.read(by, |zk| zk.get_many(paths.clone())).await?;
            let is_there = |path: String| {
                paths.iter().position(|asked| *asked == path).and_then(|at| nodes.get(at)?.as_ref()).is_some()
            };
            for part in &parts {
                let there = is_there(part.path().to_owned());
                let done = match part {
                    Op::Delete { .. } => !there,
                    Op::Create { .. } => there || !is_there(parent(part.path())),
                    Op::Check { .. } | Op::Set { .. } => false,
                };
                if done {
                    txn::without_part(id, &ended, part.path(), &mut ops);
                }
                looked.insert(part.path().to_owned());
            }
        }
    }

    /// Finds a job. If it is open in a segment, it is extracted first: here while the segment waits, otherwise by the worker or the
    /// leader. So it has a record, or has succeeded, or its segment is in no place or quarantined.
    pub(super) async fn unpacked(&self, id: &JobId, by: Deadline) -> Result<Found, Error> {
        let mut pause = SHORTEST_PAUSE;
        loop {
            let found = self.found(id, by).await?;
            let Some(packed) = &found.packed else { return Ok(found) };
            match found.place {
                Location::Queued(_) => {
                    let extract = txn::segment::extract_waiting(packed.id, &packed.segment);
                    // Whatever the outcome, the next look shows it.
                    if self.0.session.commit(by, extract).await? == Written::Applied {
                        continue;
                    }
                }
                Location::Assigned { .. } => {}
                Location::Terminal
                | Location::Delayed(_)
                | Location::Quarantined { .. }
                | Location::Nowhere => return Ok(found),
            }
            let slept = self.0.session.sleep(pause);
            if self.0.session.timeout_at(by.at, slept).await.is_err() {
                return Err(self.0.session.not_in_time(by).into());
            }
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// Releases the open members of a segment from quarantine.
    async fn release_segment(&self, packed: &Packed, by: Deadline) -> Result<Written, Error> {
        let names = self.0.session.read(by, |zk| zk.children(path::segment(packed.id))).await?;
        let chunks = Chunks::of_names(names.iter().flatten().map(String::as_str));
        let release = txn::segment::release(packed.id, &packed.segment, chunks.open(packed.id));
        self.0.session.commit(by, release).await
    }

    async fn found(&self, id: &JobId, by: Deadline) -> Result<Found, Error> {
        let found = self.locate(by, std::slice::from_ref(id)).await?.pop().flatten();
        let found = found.ok_or_else(|| Error::NotFound(id.clone()))?;
        found.map_err(|reason| Error::Unreadable { id: id.clone(), reason })
    }
}

#[cfg(test)]
mod tests;
