//! The engine's clocks.

use std::time::{Duration, Instant, SystemTime};

use crate::model::Now;

/// Real time; a test moves it on.
#[derive(Debug)]
pub(super) struct Clock {
    started: Instant,
    skipped: Duration,
}

impl Clock {
    pub(super) fn new() -> Self {
        Self { started: Instant::now(), skipped: Duration::ZERO }
    }

    /// Both clocks.
    pub(super) fn now(&self) -> Now {
        let wall =
            SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default() + self.skipped;
        Now {
            wall_ms: i64::try_from(wall.as_millis()).unwrap_or(i64::MAX),
            monotonic_ms: millis(self.elapsed()),
        }
    }

    /// How long until the monotonic clock shows `monotonic_ms`.
    pub(super) fn until(&self, monotonic_ms: u64) -> Duration {
        Duration::from_millis(monotonic_ms).saturating_sub(self.elapsed())
    }

    /// Since the start, with what was skipped.
    pub(super) fn elapsed(&self) -> Duration {
        self.started.elapsed() + self.skipped
    }

    /// Lets `time` pass at once.
    #[cfg(feature = "testing")]
    pub(super) fn skip(&mut self, time: Duration) {
        self.skipped += time;
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
