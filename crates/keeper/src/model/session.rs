//! Sessions: timeouts, connections and expiry.
//!
//! Expiry times are grouped into buckets of one tick, so that a busy session changes its bucket once per tick and not
//! with each request. A session expires at the first tick after its timeout, never before. After a restart every
//! session has its full timeout.

use std::collections::{BTreeMap, BTreeSet};

use super::ConnectionId;
use crate::store::SessionRow;

/// A session that has not ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Session {
    pub(super) timeout_ms: i32,
    pub(super) password: Vec<u8>,
    /// The current connection.
    pub(super) connection: Option<ConnectionId>,
    /// The bucket.
    ends_at: u64,
}

impl Session {
    pub(super) fn ends_at(&self) -> u64 {
        self.ends_at
    }

    pub(super) fn row(&self) -> SessionRow {
        SessionRow { timeout_ms: self.timeout_ms, password: self.password.clone() }
    }
}

/// The highest byte of a session id is the id of the server in an ensemble. It must be neither 0x80 nor 0xff, which
/// mark containers and TTL znodes.
const SERVER: u64 = 1 << 56;

#[derive(Debug)]
pub(super) struct Sessions {
    tick_ms: u64,
    by_id: BTreeMap<i64, Session>,
    buckets: BTreeMap<u64, BTreeSet<i64>>,
    next_id: i64,
}

impl Sessions {
    /// Creates an empty table. Ids start with the current time, so that ids of an earlier run are not reused.
    pub(super) fn new(tick_ms: i32, wall_ms: i64) -> Self {
        let time = (wall_ms.cast_unsigned() << 24) >> 8;
        Self {
            tick_ms: u64::try_from(tick_ms).unwrap_or_default().max(1),
            by_id: BTreeMap::new(),
            buckets: BTreeMap::new(),
            next_id: (SERVER | time).cast_signed(),
        }
    }

    pub(super) fn begin(&mut self, now_ms: u64, timeout_ms: i32, password: Vec<u8>) -> i64 {
        let id = self.next_id;
        self.restore(now_ms, id, SessionRow { timeout_ms, password });
        id
    }

    pub(super) fn restore(&mut self, now_ms: u64, id: i64, row: SessionRow) {
        let SessionRow { timeout_ms, password } = row;
        let ends_at = self.end(now_ms, timeout_ms);
        self.by_id.insert(id, Session { timeout_ms, password, connection: None, ends_at });
        self.buckets.entry(ends_at).or_default().insert(id);
        self.next_id = self.next_id.max(id.saturating_add(1));
    }

    pub(super) fn len(&self) -> usize {
        self.by_id.len()
    }

    pub(super) fn get(&self, id: i64) -> Option<&Session> {
        self.by_id.get(&id)
    }

    pub(super) fn get_mut(&mut self, id: i64) -> Option<&mut Session> {
        self.by_id.get_mut(&id)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (i64, &Session)> {
        self.by_id.iter().map(|(&id, session)| (id, session))
    }

    /// Restarts the timeout of a session.
    pub(super) fn touch(&mut self, now_ms: u64, id: i64) {
        let Some(session) = self.by_id.get_mut(&id) else { return };
        let ends_at = end(self.tick_ms, now_ms, session.timeout_ms);
        if ends_at == session.ends_at {
            return;
        }
        let before = std::mem::replace(&mut session.ends_at, ends_at);
        self.leave(before, id);
        self.buckets.entry(ends_at).or_default().insert(id);
    }

    pub(super) fn remove(&mut self, id: i64) -> Option<Session> {
        let session = self.by_id.remove(&id)?;
        self.leave(session.ends_at, id);
        Some(session)
    }

    fn leave(&mut self, bucket: u64, id: i64) {
        if let Some(ids) = self.buckets.get_mut(&bucket) {
            ids.remove(&id);
            if ids.is_empty() {
                self.buckets.remove(&bucket);
            }
        }
    }

    /// Returns a session that expires at or before `now_ms`.
    pub(super) fn next_ended(&self, now_ms: u64) -> Option<i64> {
        let (_, ids) = self.buckets.first_key_value().filter(|&(&ends_at, _)| ends_at <= now_ms)?;
        ids.first().copied()
    }

    /// Returns when the next session expires.
    pub(super) fn next_end(&self) -> Option<u64> {
        self.buckets.first_key_value().map(|(&ends_at, _)| ends_at)
    }

    fn end(&self, now_ms: u64, timeout_ms: i32) -> u64 {
        end(self.tick_ms, now_ms, timeout_ms)
    }
}

/// Returns the first tick after the timeout.
fn end(tick_ms: u64, now_ms: u64, timeout_ms: i32) -> u64 {
    let timeout = u64::try_from(timeout_ms).unwrap_or_default();
    (now_ms.saturating_add(timeout) / tick_ms + 1).saturating_mul(tick_ms)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_ends_at_the_first_tick_after_its_timeout() {
        let mut sessions = Sessions::new(100, 0);
        let id = sessions.begin(50, 200, vec![]);
        assert_eq!(sessions.next_end(), Some(300));
        sessions.touch(99, id);
        assert_eq!(sessions.next_end(), Some(300), "the same bucket");
        sessions.touch(100, id);
        assert_eq!(sessions.next_end(), Some(400));
        assert_eq!((sessions.next_ended(399), sessions.next_ended(400)), (None, Some(id)));
        sessions.remove(id);
        assert_eq!((sessions.next_end(), sessions.get(id)), (None, None));
    }

    #[test]
    fn ids_are_not_reused_even_if_the_clock_goes_back() {
        let mut sessions = Sessions::new(100, 1_700_000_000_000);
        let row = SessionRow { timeout_ms: 100, password: vec![] };
        let old = sessions.next_id + 5;
        sessions.restore(0, old, row);
        assert!(sessions.begin(0, 100, vec![]) > old);
        assert_eq!(old >> 56, 1);
    }
}
