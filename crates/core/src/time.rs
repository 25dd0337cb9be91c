//! Two clocks that must not be mixed.
//!
//! [`Millis`] is monotonic and local to a process: deadlines and leases are measured with it. [`WallMillis`]
//! is the Unix clock: it is shown to people and decides when a backoff ends, and nothing about safety
//! depends on it, because the clocks of two machines differ.

use std::fmt;
use std::ops::Add;
use std::time::Duration;

/// Milliseconds on this process's monotonic clock, from an origin of the caller's choice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Millis(pub u64);

impl Millis {
    /// How long from `earlier` to here; zero when `earlier` is not earlier.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Millis {
    type Output = Self;
    fn add(self, wait: Duration) -> Self {
        Self(self.0.saturating_add(as_millis(wait)))
    }
}

/// Milliseconds since the Unix epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct WallMillis(pub u64);

impl WallMillis {
    /// The minute that this instant falls into: names a bucket of `/delayed`.
    #[must_use]
    pub const fn minute(self) -> u64 {
        self.0 / 60_000
    }

    /// How long from `earlier` to here; zero when `earlier` is not earlier.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for WallMillis {
    type Output = Self;
    fn add(self, wait: Duration) -> Self {
        Self(self.0.saturating_add(as_millis(wait)))
    }
}

impl fmt::Display for WallMillis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ms", self.0)
    }
}

/// Whole milliseconds of a duration, saturating.
#[must_use]
pub fn as_millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
