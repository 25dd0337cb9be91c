//! Determines up to which time all requests of clients have been handled. A session may expire only up to that time.
//!
//! After the process was stopped or starved, requests wait in sockets, and the tasks that read them add them to the
//! inbox in small parts. One look at the inbox therefore proves nothing about the time of that look. It counts ("is
//! settled") when, [`LOOK_AGAIN`] later, a batch is taken that is not full. After a look that was more than [`AWAY`]
//! late, it must be [`CATCH_UP`] later, because the cause of the delay may still hold up some of those tasks. This is a
//! heuristic, since unread sockets cannot be inspected. When it fails, a session expires early, which a client must
//! expect at any time.

use std::time::Duration;

use super::super::limits::{AWAY, CATCH_UP, LOOK_AGAIN, LOOKS_LAST};

/// Records the looks at the inbox; times are monotonic milliseconds.
#[derive(Debug, Default)]
pub(super) struct SettledTime {
    /// All requests received up to this time are handled.
    settled: u64,
    /// The look that will be settled next.
    open: u64,
    /// The most recent look.
    last: u64,
    /// Whether a look since `open` was late.
    late: bool,
    /// Whether `open`, or a look before it, was late.
    behind: bool,
}

impl SettledTime {
    /// Records a look; returns the time up to which sessions may expire.
    ///
    /// On a server that is never idle, looks are settled after [`LOOKS_LAST`], so that a busy client cannot keep the
    /// sessions of other clients alive. `timeout` is the time within which this look was due after the previous one.
    pub(super) fn at(&mut self, now_ms: u64, full: bool, timeout: Option<Duration>) -> u64 {
        let since = |past: u64| Duration::from_millis(now_ms.saturating_sub(past));
        self.late |= timeout.is_some_and(|timeout| since(self.last) > timeout + AWAY);
        self.last = now_ms;
        let caught_up = if self.behind { CATCH_UP } else { LOOK_AGAIN };
        if (since(self.open) >= caught_up && !full) || since(self.open) >= LOOKS_LAST {
            self.settled = self.open;
            self.open = now_ms;
            self.behind = std::mem::take(&mut self.late);
        }
        self.settled
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_of_a_pause_passes_once_the_server_has_caught_up() {
        let timeout = Some(Duration::from_millis(500));
        let mut settled_time = SettledTime::default();
        assert_eq!(settled_time.at(100, false, timeout), 0);
        assert_eq!(settled_time.at(120, false, timeout), 100);
        assert_eq!(settled_time.at(5_000, false, timeout), 120, "the first look after a pause");
        assert_eq!(settled_time.at(5_001, false, timeout), 120, "other requests may be unread");
        assert_eq!(settled_time.at(5_249, false, timeout), 120, "the tasks that read them may be delayed");
        assert_eq!(settled_time.at(5_250, true, timeout), 120, "a full batch");
        assert_eq!(settled_time.at(5_251, false, timeout), 5_000);
        assert_eq!(settled_time.at(5_271, false, timeout), 5_251, "the server has caught up");
    }

    #[test]
    fn a_check_that_was_on_time_settles_the_time_of_the_previous_check() {
        let mut settled_time = SettledTime::default();
        for (now, settled) in [(500, 0), (520, 500), (1_020, 520), (1_040, 1_020)] {
            assert_eq!(settled_time.at(now, false, Some(Duration::from_millis(500))), settled);
        }
        assert_eq!(
            (settled_time.at(9_000, false, None), settled_time.at(9_020, false, None)),
            (1_040, 9_000)
        );
    }

    #[test]
    fn a_server_that_is_always_busy_still_expires_sessions() {
        let mut settled_time = SettledTime::default();
        let settled = (0..3_000).map(|now| settled_time.at(now, true, None)).last();
        assert_eq!(settled, Some(1_000));
    }
}
