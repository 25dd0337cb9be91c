//! Ends the attempts of members of assigned segments.
//!
//! ```text
//!            succeeded            chunk of results applied
//!  Running ────────────▶ Result ──────────────────────────▶ settled
//!     │ └─ any other end, a request of the handler, or EXTRACT_AFTER ──extraction applied──▶ a job of the inbox
//!     └─ handed back before it began ─────────────────────────────────extraction applied──▶ a job that waits
//! ```
//!
//! A member that is extracted continues as a job: its lease is kept by [`beats`](super::beats), and its attempt is closed by the
//! [`reporter`](super::reporter).
//!
//! A segment has one write in flight. Results are written when all open members have one, when the oldest is [`RESULTS_EVERY`] old,
//! or when they have [`RESULT_BYTES`]; extractions go first. Small segments share a transaction: a segment whose members all have
//! results waits as long for members of other segments, until [`BATCH`] members leave together. While a transaction is in flight,
//! fewer wait for its end. At most [`WINDOW`] are in flight, and one more.
//!
//! | outcome of a write | reaction |
//! | --- | --- |
//! | applied | its members have left |
//! | rejected, or no reply | read the assignment, then the chunks: a chunk shows which members have left; others are written again |
//! | rejected because of another segment | write again |
//! | refused as a whole | read after [`RETRY_REFUSED`] |
//! | not sent | send again once the session is back, or after [`RETRY`] |
//! | refused because of this segment | read after [`RETRY_REFUSED`] |
//!
//! **A write whose reply was lost may be applied after the read** found nothing. Then the next write is rejected, because the
//! version of the assignment has changed, and the next read finds the chunk. A chunk of results can only be ours. A chunk of extracted
//! members may be the leader's, which took this worker for dead or silent: the members are jobs then as well, and the reads of
//! `inbox_watcher` and `reporter` find out which. A member that was to wait is never run again from here: if the leader has put it
//! into the inbox instead, it is started from there.

mod held_segment;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::budget::MAX_READ_BATCH;
use crate::job::Assignment;
use crate::machine::worker::{Finished, Lookup, Packed};
use crate::name::{JobId, WorkerId};
use crate::outcome::{Outcome, Reason, Rejection};
use crate::segment::{Chunks, EXTRACT_AFTER, MemberId, SegmentId};
use crate::time::{Millis, WallMillis};
use crate::txn::{Batch, Locus};

use held_segment::{Held, Write};

use super::reporter::{BATCH, RETRY_REFUSED, WINDOW};

/// Longest wait of a result for others.
pub const RESULTS_EVERY: Duration = Duration::from_millis(10);

/// Results are written when they have this many bytes. It is also the limit of a chunk with several results.
pub const RESULT_BYTES: usize = 64 * 1024;

/// Delay before an unsent or unanswered request, or one whose rejection nothing explains, is tried again if the session reports nothing.
pub const RETRY: Duration = Duration::from_millis(100);

/// Segments per read of unknown outcomes.
const READ_SEGMENTS: usize = MAX_READ_BATCH / 2;

/// Input of the machine.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Event {
    /// The members of this segment were handed to the executor.
    Assigned(Arc<Packed>),
    /// These members begin.
    Began(Vec<MemberId>),
    /// Members have ended here.
    Finished(Vec<Finished>, WallMillis),
    /// The handler of this member asks for something that only a job with a record has.
    Extract(MemberId),
    /// The outcome of a transaction.
    Committed(Batch<SegmentId>, Outcome<()>),
    /// The assignments of segments were read, then the names of their chunks.
    Read(Vec<(SegmentId, Lookup<Assignment>, Chunks)>),
    /// That read was not answered.
    ReadFailed(Vec<SegmentId>),
    /// The connection is lost: send nothing.
    Hold,
    /// The connection is back: read back unknown writes and continue.
    Resume,
    /// The time of an [`Effect::WakeAt`] has come.
    Wake,
}

/// Output of the machine.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Effect {
    /// Commit the writes of these segments, and return them with the outcome.
    Commit(Batch<SegmentId>),
    /// Read the assignments of these segments, then the names of their chunks.
    Read(Vec<SegmentId>),
    /// Ask the executor to hand back the members of this segment that have not begun.
    HandBack(SegmentId),
    /// This attempt succeeded at this time, and its result is stored.
    Succeeded(Box<Finished>, WallMillis),
    /// This member waits again. It never began.
    Returned(JobId),
    /// This member, which runs, is a job of the inbox now.
    Extracted(JobId),
    /// This member, which has ended, is a job of the inbox now: close its attempt.
    Close(Box<Finished>),
    /// All members have left this segment.
    Over(SegmentId),
    /// ZooKeeper refuses the writes of these segments; they are tried again.
    Refused(Vec<SegmentId>, Reason),
    /// Send [`Event::Wake`] at this time.
    WakeAt(Millis),
}

/// State machine of one incarnation.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Segments {
    worker: WorkerId,
    held: BTreeMap<SegmentId, Held>,
    in_flight: usize,
    up: bool,
    armed: Option<Millis>,
}

impl Segments {
    /// Creates the machine without segments.
    #[must_use]
    pub fn new(worker: WorkerId) -> Self {
        Self { worker, held: BTreeMap::new(), in_flight: 0, up: true, armed: None }
    }

    /// Whether this job is a member that is not known to be extracted.
    #[must_use]
    pub fn holds(&self, job: &JobId) -> bool {
        MemberId::of_job(job).is_some_and(|member| {
            self.held.get(&member.segment).is_some_and(|held| held.is_open(member.number))
        })
    }

    /// Handles one event.
    pub fn handle(&mut self, now: Millis, event: Event, out: &mut Vec<Effect>) {
        match event {
            Event::Assigned(packed) => {
                let held = Held::new(self.worker, Arc::clone(&packed), packed.asked + EXTRACT_AFTER);
                self.held.insert(packed.id, held);
            }
            Event::Began(members) => {
                for member in members {
                    if let Some(held) = self.held.get_mut(&member.segment) {
                        held.began(member.number);
                    }
                }
            }
            Event::Finished(finished, at) => {
                finished.into_iter().for_each(|finished| self.finished(now, Box::new(finished), at, out));
            }
            Event::Extract(member) => {
                if let Some(held) = self.held.get_mut(&member.segment) {
                    held.extract(member.number);
                }
            }
            Event::Committed(batch, outcome) => {
                self.in_flight -= 1;
                self.committed(now, batch, outcome, out);
            }
            Event::Read(found) => {
                for (id, assignment, chunks) in found {
                    if let Some(held) = self.held.get_mut(&id) {
                        held.read(now, &assignment, &chunks, out);
                    }
                }
            }
            Event::ReadFailed(ids) => self.set(&ids, Write::Unknown { retry: now + RETRY }),
            Event::Hold => self.up = false,
            Event::Resume => {
                self.up = true;
                self.held.values_mut().for_each(|held| held.retry_at(now));
            }
            Event::Wake => self.armed = None,
        }
        self.advance(now, out);
    }

    fn finished(&mut self, now: Millis, finished: Box<Finished>, at: WallMillis, out: &mut Vec<Effect>) {
        let member = MemberId::of_job(&finished.start.job);
        let held = member.and_then(|member| Some((member, self.held.get_mut(&member.segment)?)));
        match held {
            Some((member, held)) if held.is_open(member.number) => {
                held.finished(now, member.number, finished, at);
            }
            // It was extracted while it ran.
            Some(_) | None => out.push(Effect::Close(Box::new(unpacked(*finished)))),
        }
    }

    fn committed(
        &mut self,
        now: Millis,
        mut batch: Batch<SegmentId>,
        outcome: Outcome<()>,
        out: &mut Vec<Effect>,
    ) {
        let others = match outcome {
            Outcome::Applied(()) => {
                for id in batch.keys() {
                    if let Some(held) = self.held.get_mut(id) {
                        held.applied(out);
                    }
                }
                return;
            }
            Outcome::Unknown => Write::Unknown { retry: now },
            Outcome::Rejected(Rejection { reason: Reason::NotSent, .. }) => Write::Due { from: now + RETRY },
            Outcome::Rejected(rejection) if rejection.is_whole() => {
                out.push(Effect::Refused(batch.keys().copied().collect(), rejection.reason));
                Write::Unknown { retry: now + RETRY_REFUSED }
            }
            Outcome::Rejected(Rejection { at, reason }) => {
                let culprit = match batch.locate(at) {
                    Some(Locus::Group { group, .. }) => group,
                    // A batch of segments has no fence, and a rejection never points past the last operation.
                    Some(Locus::Fence(_)) | None => 0,
                };
                let (id, _) = batch.remove(culprit);
                self.rejected(now, id, reason, out);
                Write::Due { from: Millis(0) }
            }
        };
        self.set(&batch.keys().copied().collect::<Vec<_>>(), others);
    }

    fn set(&mut self, ids: &[SegmentId], write: Write) {
        for id in ids {
            if let Some(held) = self.held.get_mut(id) {
                held.write = write;
            }
        }
    }

    fn rejected(&mut self, now: Millis, id: SegmentId, reason: Reason, out: &mut Vec<Effect>) {
        let Some(held) = self.held.get_mut(&id) else { return };
        match reason {
            Reason::NoNode | Reason::NodeExists | Reason::BadVersion | Reason::NotEmpty => {
                (held.write, held.rejected) = (Write::Unknown { retry: now }, true);
            }
            Reason::NoAuth
            | Reason::NotSent
            | Reason::OverBudget(_)
            | Reason::Refused(_)
            | Reason::Other(_) => {
                // The leader may have extracted the members in the meantime.
                held.write = Write::Unknown { retry: now + RETRY_REFUSED };
                out.push(Effect::Refused(vec![id], reason));
            }
        }
    }

    /// Sends the reads and writes that are due, and forgets the segments that are over.
    fn advance(&mut self, now: Millis, out: &mut Vec<Effect>) {
        let mut next = None::<Millis>;
        let (mut unknown, mut due, mut members) = (Vec::new(), Vec::new(), 0);
        self.held.retain(|id, held| {
            if held.is_over() {
                out.push(Effect::Over(*id));
                return false;
            }
            if held.is_late(now) {
                out.push(Effect::HandBack(*id));
            }
            if self.up {
                unknown.extend(held.read_back(now).then_some(*id));
                let leave = held.due(now);
                members += leave;
                due.extend((leave > 0).then_some(*id));
            }
            let wake = held.next_wake(now);
            next = [next, wake].into_iter().flatten().min();
            true
        });
        out.extend(unknown.chunks(READ_SEGMENTS).map(|ids| Effect::Read(ids.to_vec())));
        if members >= BATCH || (self.in_flight == 0 && self.is_worth_a_write(now, &due)) {
            self.send(due, out);
        }
        if let Some(at) = next.filter(|at| self.armed.is_none_or(|armed| *at < armed)) {
            self.armed = Some(at);
            out.push(Effect::WakeAt(at));
        }
    }

    /// Whether these segments are written although few members leave: one of them must not wait, or no other segment can join.
    fn is_worth_a_write(&self, now: Millis, due: &[SegmentId]) -> bool {
        let waits = |id| self.held.get(id).is_some_and(|held: &Held| held.waits_for_others(now));
        due.iter().any(|id| !waits(id)) || due.len() == self.held.len()
    }

    /// Sends the writes of these segments in as few transactions as they fit, while the window has room.
    fn send(&mut self, due: Vec<SegmentId>, out: &mut Vec<Effect>) {
        let mut batch = Batch::new(Vec::new());
        for id in due {
            if self.in_flight >= WINDOW {
                break;
            }
            let ops = self.held.get_mut(&id).map(Held::write);
            if let Some(ops) = ops
                && let Err((id, ops)) = batch.push(id, ops)
            {
                let full = std::mem::replace(&mut batch, Batch::new(Vec::new()));
                self.commit(full, out);
                batch.push(id, ops).expect("the first group of a batch fits");
            }
        }
        if !batch.is_empty() {
            self.commit(batch, out);
        }
    }

    fn commit(&mut self, batch: Batch<SegmentId>, out: &mut Vec<Effect>) {
        self.in_flight += 1;
        out.push(Effect::Commit(batch));
    }
}

/// The attempt as that of a job: record and assignment are as the extraction has written them.
fn unpacked(mut finished: Finished) -> Finished {
    finished.start.packed = None;
    finished
}

#[cfg(test)]
mod tests;
