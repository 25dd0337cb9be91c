//! How fast a silent leader is replaced.
//!
//! The leader writes a *beat*: one multi that checks `/epoch` at its own epoch and sets `/leading`. The next candidate
//! replaces it when it has seen no new version of `/leading` for [`Failover::wait`], by one multi that sets `/leading` at
//! the version that it saw. The candidate after that one waits a little longer ([`Failover::wait_after`]) and replaces both,
//! because the next candidate may be dead or silent, too. The leader trusts itself for [`Failover::trust`], counted from the
//! *sending* of its last applied beat, and pauses then. So the two never act at the same time (S5):
//!
//! ```text
//!  leader     ─ t0: sends ─────────────────────── t0 + trust: pauses
//!  ZooKeeper  ───── t1: applied
//!  candidate  ────────── t2: sees the version ──────────────────── t2 + wait: claims
//! ```
//!
//! 1. A beat is sent before it is applied, and a version is seen after it was applied: t0 ≤ t1 ≤ t2.
//! 2. The claim is applied only if `/leading` still has that version, so this beat is the last one that was applied in the
//!    leader's epoch. A beat that arrives later is rejected by the check of the epoch. So the leader's trust ends at
//!    t0 + trust, or earlier: a beat with an unknown outcome extends nothing.
//! 3. The claim is sent at t2 + wait or later, and trust < wait. Two candidates may send one: only the first that is applied
//!    finds that version.
//!
//! Each time is an interval of one process's monotonic clock. The difference between the two bounds, a tenth of the wait
//! or more, covers clocks of different speeds and the time from the leader's last check of the clock to its last action. A
//! process that is suspended in between acts late: its writes are rejected by the epoch (S3).
//!
//! The times are one setting of the namespace, in `/config/failover`. It is created with the namespace and must not be
//! changed while nodes run, because each session reads it only once.

use std::time::Duration;

use crate::duration::DurationText;

/// The shortest time between two beats: a leader must not spend its time on beats.
pub const MIN_BEAT: Duration = Duration::from_millis(20);

/// The longest wait: later than this, the end of the leader's session always comes first.
pub const MAX_WAIT: Duration = Duration::from_secs(3600);

/// The trust is shorter than the wait by at least the wait divided by this.
const MARGIN: u32 = 10;

/// The wait divided by this is the time that each candidate has before the one after it claims.
const HEAD_START: u32 = 15;

/// The times of a leader's beats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Failover {
    /// The time between two beats. Default 1 s.
    pub beat: Duration,
    /// How long the leader trusts itself after it sent a beat that was applied. Default 2.7 s.
    pub trust: Duration,
    /// How long the next candidate waits for a beat. Default 3 s.
    pub wait: Duration,
}

impl Default for Failover {
    fn default() -> Self {
        Self {
            beat: Duration::from_secs(1),
            trust: Duration::from_millis(2_700),
            wait: Duration::from_secs(3),
        }
    }
}

/// The times contradict each other, or one of them is outside its bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FailoverError {
    /// The beats are too frequent, or the wait is too long.
    #[error(
        "the beat must be at least {} and the wait at most {}, not {} and {}",
        DurationText(MIN_BEAT),
        DurationText(MAX_WAIT),
        DurationText(.0.beat),
        DurationText(.0.wait)
    )]
    Range(Failover),
    /// Two beats do not fit into the trust: one slow reply would pause the leader.
    #[error("the trust of {} is shorter than two beats of {}", DurationText(.0.trust), DurationText(.0.beat))]
    Beat(Failover),
    /// The trust is too long for the wait: two leaders could act at the same time.
    #[error(
        "the trust of {} is longer than nine tenths of the wait of {}",
        DurationText(.0.trust),
        DurationText(.0.wait)
    )]
    Trust(Failover),
}

impl Failover {
    /// Returns how long a candidate waits for a beat. `others` is the number of candidates between the leader and this one. Each
    /// of them adds a fifteenth of the wait, 200 ms by default. So the candidate before this one can claim first.
    #[must_use]
    pub fn wait_after(self, others: u32) -> Duration {
        self.wait + self.wait / HEAD_START * others
    }

    /// Checks every bound.
    ///
    /// # Errors
    /// The first bound that does not hold.
    pub fn check(self) -> Result<Self, FailoverError> {
        if self.beat < MIN_BEAT || self.wait > MAX_WAIT {
            return Err(FailoverError::Range(self));
        }
        if self.trust > self.wait - self.wait / MARGIN {
            return Err(FailoverError::Trust(self));
        }
        if self.beat > self.trust / 2 {
            return Err(FailoverError::Beat(self));
        }
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_within_the_bounds() {
        let failover = Failover::default();
        assert_eq!(failover.check(), Ok(failover));
    }

    #[test]
    fn each_candidate_waits_longer_than_the_one_before_it() {
        let waits = [0, 1, 2].map(|others| Failover::default().wait_after(others).as_millis());
        assert_eq!(waits, [3_000, 3_200, 3_400]);
    }

    #[test]
    fn times_that_contradict_each_other_are_refused() {
        let millis = Duration::from_millis;
        let table = [
            (1_000, 2_701, 3_000, "the trust of 2701ms is longer than nine tenths of the wait of 3s"),
            (1_000, 3_000, 2_000, "the trust of 3s is longer than nine tenths of the wait of 2s"),
            (1_400, 2_700, 3_000, "the trust of 2700ms is shorter than two beats of 1400ms"),
            (1, 2_700, 3_000, "the beat must be at least 20ms and the wait at most 1h, not 1ms and 3s"),
            (
                1_000,
                2_700,
                7_200_000,
                "the beat must be at least 20ms and the wait at most 1h, not 1s and 2h",
            ),
        ];
        for (beat, trust, wait, expected) in table {
            let failover = Failover { beat: millis(beat), trust: millis(trust), wait: millis(wait) };
            assert_eq!(failover.check().unwrap_err().to_string(), expected);
        }
    }

    #[test]
    fn times_at_their_bounds_are_accepted() {
        let shortest = Failover { beat: MIN_BEAT, trust: 2 * MIN_BEAT, wait: MAX_WAIT };
        assert_eq!(shortest.check(), Ok(shortest));
    }
}
