//! The clock that measures how long a session can be trusted.
//!
//! ZooKeeper counts a session's timeout also while the client's machine is suspended. [`Instant`](std::time::Instant) stops
//! then on Linux (`CLOCK_MONOTONIC`) and on macOS, so a machine that was suspended for a minute would trust a session that has
//! expired. [`uptime`] counts that time: it reads `CLOCK_BOOTTIME` on Linux and Android, `CLOCK_MONOTONIC` on macOS, where
//! that clock continues, and `Instant` elsewhere (on Windows it counts a suspension).
//!
//! Timers of tokio stop with the machine and fire late. So code that acts when a timer fires, or before it does, compares
//! with this clock.

use std::time::Duration;

/// The time since an arbitrary origin in the past, usually the start of the machine. It never goes back, is the same in all
/// processes of a machine on Linux, and counts the time while the machine is suspended.
#[must_use]
pub fn uptime() -> Duration {
    read() + jumped()
}

#[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
fn read() -> Duration {
    use nix::time::ClockId;

    #[cfg(not(target_vendor = "apple"))]
    const CLOCK: ClockId = ClockId::CLOCK_BOOTTIME;
    #[cfg(target_vendor = "apple")]
    const CLOCK: ClockId = ClockId::CLOCK_MONOTONIC;

    CLOCK.now().expect("the system has this clock").into()
}

#[cfg(not(any(target_os = "linux", target_os = "android", target_vendor = "apple")))]
fn read() -> Duration {
    use std::sync::OnceLock;
    use std::time::Instant;

    static ORIGIN: OnceLock<Instant> = OnceLock::new();
    ORIGIN.get_or_init(Instant::now).elapsed()
}

#[cfg(not(feature = "testing"))]
const fn jumped() -> Duration {
    Duration::ZERO
}

#[cfg(feature = "testing")]
use testing::jumped;

/// A suspension of the machine, for tests.
#[cfg(feature = "testing")]
pub mod testing {
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::time::Duration;

    static JUMPED_MS: AtomicU64 = AtomicU64::new(0);

    /// Moves [`uptime`](super::uptime) of this process ahead, like a suspension of the machine: the timers of tokio and of the
    /// ZooKeeper client do not notice it.
    pub fn suspend(ms: u64) {
        JUMPED_MS.fetch_add(ms, Ordering::SeqCst);
    }

    pub(super) fn jumped() -> Duration {
        Duration::from_millis(JUMPED_MS.load(Ordering::SeqCst))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// On Linux the kernel reports the same clock in `/proc/uptime`.
    #[cfg(target_os = "linux")]
    #[test]
    fn the_uptime_counts_from_the_start_of_the_machine() {
        let before = uptime();
        let text = std::fs::read_to_string("/proc/uptime").expect("a readable file");
        let after = uptime();
        let seconds = text.split(' ').next().and_then(|field| field.parse::<f64>().ok()).expect("seconds");
        let kernel = Duration::from_secs_f64(seconds);
        let resolution = Duration::from_millis(10);
        assert!(
            before <= kernel + resolution && kernel <= after + resolution,
            "{before:?} {kernel:?} {after:?}"
        );
    }
}
