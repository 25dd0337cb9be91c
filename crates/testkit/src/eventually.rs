//! The one place where a test waits by the clock.

use std::future::Future;
use std::panic::Location;
use std::time::{Duration, Instant};

/// Short against every timeout in the suites (the shortest session is 400 ms), long enough not to load the server.
const POLL_EVERY: Duration = Duration::from_millis(10);

/// Polls `condition` until it holds, and panics with `what` and the caller's line when `deadline` passes first.
///
/// The deadline is real time: do not use it under paused tokio time. A condition that never returns is not
/// interrupted half-way but dropped at the deadline, so it must be safe to cancel.
///
/// ```
/// # use std::time::Duration;
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime").block_on(async {
/// let mut polls = 0;
/// bellwether_testkit::eventually("three polls", Duration::from_secs(5), async || {
///     polls += 1;
///     polls == 3
/// })
/// .await;
/// # });
/// ```
#[track_caller]
pub fn eventually(
    what: &str,
    deadline: Duration,
    mut condition: impl AsyncFnMut() -> bool,
) -> impl Future<Output = ()> {
    eventually_some(what, deadline, async move || condition().await.then_some(()))
}

/// [`eventually`] for a condition that yields a value: polls until `probe` answers `Some`.
#[track_caller]
pub fn eventually_some<T>(
    what: &str,
    deadline: Duration,
    mut probe: impl AsyncFnMut() -> Option<T>,
) -> impl Future<Output = T> {
    let caller = Location::caller();
    async move {
        let start = Instant::now();
        let mut polls = 0_u32;
        let poll = async {
            loop {
                polls += 1;
                if let Some(value) = probe().await {
                    return value;
                }
                tokio::time::sleep(POLL_EVERY).await;
            }
        };
        match tokio::time::timeout(deadline, poll).await {
            Ok(value) => value,
            Err(_) => panic!("{caller}: not within {:?} ({polls} polls): {what}", start.elapsed()),
        }
    }
}
