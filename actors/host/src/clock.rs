//! The clocks whose times the actors pass to the machines.

use std::sync::OnceLock;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use bellwether_core::time::{Millis, WallMillis, as_millis};

fn origin() -> Instant {
    static ORIGIN: OnceLock<Instant> = OnceLock::new();
    *ORIGIN.get_or_init(Instant::now)
}

/// This process's monotonic clock.
#[must_use]
pub fn now() -> Millis {
    at(Instant::now())
}

/// Converts an instant to the time scale of [`now`].
#[must_use]
pub fn at(instant: Instant) -> Millis {
    Millis(as_millis(instant.saturating_duration_since(origin())))
}

/// Converts a time of the scale of [`now`] to an instant.
#[must_use]
pub fn instant(at: Millis) -> Instant {
    let origin = origin();
    // No lease is longer than a week, so the addition cannot overflow in practice.
    origin.checked_add(Duration::from_millis(at.0)).unwrap_or(origin)
}

/// This machine's wall clock, in milliseconds since the Unix epoch.
#[must_use]
pub fn wall() -> WallMillis {
    WallMillis(SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, as_millis))
}
