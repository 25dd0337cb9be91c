//! Closes attempts: builds batches of closing transactions and resolves rejected and lost ones.
//!
//! ```text
//!  Report ──▶ pending ──batch──▶ in flight ──applied──▶ settled
//!               ▲  ▲                │  │
//!               │  └────not sent────┘  └─rejected, or reply lost─▶ read back ──▶ settled, or pending again
//!               └────refused, after a wait
//! ```
//!
//! | read back | meaning |
//! | --- | --- |
//! | the record has our version | not applied: send again, as cancelled if flagged and not succeeded |
//! | a newer version, closed by this attempt and worker | ours: settled |
//! | another newer version, or the record is absent | another process closed the attempt: our result is dropped |
//!
//! **A write whose reply was lost may be applied after the read-back** found nothing. Then the second write meets a
//! newer record version and is rejected, and the next read-back recognises the first write as ours. If the two
//! differ (a cancel came in between), the first one applied is the only end of the attempt and the other is
//! rejected, because both carry the same record version (S2, S9).
//!
//! **A close whose record was read long ago is not sent**: the record is read first
//! ([`BELIEVED`](crate::machine::worker::BELIEVED)). While the worker hung, the attempt may have been revoked, the
//! record removed after its retention, and the id reused by another job, whose versions start from zero. The token
//! distinguishes the two jobs.
//!
//! Limits: [`BATCH`] closes per batch, [`WINDOW`] batches in flight; sent immediately when no batch is in flight.

mod close;

use std::collections::VecDeque;
use std::time::Duration;

pub use close::{Close, Settled};

use crate::budget::MAX_READ_BATCH;
use crate::machine::worker::{Finished, Found};
use crate::name::WorkerId;
use crate::outcome::{Outcome, Reason, Rejection};
use crate::time::{Millis, WallMillis};
use crate::txn::{Batch, Locus};
use close::Decision;

/// Closes per batch: at the knee of ZooKeeper's throughput curve, small enough that a rejection wastes little.
pub const BATCH: usize = 100;

/// Batches in flight: enough to fill the server's pipeline in addition to the other roles of a node.
pub const WINDOW: usize = 8;

/// Delay before an unsent or unanswered request is tried again if the session reports nothing.
pub const RETRY: Duration = Duration::from_millis(100);

/// Delay before a close is tried again that ZooKeeper rejected without a conflict.
pub const RETRY_REFUSED: Duration = Duration::from_secs(1);

/// Input of the machine.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Event {
    /// These attempts have finished here. Each comes with 64 random bits for its backoff.
    Report(WallMillis, Vec<(Finished, u64)>),
    /// The outcome of a batch.
    Committed(Batch<Close>, Outcome<()>),
    /// A read was answered.
    Read(Vec<(Close, Found)>),
    /// A read was not answered.
    ReadFailed(Vec<Close>),
    /// The connection is lost: send nothing.
    Hold,
    /// The connection is back: read back unknown closes and continue.
    Resume,
    /// The time of an [`Effect::WakeAt`] has come.
    Wake,
}

/// Output of the machine.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Effect {
    /// Commit this batch and return it with its outcome.
    Commit(Batch<Close>),
    /// Read the assignments and records of these jobs.
    Read(Vec<Close>),
    /// This attempt is closed, by this worker or by another process.
    Settled(Box<Close>, Settled),
    /// A lost reply was resolved.
    Resolved {
        /// Whether the write was applied.
        applied: bool,
    },
    /// ZooKeeper rejects the close of this attempt; it is tried again.
    Refused(Box<Close>, Reason),
    /// Send [`Event::Wake`] at this time.
    WakeAt(Millis),
}

/// Whether requests reach ZooKeeper: [`Connectivity`](crate::machine::worker::Connectivity), plus failures observed
/// here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Reachability {
    Up,
    /// A request could not be sent, and the session has not reported the reason yet.
    Doubtful,
    Down,
}

/// State machine of one incarnation.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Reporter {
    worker: WorkerId,
    /// The ids of the same process whose sessions have expired.
    former: Vec<WorkerId>,
    reachability: Reachability,
    pending: VecDeque<Close>,
    in_flight: usize,
    unresolved: Vec<Close>,
    refused: Vec<(Millis, Close)>,
}

impl Reporter {
    /// Creates the machine without reports. `former` are the ids that the registration names: the closes excuse their losses.
    #[must_use]
    pub fn new(worker: WorkerId, former: Vec<WorkerId>) -> Self {
        Self {
            worker,
            former,
            reachability: Reachability::Up,
            pending: VecDeque::new(),
            in_flight: 0,
            unresolved: Vec::new(),
            refused: Vec::new(),
        }
    }

    /// Handles one event.
    pub fn handle(&mut self, now: Millis, event: Event, out: &mut Vec<Effect>) {
        match event {
            Event::Report(at, finished) => {
                for (finished, random) in finished {
                    self.pending.push_back(Close::new(self.worker, &self.former, finished, at, random));
                }
            }
            Event::Committed(batch, outcome) => {
                self.in_flight -= 1;
                self.committed(now, batch, outcome, out);
            }
            Event::Read(found) => {
                for (close, found) in found {
                    self.decide(now, close, &found, out);
                }
            }
            Event::ReadFailed(closes) => {
                self.unresolved.extend(closes);
                self.doubt(now, out);
            }
            Event::Hold => self.reachability = Reachability::Down,
            Event::Resume => self.reachability = Reachability::Up,
            Event::Wake => match self.reachability {
                Reachability::Doubtful => self.reachability = Reachability::Up,
                Reachability::Up | Reachability::Down => {}
            },
        }
        if self.reachability == Reachability::Up {
            self.retry(now);
            self.read_back(now, out);
            self.send(now, out);
            // Closes that `send` found too old.
            self.read_back(now, out);
        }
    }

    fn send(&mut self, now: Millis, out: &mut Vec<Effect>) {
        while !self.pending.is_empty()
            && (self.in_flight == 0 || (self.in_flight < WINDOW && self.pending.len() >= BATCH))
        {
            let mut batch = Batch::new(Vec::new());
            while batch.len() < BATCH {
                let Some(close) = self.pending.pop_front() else { break };
                if close.is_old(now) {
                    self.unresolved.push(close);
                    continue;
                }
                let ops = close.ops();
                if let Err((close, _)) = batch.push(close, ops) {
                    self.pending.push_front(close);
                    break;
                }
            }
            if !batch.is_empty() {
                self.in_flight += 1;
                out.push(Effect::Commit(batch));
            }
        }
    }

    fn committed(&mut self, now: Millis, batch: Batch<Close>, outcome: Outcome<()>, out: &mut Vec<Effect>) {
        match outcome {
            Outcome::Applied(()) => {
                for (close, _) in batch.into_groups() {
                    let settled = close.as_written();
                    out.push(Effect::Settled(Box::new(close), settled));
                }
            }
            Outcome::Unknown => {
                self.unresolved.extend(batch.into_groups().into_iter().map(|(close, _)| close.unknown()));
            }
            Outcome::Rejected(Rejection { reason: Reason::NotSent, .. }) => {
                self.again(batch);
                self.doubt(now, out);
            }
            Outcome::Rejected(rejection) => self.rejected(now, batch, rejection, out),
        }
    }

    fn again(&mut self, batch: Batch<Close>) {
        for (close, _) in batch.into_groups().into_iter().rev() {
            self.pending.push_front(close);
        }
    }

    /// One close failed the batch: it is decided separately, the rest is sent again.
    fn rejected(
        &mut self,
        now: Millis,
        mut batch: Batch<Close>,
        rejection: Rejection,
        out: &mut Vec<Effect>,
    ) {
        let (group, op) = match batch.locate(rejection.at) {
            Some(Locus::Group { group, op, .. }) => (group, op),
            // A batch of closes has no fence, and a rejection never points past the last operation.
            Some(Locus::Fence(_)) | None => (0, 0),
        };
        let (close, _) = batch.remove(group);
        self.again(batch);
        if let Some(gone) = close.gone_part(op, &rejection.reason) {
            return self.pending.push_back(close.without_part(gone));
        }
        match rejection.reason {
            reason @ (Reason::NoNode | Reason::NodeExists | Reason::BadVersion | Reason::NotEmpty) => {
                self.unresolved.push(close.refused(reason));
            }
            reason @ (Reason::NoAuth
            | Reason::NotSent
            | Reason::OverBudget(_)
            | Reason::Refused(_)
            | Reason::Other(_)) => self.put_off(now, close, reason, out),
        }
    }

    fn put_off(&mut self, now: Millis, close: Close, reason: Reason, out: &mut Vec<Effect>) {
        let due = now + RETRY_REFUSED;
        out.extend([Effect::Refused(Box::new(close.clone()), reason), Effect::WakeAt(due)]);
        self.refused.push((due, close));
    }

    fn decide(&mut self, now: Millis, close: Close, found: &Found, out: &mut Vec<Effect>) {
        let unknown = close.is_unknown();
        match close.decide(found) {
            Decision::Settled(close, settled) => {
                if unknown && settled != Settled::Zombie {
                    out.push(Effect::Resolved { applied: true });
                }
                out.push(Effect::Settled(close, settled));
            }
            Decision::Again(close) => {
                if unknown {
                    out.push(Effect::Resolved { applied: false });
                }
                self.pending.push_back(*close);
            }
            Decision::Blocked(close, reason) => self.put_off(now, *close, reason, out),
        }
    }

    /// Waits for the session to report the problem, but only for a limited time: the report may have come before
    /// the failure.
    fn doubt(&mut self, now: Millis, out: &mut Vec<Effect>) {
        if self.reachability == Reachability::Up {
            self.reachability = Reachability::Doubtful;
            out.push(Effect::WakeAt(now + RETRY));
        }
    }

    fn retry(&mut self, now: Millis) {
        for (_, close) in self.refused.extract_if(.., |(due, _)| *due <= now) {
            self.pending.push_back(close);
        }
    }

    fn read_back(&mut self, now: Millis, out: &mut Vec<Effect>) {
        while !self.unresolved.is_empty() {
            let rest = self.unresolved.split_off(self.unresolved.len().min(MAX_READ_BATCH / 2));
            let few = std::mem::replace(&mut self.unresolved, rest);
            out.push(Effect::Read(few.into_iter().map(|close| close.read_at(now)).collect()));
        }
    }
}

#[cfg(test)]
#[path = "reporter_tests.rs"]
mod tests;
