//! The clocks whose times the actors pass to the machines.

use std::time::{Duration, Instant, SystemTime};

use bellwether_core::time::{Millis, WallMillis, as_millis};
use bellwether_zk::clock::uptime;

/// This process's monotonic clock. It counts the time while the machine is suspended.
#[must_use]
pub fn now() -> Millis {
    Millis(as_millis(uptime()))
}

/// Converts a time of the scale of [`now`] to an instant, for timers and callers outside. The instant is late by the time
/// for which the machine is suspended from now on, because [`Instant`] does not count it.
#[must_use]
pub fn instant(at: Millis) -> Instant {
    // Whole milliseconds are compared with the exact time, so the instant is never late by a fraction of one.
    let (here, now, at) = (Instant::now(), uptime(), Duration::from_millis(at.0));
    match at.checked_sub(now) {
        // No lease is longer than a week, so the addition cannot overflow in practice.
        Some(ahead) => here.checked_add(ahead).unwrap_or(here),
        None => here.checked_sub(now.saturating_sub(at)).unwrap_or(here),
    }
}

/// Sleeps until a time of the scale of [`now`]. After a suspension of the machine it returns at most 200 ms late, which is
/// short compared to a session timeout.
pub async fn sleep_until(at: Millis) {
    sleep_in_steps(at, Duration::from_millis(200)).await;
}

/// Sleeps until a time of the scale of [`now`], in steps, because a timer does not count the time while the machine is
/// suspended. After a suspension it returns at most a step late.
pub async fn sleep_in_steps(at: Millis, step: Duration) {
    loop {
        let left = at.since(now());
        if left.is_zero() {
            return;
        }
        tokio::time::sleep(left.min(step)).await;
    }
}

/// This machine's wall clock, in milliseconds since the Unix epoch. Decisions use ZooKeeper's clock instead.
#[must_use]
pub fn local() -> WallMillis {
    skewed(WallMillis::from(SystemTime::now()))
}

#[cfg(not(feature = "testing"))]
const fn skewed(wall: WallMillis) -> WallMillis {
    wall
}

#[cfg(feature = "testing")]
use testing::skewed;

/// A wrong wall clock, for tests.
#[cfg(feature = "testing")]
pub mod testing {
    use std::sync::atomic::{AtomicI64, Ordering};

    use super::WallMillis;

    static AHEAD_MS: AtomicI64 = AtomicI64::new(0);

    /// Sets the wall clock of this process ahead by this; negative sets it back.
    pub fn set_ahead(ms: i64) {
        AHEAD_MS.store(ms, Ordering::SeqCst);
    }

    pub(super) fn skewed(wall: WallMillis) -> WallMillis {
        WallMillis(wall.0.saturating_add_signed(AHEAD_MS.load(Ordering::SeqCst)))
    }
}
