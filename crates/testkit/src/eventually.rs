//! The only place where a test waits for real time.

use std::future::Future;
use std::panic::Location;
use std::time::{Duration, Instant};

/// Short compared with every timeout in the tests: the shortest session is 400 ms.
const SHORTEST_PAUSE: Duration = Duration::from_millis(10);

/// Short compared with the states that tests look for.
const LONGEST_PAUSE: Duration = Duration::from_millis(200);

/// The pause before the next look at a condition: a twentieth of the time waited so far. So a long wait ends at most that much late,
/// and does not take the processor from other tests: some conditions start a process or read all records.
#[must_use]
pub fn pause_after(waited: Duration) -> Duration {
    (waited / 20).clamp(SHORTEST_PAUSE, LONGEST_PAUSE)
}

/// Polls `condition` until it holds. Panics with `what` and the caller's location when `deadline` passes first.
///
/// The deadline is real time: do not use it with paused tokio time. A condition that does not return is dropped at the
/// deadline, so it must be cancel safe.
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

/// As [`eventually`], for a condition with a value: polls until `probe` returns `Some`.
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
                tokio::time::sleep(pause_after(start.elapsed())).await;
            }
        };
        match tokio::time::timeout(deadline, poll).await {
            Ok(value) => value,
            Err(_) => {
                panic!("{caller}: condition not met within {:?} ({polls} polls): {what}", start.elapsed())
            }
        }
    }
}
