//! The last audit lines, in the memory of this gateway. The log is the complete record.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard};

use bellwether::InstantText;
use serde::Serialize;
use utoipa::ToSchema;

/// Lines of requests that reached their route: at most about 2 MB, because their texts are cut.
const KEPT: usize = 500;

/// Lines of submissions and of remote workers. They have their own limit, because there may be hundreds per second, which would
/// displace the changes of operators.
const KEPT_ROUTINE: usize = 100;

/// Lines of refused requests. They have their own limit, so that a caller without a valid token or role cannot displace the
/// changes.
const KEPT_REFUSED: usize = 100;

/// Characters of a text of a line.
const MAX_TEXT: usize = 512;

/// A request that may have changed something.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(super) struct AuditEntry {
    /// Number of the line in this gateway. Unlike the request id, callers cannot choose it.
    pub(super) number: u64,
    /// When it was answered.
    pub(super) at: InstantText,
    /// Name of the token or certificate, or `ISSUER#SUBJECT`; null if the request was refused before it was known.
    #[schema(required)]
    pub(super) caller: Option<String>,
    /// Role of the caller.
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
    /// Lines of requests without a valid token that were left out before this one.
    pub(super) left_out: u64,
    /// Number of the line that was written to the audit file before the change, with --http-audit-required.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) intent: Option<u64>,
    /// Whether the operation needs only the role `submit` or `work`.
    #[serde(skip)]
    pub(super) is_routine: bool,
}

/// The line of the audit file before a request that may change something. If no line of the request with this number as its
/// `intent` follows, the gateway ended or could not write it, and the change may have been applied.
#[derive(Debug, Serialize)]
pub(super) struct AuditIntent<'a> {
    pub(super) event: &'static str,
    pub(super) number: u64,
    pub(super) at: InstantText,
    pub(super) caller: &'a str,
    pub(super) role: &'static str,
    pub(super) from: Option<String>,
    pub(super) operation: Option<&'static str>,
    pub(super) path: &'a str,
    pub(super) request_id: &'a str,
}

impl AuditEntry {
    /// Whether the request was refused before its route: by its credentials, origin or role, or by admission.
    fn is_refused(&self) -> bool {
        self.caller.is_none() || matches!(self.status, Some(401 | 403 | 429))
    }
}

/// The last lines, in three rings.
#[derive(Default)]
pub(super) struct AuditLog(Mutex<Rings>);

/// Each is oldest first.
#[derive(Default)]
struct Rings {
    /// The number of the next line.
    next: u64,
    reached: VecDeque<AuditEntry>,
    routine: VecDeque<AuditEntry>,
    refused: VecDeque<AuditEntry>,
}

impl AuditLog {
    /// Returns the number of a line that is only in the file.
    pub(super) fn number(&self) -> u64 {
        let mut rings = self.rings();
        rings.next += 1;
        rings.next - 1
    }

    /// Adds a line and returns it with its number.
    pub(super) fn push(&self, mut entry: AuditEntry) -> AuditEntry {
        entry.what = entry.what.map(|what| what.chars().take(MAX_TEXT).collect());
        let mut rings = self.rings();
        entry.number = rings.next;
        rings.next += 1;
        let (ring, most) = match (entry.is_refused(), entry.is_routine) {
            (true, _) => (&mut rings.refused, KEPT_REFUSED),
            (false, true) => (&mut rings.routine, KEPT_ROUTINE),
            (false, false) => (&mut rings.reached, KEPT),
        };
        if ring.len() == most {
            ring.pop_front();
        }
        ring.push_back(entry.clone());
        entry
    }

    /// Returns the lines of all rings, the latest first.
    pub(super) fn list(&self) -> Vec<AuditEntry> {
        let rings = self.rings();
        let mut lines = [&rings.reached, &rings.routine, &rings.refused]
            .into_iter()
            .flatten()
            .cloned()
            .collect::<Vec<_>>();
        drop(rings);
        lines.sort_unstable_by_key(|line| std::cmp::Reverse(line.number));
        lines
    }

    fn rings(&self) -> MutexGuard<'_, Rings> {
        self.0.lock().expect("no code panics while it holds the lines")
    }
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;

    fn entry(path: usize, caller: Option<&str>, status: u16) -> AuditEntry {
        AuditEntry {
            number: 0,
            at: InstantText(SystemTime::UNIX_EPOCH),
            caller: caller.map(ToOwned::to_owned),
            role: None,
            from: None,
            operation: None,
            path: path.to_string(),
            status: Some(status),
            what: Some("x".repeat(2 * MAX_TEXT)),
            request_id: String::new(),
            left_out: 0,
            intent: None,
            is_routine: false,
        }
    }

    #[test]
    fn the_last_lines_are_kept_and_their_texts_are_cut() {
        let log = AuditLog::default();
        for n in 0..=KEPT {
            log.push(entry(n, Some("ann"), 200));
        }
        let kept = log.list();
        assert_eq!((kept.len(), &*kept[0].path, &*kept[KEPT - 1].path), (KEPT, "500", "1"));
        assert_eq!(kept[0].what.as_ref().map(String::len), Some(MAX_TEXT));
    }

    #[test]
    fn submissions_and_remote_workers_displace_only_each_other() {
        let log = AuditLog::default();
        log.push(entry(0, Some("ann"), 200));
        log.push(entry(1, Some("bob"), 403));
        for n in 2..=KEPT + KEPT_ROUTINE {
            log.push(AuditEntry { is_routine: true, ..entry(n, Some("worker"), 200) });
        }
        let kept = log.list().into_iter().map(|line| line.path).collect::<Vec<_>>();
        assert_eq!(
            (kept.len(), &*kept[0], &kept[KEPT_ROUTINE..]),
            (KEPT_ROUTINE + 2, "600", &["1".to_owned(), "0".to_owned()][..])
        );
    }

    #[test]
    fn refused_requests_displace_only_refused_requests() {
        let log = AuditLog::default();
        log.push(entry(0, Some("ann"), 200));
        for n in 1..=KEPT + KEPT_REFUSED {
            let (caller, status) = [(None, 401), (Some("bob"), 403), (Some("bob"), 429)][n % 3];
            log.push(entry(n, caller, status));
        }
        let kept = log.list();
        assert_eq!((kept.len(), &*kept[0].path, &*kept[KEPT_REFUSED].path), (KEPT_REFUSED + 1, "600", "0"));
        assert!(kept.is_sorted_by(|later, earlier| later.number > earlier.number));
    }
}
