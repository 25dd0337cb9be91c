//! Up to when all that clients sent has been handled: sessions may end by that time, and by no later one.
//!
//! After the process was stopped, or starved, what clients sent waits in their sockets, and the tasks that read them
//! hand it over bit by bit. So one look into the inbox proves nothing about the time at which it was made; that
//! [`LOOK_AGAIN`] later a batch comes out which is not full, does. Behind a look that came later than it was to, by
//! [`AWAY`], it has to be [`CATCH_UP`] later: what stopped the server may still hold up some of those tasks. That is a
//! bet, as nobody can see into a socket that is not read; lost, it costs a session, which a client must expect at any time.

use std::time::Duration;

use super::super::limits::{AWAY, CATCH_UP, LOOK_AGAIN, LOOKS_LAST};

/// Looks into the inbox, in monotonic milliseconds.
#[derive(Debug, Default)]
pub(super) struct Looks {
    /// All that came until then was handled.
    settled: u64,
    /// The look that is settled next.
    open: u64,
    /// The last one.
    last: u64,
    /// Whether one since `open` was late.
    late: bool,
    /// Whether that was so when `open` was noted, or by it.
    behind: bool,
}

impl Looks {
    /// Notes a look, and answers up to when time has passed for sessions.
    ///
    /// A server that is never idle settles its looks all the same, by [`LOOKS_LAST`]: nobody may keep other people's
    /// sessions alive by being busy. The look was to come within `patience` of the one before.
    pub(super) fn at(&mut self, now_ms: u64, full: bool, patience: Option<Duration>) -> u64 {
        let since = |past: u64| Duration::from_millis(now_ms.saturating_sub(past));
        self.late |= patience.is_some_and(|patience| since(self.last) > patience + AWAY);
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
    fn the_time_that_a_server_was_away_passes_once_it_has_caught_up() {
        let patience = Some(Duration::from_millis(500));
        let mut looks = Looks::default();
        assert_eq!(looks.at(100, false, patience), 0);
        assert_eq!(looks.at(120, false, patience), 100);
        assert_eq!(looks.at(5_000, false, patience), 120, "the first look after a stop");
        assert_eq!(looks.at(5_001, false, patience), 120, "others' requests are still in sockets");
        assert_eq!(looks.at(5_249, false, patience), 120, "and who reads them may be held up");
        assert_eq!(looks.at(5_250, true, patience), 120, "and there are more");
        assert_eq!(looks.at(5_251, false, patience), 5_000);
        assert_eq!(looks.at(5_271, false, patience), 5_251, "as before");
    }

    #[test]
    fn a_server_that_only_waited_as_long_as_it_was_to_is_not_behind() {
        let mut looks = Looks::default();
        for (now, settled) in [(500, 0), (520, 500), (1_020, 520), (1_040, 1_020)] {
            assert_eq!(looks.at(now, false, Some(Duration::from_millis(500))), settled);
        }
        assert_eq!((looks.at(9_000, false, None), looks.at(9_020, false, None)), (1_040, 9_000));
    }

    #[test]
    fn a_server_that_is_always_busy_still_ends_sessions() {
        let mut looks = Looks::default();
        let settled = (0..3_000).map(|now| looks.at(now, true, None)).last();
        assert_eq!(settled, Some(1_000));
    }
}
