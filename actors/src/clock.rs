//! The clocks that actors pass into machines.

use std::sync::OnceLock;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

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

/// An instant on the scale of [`now`].
#[must_use]
pub fn at(instant: Instant) -> Millis {
    Millis(as_millis(instant.saturating_duration_since(origin())))
}

/// The Unix clock.
#[must_use]
pub fn wall() -> WallMillis {
    WallMillis(SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, as_millis))
}
