//! The record of a paused kind.

use serde::{Deserialize, Serialize};

use crate::budget::MAX_BY_BYTES;
use crate::time::WallMillis;
use crate::wire::WireError;
use crate::worker::PauseRecord;

#[derive(Serialize, Deserialize)]
pub struct PauseRecordV1 {
    by: String,
    since: u64,
}

impl From<&PauseRecord> for PauseRecordV1 {
    fn from(pause: &PauseRecord) -> Self {
        Self { by: pause.by.clone(), since: pause.since.0 }
    }
}

impl TryFrom<PauseRecordV1> for PauseRecord {
    type Error = WireError;
    fn try_from(stored: PauseRecordV1) -> Result<Self, WireError> {
        let len = stored.by.len();
        if len > MAX_BY_BYTES {
            return Err(WireError::Value(format!(
                "by is {len} bytes long: at most {MAX_BY_BYTES} are allowed"
            )));
        }
        Ok(Self { by: stored.by, since: WallMillis(stored.since) })
    }
}
