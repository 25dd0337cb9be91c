//! Sleeps, and stores the elapsed time in a checkpoint.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use bellwether::handler::{HandlerError, JobContext};

/// The maximum rate at which progress is written.
const SAYS_EVERY: Duration = Duration::from_secs(1);

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Sleep {
    millis: u64,
}

impl Sleep {
    pub(super) async fn sleep(self, context: &JobContext) -> Result<Self, HandlerError> {
        let left = context.last_checkpoint().and_then(|bytes| bytes.try_into().ok());
        // The checkpoint may be longer than the requested time.
        let before = Duration::from_millis(left.map_or(0, u64::from_le_bytes).min(self.millis));
        let (since, whole) = (Instant::now(), Duration::from_millis(self.millis));
        let message = if before.is_zero() { String::new() } else { format!("resumed after {before:?}") };
        loop {
            let slept = before + since.elapsed();
            let Some(rest) = whole.checked_sub(slept).filter(|rest| !rest.is_zero()) else { return Ok(self) };
            tokio::select! {
                () = tokio::time::sleep(rest.min(SAYS_EVERY)) => {}
                () = context.cancelled() => return Err(HandlerError::new("cancelled before the end of the sleep")),
            }
            let slept = (before + since.elapsed()).min(whole);
            let percent = (slept.as_millis() * 100 / whole.as_millis()).try_into().unwrap_or(100);
            context.progress(percent, message.as_str())?;
            let slept = u64::try_from(slept.as_millis()).unwrap_or(u64::MAX);
            context.checkpoint(slept.to_le_bytes())?;
        }
    }
}
