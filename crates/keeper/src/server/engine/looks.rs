//! Up to when all that clients sent has been handled: sessions may end by that time, and by no later one.
//!
//! After the process was stopped, or starved, what clients sent waits in their sockets, and the tasks that read them
//! hand it over bit by bit. So one look into the inbox proves nothing about the time at which it was made; that
//! [`LOOK_AGAIN`] later a batch comes out which is not full, does.

use super::super::limits::{LOOK_AGAIN, LOOKS_LAST};

/// Looks into the inbox, in monotonic milliseconds.
#[derive(Debug, Default)]
pub(super) struct Looks {
    /// All that came until then was handled.
    settled: u64,
    /// The look that is settled next.
    open: u64,
}

impl Looks {
    /// Notes a look, and answers up to when time has passed for sessions.
    ///
    /// A server that is never idle settles its looks all the same, by [`LOOKS_LAST`]: nobody may keep other people's
    /// sessions alive by being busy.
    pub(super) fn at(&mut self, now_ms: u64, full: bool) -> u64 {
        let since = u128::from(now_ms.saturating_sub(self.open));
        if (since >= LOOK_AGAIN.as_millis() && !full) || since >= LOOKS_LAST.as_millis() {
            self.settled = self.open;
            self.open = now_ms;
        }
        self.settled
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_that_a_server_was_away_passes_once_it_has_caught_up() {
        let mut looks = Looks::default();
        assert_eq!(looks.at(100, false), 0);
        assert_eq!(looks.at(120, false), 100);
        assert_eq!(looks.at(5_000, false), 120, "the first look after a stop");
        assert_eq!(looks.at(5_001, false), 120, "others' requests are still in sockets");
        assert_eq!(looks.at(5_020, true), 120, "and there are more");
        assert_eq!(looks.at(5_030, false), 5_000);
    }

    #[test]
    fn a_server_that_is_always_busy_still_ends_sessions() {
        let mut looks = Looks::default();
        let settled = (0..3_000).map(|now| looks.at(now, true)).last();
        assert_eq!(settled, Some(1_000));
    }
}
