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
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Phase {
    Idle,
    InFlight,
    /// The stored state is unknown: read it.
    Unresolved,
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
        renewal.map(|at| at.max(self.wrote)).into_iter().chain(progress).min()
    }

    pub(super) fn ask(&mut self, renew: Option<Duration>, progress: Option<Progress>, now: Millis) {
        if let Some(lease) = renew {
            let wanted = now + lease;
            if wanted > self.until.max(self.wanted.unwrap_or_default()) {
                self.wanted = Some(wanted);
            }
        }
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
        self.sending = Some(Sending { written, at: now });
    }

    /// The beat was applied. Returns the end of the lease.
    pub(super) fn written(&mut self) -> Millis {
        self.phase = Phase::Idle;
        if let Some(Sending { written, at }) = self.sending.take() {
            self.version += 1;
            self.stands(written, at);
        }
        self.until
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
        self.sending = None;
    }

    pub(super) fn refused(&mut self, now: Millis) {
        self.not_written();
        self.wrote = now + PROGRESS_EVERY;
    }

    /// The stored assignment of this attempt was read. Returns the end of the lease.
    pub(super) fn found(&mut self, found: Assignment, version: i32) -> Millis {
        self.phase = Phase::Idle;
        self.sending = None;
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

    /// The assignment cannot be decoded: a write would erase it.
    pub(super) fn overwritten(&mut self, version: i32) {
        self.not_written();
        self.version = version;
        (self.auto, self.wanted) = (None, None);
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
