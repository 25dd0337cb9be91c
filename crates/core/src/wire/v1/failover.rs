//! The times of a leader's beats.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::failover::Failover;
use crate::time::as_millis;
use crate::wire::WireError;

#[derive(Serialize, Deserialize)]
pub struct FailoverV1 {
    beat_ms: u64,
    trust_ms: u64,
    wait_ms: u64,
}

impl From<&Failover> for FailoverV1 {
    fn from(failover: &Failover) -> Self {
        Self {
            beat_ms: as_millis(failover.beat),
            trust_ms: as_millis(failover.trust),
            wait_ms: as_millis(failover.wait),
        }
    }
}

impl TryFrom<FailoverV1> for Failover {
    type Error = WireError;
    fn try_from(stored: FailoverV1) -> Result<Self, WireError> {
        let [beat, trust, wait] =
            [stored.beat_ms, stored.trust_ms, stored.wait_ms].map(Duration::from_millis);
        Self { beat, trust, wait }.check().map_err(|error| WireError::Value(error.to_string()))
    }
}
