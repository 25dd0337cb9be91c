//! Giving the jobs of lost workers back to the queue.
//!
//! An inbox whose worker has no ephemeral is orphaned: its worker died, also when no leader was there to see
//! it. Worker ids are never used twice and a worker registers inbox and ephemeral in one multi, so an absent
//! worker never comes back, and no assignment to it can be made any more (each is checked on its ephemeral).
//! What is in the inbox is therefore all there will ever be, and each job in it has one attempt to close.
//!
//! ```text
//!  lost ─▶ Listing ─jobs─▶ Reading ─▶ Committing ─▶ next chunk … ─▶ Listing ─empty─▶ Removing ─▶ done
//!             ▲                │           │                                             │
//!             └── Interrupted ◀┴───────────┴── not answered, unknown, not sent ──────────┘
//! ```
//!
//! Whatever went wrong, the answer is to list again: what was closed is no longer in the inbox. A worker that
//! was thought dead and reports at the same moment wins or loses by the record's version. A job that is
//! rejected [`STRIKES`] times in a row is left until the next sweep, so that one bad record never stops the
//! others. One whose turn in its lane, or place in its group, was taken away by an operator's hand is closed without it. Limits: one request in flight per worker, [`CHUNK`] jobs each.

use std::collections::{BTreeMap, VecDeque};

use crate::job::{Assignment, Ending, JobRecord};
use crate::name::{JobId, Kind, WorkerId};
use crate::outcome::{Outcome, Reason, Rejection};
use crate::path;
use crate::time::WallMillis;
use crate::txn::{self, Batch, Locus, Op};

/// Jobs a request: two reads each make one full multi-read.
pub const CHUNK: usize = 50;

/// Rejections in a row after which a job waits for the next sweep.
pub const STRIKES: u32 = 3;

/// A znode that was read: absent, unreadable with the reason, or its value and version.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Stored<T> {
    /// It is not there.
    Absent,
    /// Its bytes are not a value that this build knows.
    Unreadable(String),
    /// Its value and version.
    Value(T, i32),
}

/// A job in an orphaned inbox.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Orphan {
    /// Which.
    pub job: JobId,
    /// Its assignment.
    pub assignment: Stored<Assignment>,
    /// Its record.
    pub record: Stored<JobRecord>,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Event {
    /// A worker has an inbox and no ephemeral.
    Lost(WorkerId),
    /// Its inbox was listed: `Ok(None)` is absent; `Err` was not answered.
    Listed(WorkerId, Result<Option<Vec<JobId>>, ()>),
    /// Jobs of its inbox were read; `Err` was not answered.
    Read(WorkerId, Result<Vec<Orphan>, ()>),
    /// A batch was answered.
    Committed(WorkerId, Batch<Item>, Outcome<()>),
    /// The removal of its inbox was answered.
    Removed(WorkerId, Outcome<()>),
    /// The session serves: take up again what was interrupted, and what was left.
    Sweep,
}

/// What the leader shall do.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Effect {
    /// List the worker's inbox.
    List(WorkerId),
    /// Read assignment and record of these, at most [`CHUNK`].
    Read(WorkerId, Vec<JobId>),
    /// Commit this and hand it back with its outcome.
    Commit(WorkerId, Batch<Item>),
    /// Commit the removal of the empty inbox.
    Remove(WorkerId, Vec<Op>),
    /// Another leader has claimed.
    FencedOut,
    /// An attempt was closed, or a job set aside.
    Closed(Item),
}

/// One job of a batch.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Item {
    /// Which.
    pub job: JobId,
    /// What the batch does to it.
    pub fate: Fate,
}

/// What becomes of an orphan.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Fate {
    /// Its attempt is closed as lost, or as cancelled when that was asked for, or as handed back when nobody was to run it.
    Closed {
        /// Its kind.
        kind: Kind,
        /// What became of the job.
        end: Recovered,
    },
    /// It cannot be read and is set aside, for this reason.
    Quarantined(String),
    /// It was over, or gone, already.
    Stale,
}

/// What a job is after its worker was lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Recovered {
    /// In the queue again.
    Queued,
    /// Dead, of its last allowed loss.
    Dead,
    /// Cancelled, as a client had asked.
    Cancelled,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Phase {
    Listing,
    Reading,
    Committing,
    Removing,
    Interrupted,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Inbox {
    phase: Phase,
    left: VecDeque<JobId>,
    strikes: BTreeMap<JobId, u32>,
    /// What of their ends was taken away, or made, before, as a rejection said.
    gone: BTreeMap<JobId, Vec<String>>,
}

/// The machine of one term.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Recovery {
    epoch: i32,
    inboxes: BTreeMap<WorkerId, Inbox>,
}

impl Recovery {
    /// A machine for the term of `epoch`.
    #[must_use]
    pub fn new(epoch: i32) -> Self {
        Self { epoch, inboxes: BTreeMap::new() }
    }

    /// Handles one event.
    pub fn handle(&mut self, wall: WallMillis, event: Event, out: &mut Vec<Effect>) {
        match event {
            Event::Lost(worker) => {
                self.inboxes.entry(worker).or_insert_with(|| {
                    out.push(Effect::List(worker));
                    Inbox {
                        phase: Phase::Listing,
                        left: VecDeque::new(),
                        strikes: BTreeMap::new(),
                        gone: BTreeMap::new(),
                    }
                });
            }
            Event::Listed(worker, Ok(Some(jobs))) => self.listed(worker, jobs, out),
            Event::Listed(worker, Ok(None)) => {
                self.inboxes.remove(&worker);
            }
            Event::Read(worker, Ok(orphans)) => self.read(worker, orphans, wall, out),
            Event::Listed(worker, Err(())) | Event::Read(worker, Err(())) => self.interrupt(worker),
            Event::Committed(worker, batch, outcome) => self.committed(worker, batch, outcome, out),
            Event::Removed(worker, outcome) => self.removed(worker, outcome, out),
            Event::Sweep => {
                for (worker, inbox) in &mut self.inboxes {
                    if matches!(inbox.phase, Phase::Interrupted) {
                        inbox.strikes.clear();
                        inbox.phase = Phase::Listing;
                        out.push(Effect::List(*worker));
                    }
                }
            }
        }
    }

    /// Whether any inbox is still to be emptied.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.inboxes.is_empty()
    }

    /// How many inboxes are still to be emptied.
    #[must_use]
    pub fn inboxes(&self) -> usize {
        self.inboxes.len()
    }

    fn listed(&mut self, worker: WorkerId, jobs: Vec<JobId>, out: &mut Vec<Effect>) {
        let Some(inbox) = self.inboxes.get_mut(&worker) else { return };
        if jobs.is_empty() {
            inbox.phase = Phase::Removing;
            let ops = [vec![txn::fence(self.epoch)], txn::remove_inbox(worker)].concat();
            out.push(Effect::Remove(worker, ops));
            return;
        }
        inbox.strikes.retain(|job, _| jobs.contains(job));
        inbox.left =
            jobs.into_iter().filter(|job| inbox.strikes.get(job).is_none_or(|n| *n < STRIKES)).collect();
        if inbox.left.is_empty() {
            // Only what was left until the next sweep.
            inbox.phase = Phase::Interrupted;
        } else {
            Self::next_chunk(worker, inbox, out);
        }
    }

    fn next_chunk(worker: WorkerId, inbox: &mut Inbox, out: &mut Vec<Effect>) {
        if inbox.left.is_empty() {
            inbox.phase = Phase::Listing;
            out.push(Effect::List(worker));
        } else {
            inbox.phase = Phase::Reading;
            let chunk = inbox.left.drain(..inbox.left.len().min(CHUNK)).collect();
            out.push(Effect::Read(worker, chunk));
        }
    }

    fn read(&mut self, worker: WorkerId, orphans: Vec<Orphan>, wall: WallMillis, out: &mut Vec<Effect>) {
        let Some(inbox) = self.inboxes.get_mut(&worker) else { return };
        let mut batch = Batch::new(vec![txn::fence(self.epoch)]);
        for orphan in orphans {
            let again = inbox.strikes.contains_key(&orphan.job);
            let gone = inbox.gone.get(&orphan.job).map_or(&[][..], Vec::as_slice);
            let Some((item, ops)) = decide(worker, orphan, gone, again, wall) else { continue };
            // One that does not fit is still in the inbox when it is listed again.
            if batch.push(item, ops).is_err() {
                break;
            }
        }
        if batch.is_empty() {
            Self::next_chunk(worker, inbox, out);
        } else {
            inbox.phase = Phase::Committing;
            out.push(Effect::Commit(worker, batch));
        }
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
                Self::next_chunk(worker, inbox, out);
            }
            // Applied or not: what is still in the inbox tells.
            Outcome::Unknown => self.interrupt(worker),
            Outcome::Rejected(rejection) if rejection.is_whole() => self.interrupt(worker),
            Outcome::Rejected(rejection) => match batch.locate(rejection.at) {
                Some(Locus::Fence(_)) if rejection.is_fence() => out.push(Effect::FencedOut),
                Some(Locus::Fence(_)) => self.interrupt(worker),
                Some(Locus::Group { group, op, .. }) => {
                    // It moved on meanwhile (its worker reported, a client cancelled): look at it again.
                    let (item, ops) = batch.remove(group);
                    if let Some(gone) = txn::gone_part(&ops, op, &rejection.reason) {
                        inbox.gone.entry(item.job.clone()).or_default().push(gone);
                    }
                    *inbox.strikes.entry(item.job).or_default() += 1;
                    if batch.is_empty() {
                        Self::next_chunk(worker, inbox, out);
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
            Outcome::Applied(()) => {
                self.inboxes.remove(&worker);
            }
            Outcome::Unknown => self.interrupt(worker),
            Outcome::Rejected(rejection) if rejection.is_whole() => self.interrupt(worker),
            Outcome::Rejected(rejection) if rejection.is_fenced_out() => {
                out.push(Effect::FencedOut);
            }
            // Gone already.
            Outcome::Rejected(Rejection { reason: Reason::NoNode, .. }) => {
                self.inboxes.remove(&worker);
            }
            // Something that is no job is in it. The sweep looks again; nobody is helped by hurry.
            Outcome::Rejected(_) => self.interrupt(worker),
        }
    }

    fn interrupt(&mut self, worker: WorkerId) {
        if let Some(inbox) = self.inboxes.get_mut(&worker) {
            inbox.phase = Phase::Interrupted;
        }
    }
}

/// What to do about one orphan; `gone` is what of its end an operator's hand did before, `again` that it was rejected. `None` when it is in the inbox no more.
fn decide(
    worker: WorkerId,
    orphan: Orphan,
    gone: &[String],
    again: bool,
    wall: WallMillis,
) -> Option<(Item, Vec<Op>)> {
    let Orphan { job, assignment, record } = orphan;
    let drop_assignment = || vec![Op::Delete { path: path::assignment(worker, &job), version: None }];
    let quarantine = |why: String| {
        // The note may be there already.
        let ops = if again { drop_assignment() } else { txn::quarantine(&job, worker, &why) };
        (Fate::Quarantined(why), ops)
    };
    let (fate, ops) = match (assignment, record) {
        (Stored::Absent, _) => return None,
        (_, Stored::Absent) => (Fate::Stale, drop_assignment()),
        (_, Stored::Unreadable(why)) => quarantine(format!("record: {why}")),
        (_, Stored::Value(record, _)) if record.is_terminal() => (Fate::Stale, drop_assignment()),
        (Stored::Unreadable(why), Stored::Value(..)) => quarantine(format!("assignment: {why}")),
        (Stored::Value(assignment, assignment_version), Stored::Value(record, version)) => {
            // What its worker would have handed back unrun is no loss.
            let ending = if assignment.agrees(&record) { Ending::Lost } else { Ending::Released };
            let (assigned, read) = ((&assignment, assignment_version), (record, version));
            let (closed, ops) = txn::take_back(&job, worker, assigned, read, ending, gone, wall);
            let end = match (assignment.cancel, closed.is_terminal()) {
                (true, _) => Recovered::Cancelled,
                (false, true) => Recovered::Dead,
                (false, false) => Recovered::Queued,
            };
            (Fate::Closed { kind: closed.kind, end }, ops)
        }
    };
    Some((Item { job, fate }, ops))
}

#[cfg(test)]
mod tests;
