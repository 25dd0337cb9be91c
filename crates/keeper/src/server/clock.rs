//! The engine's clocks.

use std::time::{Duration, Instant, SystemTime};

use crate::model::Now;

/// Real time; tests can move it forward.
#[derive(Debug)]
pub(super) struct Clock {
    started: Instant,
    skipped: Duration,
}

impl Clock {
    pub(super) fn new() -> Self {
        Self { started: Instant::now(), skipped: Duration::ZERO }
    }

    /// Returns the wall clock and the monotonic clock.
    pub(super) fn now(&self) -> Now {
        let wall =
            SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default() + self.skipped;
        Now {
            wall_ms: i64::try_from(wall.as_millis()).unwrap_or(i64::MAX),
            monotonic_ms: millis(self.elapsed()),
        }
    }

    /// Returns the time until the monotonic clock reaches `monotonic_ms`.
    pub(super) fn until(&self, monotonic_ms: u64) -> Duration {
        Duration::from_millis(monotonic_ms).saturating_sub(self.elapsed())
    }

    /// Returns the time since the start, including skipped time.
    pub(super) fn elapsed(&self) -> Duration {
        self.started.elapsed() + self.skipped
    }

    /// Moves the clock forward by `time`.
    #[cfg(feature = "testing")]
    pub(super) fn skip(&mut self, time: Duration) {
        self.skipped += time;
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
