//! The lease of one attempt and its pending writes.

use std::time::Duration;

use super::PROGRESS_EVERY;
use crate::budget::MIN_LEASE;
use crate::job::{Assignment, AttemptKey, Progress};
use crate::time::Millis;

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Lease {
    /// The stored assignment, as far as known.
    assignment: Assignment,
    version: i32,
    /// Start and end of the current lease.
    since: Millis,
    until: Millis,
    /// Duration of each automatic renewal.
    auto: Option<Duration>,
    /// A renewal was requested: extend the lease to this time.
    wanted: Option<Millis>,
    /// The handler waits for a beat that is not sent yet: the highest ticket.
    confirm: Option<u64>,
    /// Reported by the handler and not written yet.
    progress: Option<Progress>,
    /// The beat in flight.
    sending: Option<Sending>,
    /// Time of the last write, or of the start.
    wrote: Millis,
    phase: Phase,
    clock: Clock,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Sending {
    written: Assignment,
    at: Millis,
    /// The ticket that the beat confirms.
    confirm: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Phase {
    Idle,
    InFlight,
    /// The stored state is unknown: read it.
    Unresolved,
    /// The stored bytes cannot be decoded. A write would erase them.
    Unreadable,
}

/// Which lease times were reported to the executor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Clock {
    Nothing { third: Millis },
    Third,
    Lapsed,
}

/// The lease time to report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum LeaseNotice {
    Third,
    Lapsed,
}

impl Lease {
    pub(super) fn new(assignment: Assignment, version: i32, auto: bool, now: Millis) -> Self {
        let lease = assignment.lease;
        Self {
            version,
            since: now,
            until: now + lease,
            auto: auto.then_some(lease),
            wanted: None,
            confirm: None,
            progress: None,
            sending: None,
            wrote: now,
            phase: Phase::Idle,
            clock: Clock::Nothing { third: now + lease / 3 },
            assignment,
        }
    }

    pub(super) fn attempt(&self) -> u32 {
        self.assignment.attempt
    }

    pub(super) fn key(&self) -> AttemptKey {
        self.assignment.key()
    }

    pub(super) fn version(&self) -> i32 {
        self.version
    }

    pub(super) fn until(&self) -> Millis {
        self.until
    }

    pub(super) fn phase(&self) -> Phase {
        self.phase
    }

    pub(super) fn is_flagged(&self) -> bool {
        self.assignment.cancel
    }

    /// When the executor needs the next report.
    pub(super) fn alarm(&self) -> Option<Millis> {
        match self.clock {
            Clock::Nothing { third } => Some(third.min(self.until)),
            Clock::Third => Some(self.until),
            Clock::Lapsed => None,
        }
    }

    pub(super) fn next_notice(&mut self) -> LeaseNotice {
        match self.clock {
            Clock::Nothing { .. } => {
                self.clock = Clock::Third;
                LeaseNotice::Third
            }
            Clock::Third | Clock::Lapsed => {
                self.clock = Clock::Lapsed;
                LeaseNotice::Lapsed
            }
        }
    }

    /// When the assignment needs a write.
    pub(super) fn due(&self) -> Option<Millis> {
        if self.phase != Phase::Idle || self.clock == Clock::Lapsed {
            return None;
        }
        let lease = self.until.since(self.since);
        let renewal = (self.auto.is_some() || self.wanted.is_some()).then_some(self.since + lease / 3);
        let progress = self.progress.is_some().then_some(self.wrote + PROGRESS_EVERY);
        // A rejected write waits, too (`refused` sets `wrote` to a later time).
        let confirm = self.confirm.map(|_| self.wrote);
        renewal.map(|at| at.max(self.wrote)).into_iter().chain(progress).chain(confirm).min()
    }

    pub(super) fn ask(
        &mut self,
        renew: Option<Duration>,
        confirm: Option<u64>,
        progress: Option<Progress>,
        now: Millis,
    ) {
        if let Some(lease) = renew {
            let wanted = now + lease;
            if wanted > self.until.max(self.wanted.unwrap_or_default()) {
                self.wanted = Some(wanted);
            }
        }
        self.confirm = self.confirm.max(confirm);
        self.progress = progress.or(self.progress.take());
    }

    /// Returns the assignment that a beat would write now.
    pub(super) fn beat(&self, now: Millis) -> Assignment {
        let renewed = self.auto.map(|lease| now + lease);
        let until = renewed.into_iter().chain(self.wanted).fold(self.until, Millis::max);
        Assignment {
            lease: until.since(now).max(MIN_LEASE),
            progress: self.progress.clone().or_else(|| self.assignment.progress.clone()),
            ..self.assignment.clone()
        }
    }

    pub(super) fn sent(&mut self, written: Assignment, now: Millis) {
        self.phase = Phase::InFlight;
        self.wrote = now;
        self.sending = Some(Sending { written, at: now, confirm: self.confirm.take() });
    }

    /// The beat was applied. Returns the end of the lease and the confirmed ticket.
    pub(super) fn written(&mut self) -> (Millis, Option<u64>) {
        self.phase = Phase::Idle;
        let Some(Sending { written, at, confirm }) = self.sending.take() else { return (self.until, None) };
        self.version += 1;
        self.stands(written, at);
        (self.until, confirm)
    }

    fn stands(&mut self, written: Assignment, at: Millis) {
        // Progress that was reported while the beat was in flight still needs a write.
        if self.progress == written.progress {
            self.progress = None;
        }
        (self.since, self.until) = (at, at + written.lease);
        self.wanted = self.wanted.filter(|wanted| *wanted > self.until);
        self.assignment = written;
    }

    pub(super) fn unresolved(&mut self) {
        self.phase = Phase::Unresolved;
    }

    pub(super) fn not_written(&mut self) {
        self.phase = Phase::Idle;
        let unconfirmed = self.sending.take().and_then(|sending| sending.confirm);
        self.confirm = self.confirm.max(unconfirmed);
    }

    pub(super) fn refused(&mut self, now: Millis) {
        self.not_written();
        self.wrote = now + PROGRESS_EVERY;
    }

    /// The stored assignment of this attempt was read. Returns the end of the lease.
    pub(super) fn found(&mut self, found: Assignment, version: i32) -> Millis {
        self.not_written();
        if version != self.version {
            // The content does not show whether the write was this worker's, because another process may have
            // written the same. The lease keeps its end and is renewed again.
            (self.version, self.assignment) = (version, found);
            if self.progress == self.assignment.progress {
                self.progress = None;
            }
        }
        self.until
    }

    /// The assignment cannot be decoded: nothing is written until the attempt ends.
    pub(super) fn overwritten(&mut self, version: i32) {
        self.phase = Phase::Unreadable;
        self.version = version;
    }

    /// Hands over the state of the attempt where it is newer than the executor's.
    pub(super) fn leave(self, assignment: &mut Assignment, version: &mut i32) {
        let newest = if self.version >= *version { self.assignment.clone() } else { assignment.clone() };
        *assignment = Assignment {
            cancel: assignment.cancel || self.assignment.cancel,
            // The last progress, whether it was written or not.
            progress: self.progress.or(self.assignment.progress).or(newest.progress),
            ..newest
        };
        *version = self.version.max(*version);
    }
}
