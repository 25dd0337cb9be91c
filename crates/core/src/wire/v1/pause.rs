//! The record of a paused kind.

use serde::{Deserialize, Serialize};

use super::change::author;
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
        Self { by: pause.by.as_str().to_owned(), since: pause.since.0 }
    }
}

impl TryFrom<PauseRecordV1> for PauseRecord {
    type Error = WireError;
    fn try_from(stored: PauseRecordV1) -> Result<Self, WireError> {
        Ok(Self { by: author(stored.by)?, since: WallMillis(stored.since) })
    }
}
