//! The record of a paused kind.

use serde::{Deserialize, Serialize};

use super::change::author;
use crate::budget::MAX_NOTE_BYTES;
use crate::change::Note;
use crate::time::WallMillis;
use crate::wire::WireError;
use crate::worker::PauseRecord;

#[derive(Serialize, Deserialize)]
pub struct PauseRecordV1 {
    by: Option<String>,
    note: String,
    since: u64,
}

impl From<&PauseRecord> for PauseRecordV1 {
    fn from(pause: &PauseRecord) -> Self {
        let by = pause.by.as_ref().map(|by| by.as_str().to_owned());
        Self { by, note: pause.note.as_str().to_owned(), since: pause.since.0 }
    }
}

impl TryFrom<PauseRecordV1> for PauseRecord {
    type Error = WireError;
    fn try_from(stored: PauseRecordV1) -> Result<Self, WireError> {
        let by = stored.by.map(author).transpose()?;
        let note = Note::new(stored.note).map_err(|len| {
            WireError::Value(format!("note is {len} bytes long: at most {MAX_NOTE_BYTES} are allowed"))
        })?;
        Ok(Self { by, note, since: WallMillis(stored.since) })
    }
}
