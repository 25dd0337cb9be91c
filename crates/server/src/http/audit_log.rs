//! The last audit lines, in the memory of this gateway. The log is the complete record.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard};

use serde::Serialize;
use utoipa::ToSchema;

/// Lines that are kept: at most about 2 MB, because their texts are cut.
const KEPT: usize = 500;

/// Characters of a text of a line.
const MAX_TEXT: usize = 512;

/// A request that may have changed something.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(super) struct AuditEntry {
    /// When it was answered.
    pub(super) at: String,
    /// Name of the token; null if the request was refused before it was known.
    #[schema(required)]
    pub(super) who: Option<String>,
    /// Role of the token.
    #[schema(required)]
    pub(super) role: Option<&'static str>,
    /// Address of the caller.
    #[schema(required)]
    pub(super) from: Option<String>,
    /// Name of the operation; null for an unknown path.
    #[schema(required)]
    pub(super) operation: Option<&'static str>,
    /// Path of the request, without its query.
    pub(super) path: String,
    /// Status of the answer; null if the caller disconnected before it.
    #[schema(required)]
    pub(super) status: Option<u16>,
    /// What changed.
    #[schema(required)]
    pub(super) what: Option<String>,
    /// Request id of the answer.
    pub(super) request_id: String,
}

/// The last lines, oldest first.
#[derive(Default)]
pub(super) struct AuditLog(Mutex<VecDeque<AuditEntry>>);

impl AuditLog {
    pub(super) fn push(&self, mut entry: AuditEntry) {
        entry.what = entry.what.map(|what| what.chars().take(MAX_TEXT).collect());
        let mut kept = self.kept();
        if kept.len() == KEPT {
            kept.pop_front();
        }
        kept.push_back(entry);
    }

    /// Returns the lines, the latest first.
    pub(super) fn list(&self) -> Vec<AuditEntry> {
        self.kept().iter().rev().cloned().collect()
    }

    fn kept(&self) -> MutexGuard<'_, VecDeque<AuditEntry>> {
        self.0.lock().expect("no code panics while it holds the lines")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_are_kept_and_their_texts_are_cut() {
        let log = AuditLog::default();
        for n in 0..=KEPT {
            log.push(AuditEntry {
                at: String::new(),
                who: None,
                role: None,
                from: None,
                operation: None,
                path: n.to_string(),
                status: None,
                what: Some("x".repeat(2 * MAX_TEXT)),
                request_id: String::new(),
            });
        }
        let kept = log.list();
        assert_eq!((kept.len(), &*kept[0].path, &*kept[KEPT - 1].path), (KEPT, "500", "1"));
        assert_eq!(kept[0].what.as_ref().map(String::len), Some(MAX_TEXT));
    }
}
