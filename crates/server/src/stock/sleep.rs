//! Sleeps, and leaves a checkpoint of how long it has.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use bellwether::handler::{HandlerError, JobContext};

/// As often as it is written at most.
const SAYS_EVERY: Duration = Duration::from_secs(1);

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Sleep {
    millis: u64,
}

impl Sleep {
    pub(super) async fn sleep(self, context: &JobContext) -> Result<Self, HandlerError> {
        let left = context.last_checkpoint().and_then(|bytes| bytes.try_into().ok());
        // Whoever sleeps for more than it was asked to has slept enough.
        let before = Duration::from_millis(left.map_or(0, u64::from_le_bytes).min(self.millis));
        let (since, whole) = (Instant::now(), Duration::from_millis(self.millis));
        loop {
            let slept = before + since.elapsed();
            let Some(rest) = whole.checked_sub(slept).filter(|rest| !rest.is_zero()) else { return Ok(self) };
            tokio::select! {
                () = tokio::time::sleep(rest.min(SAYS_EVERY)) => {}
                () = context.cancelled() => return Err(HandlerError::new("woken up before its time")),
            }
            let slept = (before + since.elapsed()).min(whole);
            let percent = (slept.as_millis() * 100 / whole.as_millis()).try_into().unwrap_or(100);
            context.progress(percent, format!("has slept since {before:?}"))?;
            let slept = u64::try_from(slept.as_millis()).unwrap_or(u64::MAX);
            context.checkpoint(slept.to_le_bytes())?;
        }
    }
}
