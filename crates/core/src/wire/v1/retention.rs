//! The retention setting.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::budget::{MAX_RECORDS, MAX_RETENTION};
use crate::retention::Retention;
use crate::time::as_millis;
use crate::wire::WireError;

#[derive(Serialize, Deserialize)]
pub struct RetentionV1 {
    succeeded_ms: u64,
    cancelled_ms: u64,
    dead_ms: u64,
    records: u32,
}

impl From<&Retention> for RetentionV1 {
    fn from(retention: &Retention) -> Self {
        Self {
            succeeded_ms: as_millis(retention.succeeded),
            cancelled_ms: as_millis(retention.cancelled),
            dead_ms: as_millis(retention.dead),
            records: retention.records,
        }
    }
}

impl TryFrom<RetentionV1> for Retention {
    type Error = WireError;
    fn try_from(stored: RetentionV1) -> Result<Self, WireError> {
        Ok(Self {
            succeeded: time("succeeded", stored.succeeded_ms)?,
            cancelled: time("cancelled", stored.cancelled_ms)?,
            dead: time("dead", stored.dead_ms)?,
            records: count(stored.records)?,
        })
    }
}

/// The lower bound is checked when the setting is written, and the janitor has a separate minimum.
fn time(field: &str, stored: u64) -> Result<Duration, WireError> {
    let time = Duration::from_millis(stored);
    if time > MAX_RETENTION {
        let error = format!("retention of {field} jobs of {stored} ms: at most {MAX_RETENTION:?} is allowed");
        return Err(WireError::Value(error));
    }
    Ok(time)
}

fn count(stored: u32) -> Result<u32, WireError> {
    if stored > MAX_RECORDS {
        return Err(WireError::Value(format!(
            "retention of {stored} records: at most {MAX_RECORDS} are allowed"
        )));
    }
    Ok(stored)
}
