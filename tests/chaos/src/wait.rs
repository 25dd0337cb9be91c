//! Waiting for a condition, with a deadline.

use std::time::{Duration, Instant};

use crate::failure::Failure;

const POLL_EVERY: Duration = Duration::from_millis(20);

/// Waits until the condition holds.
pub(crate) async fn until(
    what: &str,
    within: Duration,
    mut condition: impl AsyncFnMut() -> bool,
) -> Result<(), Failure> {
    let start = Instant::now();
    while !condition().await {
        if start.elapsed() > within {
            return Err(Failure::new(format!("timed out after {within:?}, waiting for: {what}")));
        }
        tokio::time::sleep(POLL_EVERY).await;
    }
    Ok(())
}
