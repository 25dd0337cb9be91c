//! Recovery: requeues the jobs of dead workers.
//!
//! An inbox whose worker has no ephemeral is orphaned: the worker has died, possibly while there was no leader. Worker
//! ids are never used twice and a worker registers inbox and ephemeral in one multi. So an absent worker never returns,
//! and no assignment to it can be created any longer (each one checks the ephemeral). The inbox is therefore complete,
//! and each job in it has one attempt to close.
//!
//! ```text
//!  lost ─▶ Queued ─▶ Listing ─jobs─▶ Queued ─▶ Reading ─▶ Committing ─▶ Queued … ─▶ Listing ─empty─▶ Queued ─▶ Removing ─▶ done
//!             ▲                                    │           │                                                  │
//!             └──────── sweep ── Interrupted ◀─────┴───────────┴──── no answer, unknown, not sent ────────────────┘
//! ```
//!
//! At most [`WINDOW`] inboxes have a request in flight. The others are queued, and an inbox that has sent a list, a chunk or
//! a removal goes to the end of the queue. So the death of a thousand workers does not delay the leader's other requests, and
//! a full inbox does not delay the short ones.
//!
//! After any failure the inbox is listed again: a closed attempt is no longer in it. If a worker that was declared dead
//! reports at the same time, the record's version decides which write wins. A job that is rejected [`STRIKES`] times in
//! a row waits for the next sweep, so that one bad record does not block the others. If an operator deleted a job's
//! turn in its lane or its place in its group, the attempt is closed without that part. Limits: [`WINDOW`] requests in
//! flight, one per worker, [`CHUNK`] jobs each.
//!
//! **A segment** is read alone, and its open members are extracted into the inbox. At the next list they are jobs.
//!
//! **A process that survives its session** registers again and names its former worker ids. Attempts of such an id are
//! handed back without a loss: the process did not die of a job. A registration that was read once proves that for good,
//! so no fence is needed. If the recovery comes before the new registration is read, the losses count until the next close
//! of the job, which [excuses](JobRecord::excuse) them.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::job::{Assignment, ClosedAttempt, Ending, JobRecord};
use crate::machine::inbox_segment::{self, Decision, InboxSegment};
use crate::name::{JobId, Kind, WorkerId};
use crate::outcome::{Outcome, Reason, Rejection};
use crate::path;
use crate::segment::SegmentId;
use crate::time::WallMillis;
use crate::txn::{self, Batch, Locus, Op};

/// Jobs per request: two reads each make one full multi-read.
pub const CHUNK: usize = 50;

/// Requests in flight for all dead workers together. Eight recover a thousand small inboxes in a second or two, and leave most of
/// [`MAX_IN_FLIGHT`](crate::budget::MAX_IN_FLIGHT) to the other members of the leader.
pub const WINDOW: usize = 8;

/// Former worker ids that a term remembers. Ids are ordered by their time, and the oldest is forgotten first: its inbox is
/// normally recovered by then, and otherwise its attempts count as lost.
pub const MOST_SURVIVED: usize = 4_096;

/// Consecutive rejections after which a job waits for the next sweep.
pub const STRIKES: u32 = 3;

/// The result of reading a znode.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Stored<T> {
    /// The znode is absent.
    Absent,
    /// The data cannot be decoded by this build, for this reason.
    Unreadable(String),
    /// The value and its version.
    Value(T, i32),
}

/// A job in an orphaned inbox.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Orphan {
    /// The job.
    pub job: JobId,
    /// Its assignment.
    pub assignment: Stored<Assignment>,
    /// Its record.
    pub record: Stored<JobRecord>,
}

/// Input of the machine.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Event {
    /// A worker has an inbox and no ephemeral.
    Lost(WorkerId),
    /// The process of this worker is alive and has registered under another id.
    Survived(WorkerId),
    /// The inbox was listed. `Ok(None)`: absent. `Err`: no answer.
    Listed(WorkerId, Result<Option<Vec<JobId>>, ()>),
    /// Jobs of the inbox were read. `Err`: no answer.
    Read(WorkerId, Result<Vec<Orphan>, ()>),
    /// A segment of the inbox was read. `Err`: no answer.
    SegmentRead(WorkerId, SegmentId, Result<Box<InboxSegment>, ()>),
    /// The outcome of a batch.
    Committed(WorkerId, Batch<Item>, Outcome<()>),
    /// The outcome of removing the inbox.
    Removed(WorkerId, Outcome<()>),
    /// The session is usable: resume interrupted inboxes and retry rejected jobs.
    Sweep,
}

/// Output of the machine, carried out by the leader.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Effect {
    /// List the worker's inbox.
    List(WorkerId),
    /// Read assignment and record of these jobs, at most [`CHUNK`].
    Read(WorkerId, Vec<JobId>),
    /// Read the assignment of this segment, then the segment and the names of its chunks.
    ReadSegment(WorkerId, SegmentId),
    /// Commit this batch and return it with its outcome.
    Commit(WorkerId, Batch<Item>),
    /// Commit the removal of the empty inbox.
    Remove(WorkerId, Vec<Op>),
    /// Another leader has claimed the epoch.
    FencedOut,
    /// An attempt was closed, or a job was moved to quarantine.
    Closed(Item),
}

/// One job of a batch.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Item {
    /// The job.
    pub job: JobId,
    /// The effect of the batch on the job.
    pub outcome: OrphanOutcome,
}

/// The result for an orphan.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum OrphanOutcome {
    /// Its attempt is closed: as lost; as cancelled if a cancel was requested; as handed back if the assignment does
    /// not match the record or the worker's process is alive.
    Closed {
        /// Its kind.
        kind: Kind,
        /// What the close did.
        closed: ClosedAttempt,
    },
    /// It cannot be decoded and is moved to quarantine, for this reason.
    Quarantined(String),
    /// The job is already terminal or deleted.
    Stale,
    /// It is a segment, of which this number of members were extracted into the inbox.
    Extracted(usize),
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Phase {
    /// Waits until fewer than [`WINDOW`] inboxes have a request in flight.
    Queued(Next),
    Listing,
    Reading,
    Committing,
    Removing,
    Interrupted,
}

/// The next request of a queued inbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Next {
    List,
    Read,
    Remove,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Inbox {
    phase: Phase,
    left: VecDeque<JobId>,
    strikes: BTreeMap<JobId, u32>,
    /// Parts of each close that an operator already deleted or created, learned from rejections.
    gone: BTreeMap<JobId, Vec<String>>,
}

/// State machine of one term.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Recovery {
    epoch: i32,
    inboxes: BTreeMap<WorkerId, Inbox>,
    /// Former ids of processes that have registered again, at most [`MOST_SURVIVED`].
    survived: BTreeSet<WorkerId>,
    /// The inboxes that are queued, in order.
    queue: VecDeque<WorkerId>,
    /// The inboxes that have a request in flight, at most [`WINDOW`].
    busy: BTreeSet<WorkerId>,
}

impl Recovery {
    /// Creates the machine for the term of `epoch`.
    #[must_use]
    pub fn new(epoch: i32) -> Self {
        let (inboxes, survived, queue, busy) = Default::default();
        Self { epoch, inboxes, survived, queue, busy }
    }

    /// Handles one event.
    pub fn handle(&mut self, wall: WallMillis, event: Event, out: &mut Vec<Effect>) {
        match event {
            Event::Lost(worker) => {
                if let Entry::Vacant(vacant) = self.inboxes.entry(worker) {
                    let (left, strikes, gone) = Default::default();
                    vacant.insert(Inbox { phase: Phase::Interrupted, left, strikes, gone });
                    self.queue(worker, Next::List);
                }
            }
            Event::Survived(worker) => {
                self.survived.insert(worker);
                if self.survived.len() > MOST_SURVIVED {
                    self.survived.pop_first();
                }
            }
            Event::Listed(worker, Ok(Some(jobs))) => self.listed(worker, jobs),
            Event::Listed(worker, Ok(None)) => self.forget(worker),
            Event::Read(worker, Ok(orphans)) => self.read(worker, orphans, wall, out),
            Event::SegmentRead(worker, id, Ok(found)) => self.segment_read(worker, id, *found, out),
            Event::Listed(worker, Err(()))
            | Event::Read(worker, Err(()))
            | Event::SegmentRead(worker, _, Err(())) => self.interrupt(worker),
            Event::Committed(worker, batch, outcome) => self.committed(worker, batch, outcome, out),
            Event::Removed(worker, outcome) => self.removed(worker, outcome, out),
            Event::Sweep => {
                let mut again = Vec::new();
                for (worker, inbox) in &mut self.inboxes {
                    if matches!(inbox.phase, Phase::Interrupted) {
                        inbox.strikes.clear();
                        again.push(*worker);
                    }
                }
                again.into_iter().for_each(|worker| self.queue(worker, Next::List));
            }
        }
        self.send(out);
    }

    /// Queues the inbox behind the others.
    fn queue(&mut self, worker: WorkerId, next: Next) {
        self.busy.remove(&worker);
        if let Some(inbox) = self.inboxes.get_mut(&worker) {
            inbox.phase = Phase::Queued(next);
            self.queue.push_back(worker);
        }
    }

    /// Sends the next requests of the first queued inboxes.
    fn send(&mut self, out: &mut Vec<Effect>) {
        while self.busy.len() < WINDOW
            && let Some(worker) = self.queue.pop_front()
        {
            let Some(inbox) = self.inboxes.get_mut(&worker) else { continue };
            let Phase::Queued(next) = inbox.phase else { continue };
            self.busy.insert(worker);
            match next {
                Next::List => {
                    inbox.phase = Phase::Listing;
                    out.push(Effect::List(worker));
                }
                Next::Read => {
                    inbox.phase = Phase::Reading;
                    out.push(match inbox.left.front().and_then(SegmentId::of_job) {
                        Some(id) => {
                            inbox.left.pop_front();
                            Effect::ReadSegment(worker, id)
                        }
                        None => Effect::Read(worker, inbox.next_jobs()),
                    });
                }
                Next::Remove => {
                    inbox.phase = Phase::Removing;
                    let ops = [vec![txn::fence(self.epoch)], txn::remove_inbox(worker)].concat();
                    out.push(Effect::Remove(worker, ops));
                }
            }
        }
    }

    fn forget(&mut self, worker: WorkerId) {
        self.busy.remove(&worker);
        self.inboxes.remove(&worker);
    }

    /// Returns whether no inbox needs recovery.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.inboxes.is_empty()
    }

    /// Returns the number of inboxes that need recovery.
    #[must_use]
    pub fn inboxes(&self) -> usize {
        self.inboxes.len()
    }

    fn listed(&mut self, worker: WorkerId, jobs: Vec<JobId>) {
        let Some(inbox) = self.inboxes.get_mut(&worker) else { return };
        if jobs.is_empty() {
            return self.queue(worker, Next::Remove);
        }
        inbox.strikes.retain(|job, _| jobs.contains(job));
        inbox.left =
            jobs.into_iter().filter(|job| inbox.strikes.get(job).is_none_or(|n| *n < STRIKES)).collect();
        if inbox.left.is_empty() {
            // All remaining jobs wait for the next sweep.
            self.interrupt(worker);
        } else {
            self.queue(worker, Next::Read);
        }
    }

    fn next_chunk(&mut self, worker: WorkerId) {
        let all = self.inboxes.get(&worker).is_none_or(|inbox| inbox.left.is_empty());
        self.queue(worker, if all { Next::List } else { Next::Read });
    }

    /// A batch that commits only in this term.
    fn fenced(&self) -> Batch<Item> {
        Batch::new(vec![txn::fence(self.epoch)])
    }

    fn read(&mut self, worker: WorkerId, orphans: Vec<Orphan>, wall: WallMillis, out: &mut Vec<Effect>) {
        let mut batch = self.fenced();
        let Some(inbox) = self.inboxes.get_mut(&worker) else { return };
        for orphan in orphans {
            let again = inbox.strikes.contains_key(&orphan.job);
            let gone = inbox.gone.get(&orphan.job).map_or(&[][..], Vec::as_slice);
            let Some((item, ops)) = decide(worker, orphan, &self.survived, gone, again, wall) else {
                continue;
            };
            // A job that does not fit is still in the inbox at the next list.
            if batch.push(item, ops).is_err() {
                break;
            }
        }
        if batch.is_empty() {
            self.next_chunk(worker);
        } else {
            inbox.phase = Phase::Committing;
            out.push(Effect::Commit(worker, batch));
        }
    }

    /// Extracts the members of a segment. They are jobs of the inbox at the next list.
    fn segment_read(&mut self, worker: WorkerId, id: SegmentId, found: InboxSegment, out: &mut Vec<Effect>) {
        let mut batch = self.fenced();
        let Some(inbox) = self.inboxes.get_mut(&worker) else { return };
        let job = id.job();
        let (outcome, ops) = match inbox_segment::decide(worker, id, found) {
            Decision::Gone => return self.next_chunk(worker),
            Decision::Stale(ops) => (OrphanOutcome::Stale, ops),
            Decision::Unreadable(why) => {
                let ops = set_aside(worker, &job, &why, inbox.strikes.contains_key(&job));
                (OrphanOutcome::Quarantined(why), ops)
            }
            Decision::Extract(members, ops) => (OrphanOutcome::Extracted(members), ops),
        };
        let pushed = batch.push(Item { job, outcome }, ops);
        debug_assert!(pushed.is_ok(), "the first group always fits");
        inbox.phase = Phase::Committing;
        out.push(Effect::Commit(worker, batch));
    }

    fn committed(
        &mut self,
        worker: WorkerId,
        mut batch: Batch<Item>,
        outcome: Outcome<()>,
        out: &mut Vec<Effect>,
    ) {
        let Some(inbox) = self.inboxes.get_mut(&worker) else { return };
        match outcome {
            Outcome::Applied(()) => {
                out.extend(batch.into_groups().into_iter().map(|(item, _)| Effect::Closed(item)));
                self.next_chunk(worker);
            }
            // Applied or not: the next list of the inbox shows it.
            Outcome::Unknown => self.interrupt(worker),
            Outcome::Rejected(rejection) if rejection.is_whole() => self.interrupt(worker),
            Outcome::Rejected(rejection) => match batch.locate(rejection.at) {
                Some(Locus::Fence(_)) if rejection.is_fence() => out.push(Effect::FencedOut),
                Some(Locus::Fence(_)) => self.interrupt(worker),
                Some(Locus::Group { group, op, .. }) => {
                    // The job has changed (its worker reported, or a client cancelled): read it again.
                    let (item, ops) = batch.remove(group);
                    if let Some(gone) = txn::gone_part(&ops, op, &rejection.reason) {
                        inbox.gone.entry(item.job.clone()).or_default().push(gone);
                    }
                    *inbox.strikes.entry(item.job).or_default() += 1;
                    if batch.is_empty() {
                        self.next_chunk(worker);
                    } else {
                        out.push(Effect::Commit(worker, batch));
                    }
                }
                None => self.interrupt(worker),
            },
        }
    }

    fn removed(&mut self, worker: WorkerId, outcome: Outcome<()>, out: &mut Vec<Effect>) {
        match outcome {
            Outcome::Applied(()) => self.forget(worker),
            Outcome::Rejected(rejection) if rejection.is_fenced_out() => {
                out.push(Effect::FencedOut);
            }
            // Already removed.
            Outcome::Rejected(Rejection { reason: Reason::NoNode, .. }) => self.forget(worker),
            // The reply is lost, nothing was sent, or the inbox contains a foreign child. Removing it is not urgent: the
            // sweep tries again.
            Outcome::Unknown | Outcome::Rejected(_) => self.interrupt(worker),
        }
    }

    fn interrupt(&mut self, worker: WorkerId) {
        self.busy.remove(&worker);
        if let Some(inbox) = self.inboxes.get_mut(&worker) {
            inbox.phase = Phase::Interrupted;
        }
    }
}

/// Decides what to do with one orphan. `survived` are the workers whose process is alive. `gone` lists the parts of the close
/// that an operator has already carried out, `again` is true after a rejection. `None` if the job is no longer in the inbox.
fn decide(
    worker: WorkerId,
    orphan: Orphan,
    survived: &BTreeSet<WorkerId>,
    gone: &[String],
    again: bool,
    wall: WallMillis,
) -> Option<(Item, Vec<Op>)> {
    let Orphan { job, assignment, record } = orphan;
    let drop_assignment = || drop_assignment(worker, &job);
    let quarantine = |why: String| {
        let ops = set_aside(worker, &job, &why, again);
        (OrphanOutcome::Quarantined(why), ops)
    };
    let (outcome, ops) = match (assignment, record) {
        (Stored::Absent, _) => return None,
        (_, Stored::Absent) => (OrphanOutcome::Stale, drop_assignment()),
        (_, Stored::Unreadable(why)) => quarantine(format!("record: {why}")),
        (_, Stored::Value(record, _)) if record.is_terminal() => (OrphanOutcome::Stale, drop_assignment()),
        (Stored::Unreadable(why), Stored::Value(..)) => quarantine(format!("assignment: {why}")),
        (Stored::Value(assignment, assignment_version), Stored::Value(record, version)) => {
            // An assignment that does not match the record is handed back without a loss, as its worker would do.
            let lost = assignment.agrees(&record) && !survived.contains(&worker);
            let ending = if lost { Ending::Lost } else { Ending::Released };
            let record = record.excuse(|lost| survived.contains(lost));
            let (assigned, read) = ((&assignment, assignment_version), (record, version));
            let (record, ops) = txn::reclaim(&job, worker, assigned, read, ending, gone, wall);
            (OrphanOutcome::Closed { closed: ClosedAttempt::of(&record), kind: record.kind }, ops)
        }
    };
    Some((Item { job, outcome }, ops))
}

fn drop_assignment(worker: WorkerId, job: &JobId) -> Vec<Op> {
    vec![Op::Delete { path: path::assignment(worker, job), version: None }]
}

/// Moves a job to the quarantine. After a rejection the note may already exist.
fn set_aside(worker: WorkerId, job: &JobId, why: &str, again: bool) -> Vec<Op> {
    if again { drop_assignment(worker, job) } else { txn::quarantine(job, worker, why) }
}

impl Inbox {
    /// Takes the next jobs, up to the next segment.
    fn next_jobs(&mut self) -> Vec<JobId> {
        let jobs = self.left.iter().take(CHUNK).take_while(|job| SegmentId::of_job(job).is_none()).count();
        self.left.drain(..jobs).collect()
    }
}

#[cfg(test)]
mod tests;
