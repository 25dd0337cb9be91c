//! One segment in the inbox.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{BATCH, Effect, RESULT_BYTES, RESULTS_EVERY, RETRY, unpacked};
use crate::job::{Assignment, Ending, Payload};
use crate::machine::worker::{Finished, Lookup, Packed};
use crate::name::{JobId, WorkerId};
use crate::segment::{ChunkEnd, Chunks, MemberId, Members, Results};
use crate::time::{Millis, WallMillis};
use crate::txn::Op;
use crate::txn::segment::{AssignedSegment, extract_assigned, succeed};

/// The state of the writes of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Write {
    /// Nothing is in flight. The next write is not sent before this time.
    Due {
        from: Millis,
    },
    /// A write is in flight, or a read.
    InFlight(Sent),
    /// It is unknown which members have left: read from this time on.
    Unknown {
        retry: Millis,
    },
    Reading,
}

/// What a write in flight does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Sent {
    Results(Members),
    Extraction { assigned: Members, waiting: Members },
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Held {
    packed: Arc<Packed>,
    /// `None` when all members have left.
    at: Option<AssignedSegment>,
    pub(super) write: Write,
    /// Whether ZooKeeper has rejected the last write, and no read has explained it yet.
    pub(super) rejected: bool,
    began: Members,
    results: BTreeMap<u8, Succeeded>,
    bytes: usize,
    /// To be extracted: they run, or have ended without a result.
    leaving: Members,
    ended: BTreeMap<u8, Box<Finished>>,
    /// To be extracted: they were handed back before they began.
    returning: Members,
    /// When the members that have not ended are extracted.
    extract_at: Millis,
    is_late: bool,
}

/// A result that is not stored yet.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Succeeded {
    since: Millis,
    at: WallMillis,
    finished: Box<Finished>,
}

impl Succeeded {
    fn result(&self) -> Option<&Payload> {
        let Ending::Succeeded(result) = &self.finished.ending else { return None };
        Some(result)
    }
}

impl Held {
    pub(super) fn new(worker: WorkerId, packed: Arc<Packed>, extract_at: Millis) -> Self {
        let Packed { id, ref assignment, version, .. } = *packed;
        let at = AssignedSegment { id, worker, assignment: assignment.clone(), version, open: id.members() };
        Self {
            at: Some(at),
            write: Write::Due { from: Millis(0) },
            rejected: false,
            began: Members::NONE,
            results: BTreeMap::new(),
            bytes: 0,
            leaving: Members::NONE,
            ended: BTreeMap::new(),
            returning: Members::NONE,
            extract_at,
            is_late: false,
            packed,
        }
    }

    pub(super) fn is_over(&self) -> bool {
        self.at.is_none()
    }

    fn open(&self) -> Members {
        self.at.as_ref().map_or(Members::NONE, |at| at.open)
    }

    pub(super) fn is_open(&self, number: u8) -> bool {
        self.open().contains(number)
    }

    pub(super) fn began(&mut self, number: u8) {
        self.began = self.began.with(Members::one(number));
        if self.is_late {
            self.extract(number);
        }
    }

    pub(super) fn extract(&mut self, number: u8) {
        if !self.results.contains_key(&number) {
            self.leaving = self.leaving.with(Members::one(number).within(self.open()));
        }
    }

    pub(super) fn finished(&mut self, now: Millis, number: u8, finished: Box<Finished>, at: WallMillis) {
        match &finished.ending {
            Ending::Succeeded(result) if !self.leaving.contains(number) => {
                self.bytes += result.bytes().len();
                self.results.insert(number, Succeeded { since: now, at, finished });
            }
            Ending::Released if !self.began.contains(number) => {
                self.returning = self.returning.with(Members::one(number));
            }
            // Also a success of a member that is already being extracted.
            Ending::Succeeded(_)
            | Ending::Failed(_)
            | Ending::Lost
            | Ending::Released
            | Ending::Cancelled
            | Ending::Invalid(_)
            | Ending::Snoozed(_)
            | Ending::LeaseExpired
            | Ending::Expired => {
                self.leaving = self.leaving.with(Members::one(number));
                self.ended.insert(number, finished);
            }
        }
    }

    /// Whether the members that have not ended are to be extracted from now on; true once.
    pub(super) fn is_late(&mut self, now: Millis) -> bool {
        if self.is_late || now < self.extract_at {
            return false;
        }
        self.is_late = true;
        self.began.iter().for_each(|number| self.extract(number));
        true
    }

    /// The session is back.
    pub(super) fn retry_at(&mut self, now: Millis) {
        match &mut self.write {
            Write::Due { from } => *from = now,
            Write::Unknown { retry } => *retry = now,
            Write::InFlight(_) | Write::Reading => {}
        }
    }

    /// When something is due that no event reports.
    pub(super) fn next_wake(&self, now: Millis) -> Option<Millis> {
        let late = (!self.is_late).then_some(self.extract_at);
        let write = match self.write {
            Write::Due { from } if from > now && self.wants_a_write(from) => Some(from),
            Write::Due { .. } => self.oldest().map(|oldest| oldest + RESULTS_EVERY),
            Write::Unknown { retry } => Some(retry),
            Write::InFlight(_) | Write::Reading => None,
        };
        [late, write].into_iter().flatten().filter(|at| *at > now).min()
    }

    fn wants_a_write(&self, now: Millis) -> bool {
        !self.to_be_extracted().is_empty() || self.wants_results(now)
    }

    fn wants_results(&self, now: Millis) -> bool {
        let have = self.results.keys().copied().collect::<Members>();
        let all = !have.is_empty() && have.includes(self.open());
        all || self.bytes >= RESULT_BYTES || self.oldest().is_some_and(|oldest| now >= oldest + RESULTS_EVERY)
    }

    /// When the oldest result came.
    fn oldest(&self) -> Option<Millis> {
        self.results.values().map(|result| result.since).min()
    }

    /// Whether it is unknown which members have left, and time to read that.
    pub(super) fn read_back(&mut self, now: Millis) -> bool {
        let is_due = matches!(self.write, Write::Unknown { retry } if retry <= now);
        if is_due {
            self.write = Write::Reading;
        }
        is_due
    }

    /// The number of members that leave with a write that is due, or [`BATCH`] if their results need a transaction of their own; 0 if no
    /// write is due.
    pub(super) fn due(&self, now: Millis) -> usize {
        let Write::Due { from } = self.write else { return 0 };
        let leaving = self.to_be_extracted();
        if from > now {
            0
        } else if !leaving.is_empty() {
            leaving.iter().count()
        } else if self.bytes >= RESULT_BYTES {
            BATCH
        } else if self.wants_results(now) {
            self.results.len()
        } else {
            0
        }
    }

    /// Whether nothing but the results of all open members is to be written, and none has waited for [`RESULTS_EVERY`].
    pub(super) fn waits_for_others(&self, now: Millis) -> bool {
        let young = self.oldest().is_some_and(|oldest| now < oldest + RESULTS_EVERY);
        young && self.to_be_extracted().is_empty() && self.bytes < RESULT_BYTES
    }

    fn to_be_extracted(&self) -> Members {
        self.leaving.with(self.returning).within(self.open())
    }

    /// The operations of the write that is due.
    pub(super) fn write(&mut self) -> Vec<Op> {
        let Some(at) = &self.at else { return Vec::new() };
        let (assigned, waiting) = (self.leaving.within(at.open), self.returning.within(at.open));
        if !assigned.with(waiting).is_empty() {
            self.write = Write::InFlight(Sent::Extraction { assigned, waiting });
            return extract_assigned(at, &self.packed.segment, assigned, waiting);
        }
        // A chunk has one result at least. Many large ones would exceed the size of a transaction.
        let mut bytes = 0;
        let fits = |it: &&Succeeded| {
            let size = it.result().map_or(0, |result| result.bytes().len());
            let fits = bytes == 0 || bytes + size <= RESULT_BYTES;
            bytes += size;
            fits
        };
        let stored = self.results.values().take_while(fits).count();
        let result = |(number, it): (&u8, &Succeeded)| Some((*number, it.at, it.result()?.clone()));
        let results = self.results.iter().take(stored).filter_map(result).collect();
        let results = Results { worker: at.worker, assigned_at: at.assignment.assigned_at, results };
        self.write = Write::InFlight(Sent::Results(results.members()));
        succeed(at, &results)
    }

    pub(super) fn applied(&mut self, out: &mut Vec<Effect>) {
        let Write::InFlight(sent) = self.write else { return };
        self.write = Write::Due { from: Millis(0) };
        let (succeeded, extracted) = match sent {
            Sent::Results(members) => (members, Members::NONE),
            Sent::Extraction { assigned, waiting } => (Members::NONE, assigned.with(waiting)),
        };
        self.at = self.at.take().and_then(|at| at.without(succeeded.with(extracted)));
        self.left(succeeded, extracted, out);
    }

    /// Handles what a read found after a write of unknown outcome.
    pub(super) fn read(
        &mut self,
        now: Millis,
        assignment: &Lookup<Assignment>,
        chunks: &Chunks,
        out: &mut Vec<Effect>,
    ) {
        if self.write != Write::Reading {
            return;
        }
        self.write = Write::Due { from: Millis(0) };
        let Some(at) = self.at.take() else { return };
        let succeeded = chunks.members(ChunkEnd::Succeeded).within(at.open);
        let found = match assignment {
            Lookup::Found(_, version) | Lookup::Unreadable { version, .. } => Some(*version),
            Lookup::Absent => None,
        };
        let left = match found {
            Some(_) => at.open.without(chunks.open(at.id)),
            // Without the assignment no member is left here.
            None => at.open,
        };
        let open = at.open.without(left);
        if std::mem::take(&mut self.rejected) && found == Some(at.version) && left.is_empty() {
            // The read does not explain the rejection. A pause bounds the rate of further attempts.
            self.write = Write::Due { from: now + RETRY };
        }
        self.at = found.filter(|_| !open.is_empty()).map(|version| AssignedSegment { version, open, ..at });
        self.left(succeeded, left.without(succeeded), out);
    }

    /// Reports members that have left.
    fn left(&mut self, succeeded: Members, extracted: Members, out: &mut Vec<Effect>) {
        let id = self.packed.id;
        let job = |number| MemberId { segment: id, number }.job();
        for number in succeeded.iter() {
            if let Some(Succeeded { at, finished, .. }) = self.take_result(number) {
                out.push(Effect::Succeeded(finished, at));
            }
        }
        for number in extracted.iter() {
            out.push(self.extracted(number, job(number)));
        }
        let left = succeeded.with(extracted);
        (self.leaving, self.returning) = (self.leaving.without(left), self.returning.without(left));
    }

    fn take_result(&mut self, number: u8) -> Option<Succeeded> {
        let taken = self.results.remove(&number)?;
        self.bytes -= taken.result().map_or(0, |result| result.bytes().len());
        Some(taken)
    }

    fn extracted(&mut self, number: u8, job: JobId) -> Effect {
        if self.returning.contains(number) {
            return Effect::Returned(job);
        }
        if let Some(finished) = self.ended.remove(&number) {
            return Effect::Close(Box::new(unpacked(*finished)));
        }
        // The leader has extracted it before its result was written.
        if let Some(Succeeded { finished, .. }) = self.take_result(number) {
            return Effect::Close(Box::new(unpacked(*finished)));
        }
        Effect::Extracted(job)
    }
}
