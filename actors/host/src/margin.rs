//! How close a session came to its end, for those who watch from outside.
//!
//! A scrape each quarter of a minute would miss a silence of seconds. So what is shown is the least of the last
//! half minute to a minute: it is kept by halves, of which the older is forgotten as a whole.

use std::time::{Duration, Instant};

use bellwether_core::metric;
use bellwether_zk::Zk;
use metrics::gauge;
use tokio::time::sleep;

use crate::task::Owned;

/// Looks per session timeout: what is missed between two is a twentieth of it.
const LOOKS: u32 = 20;

/// Longer than the usual time between two scrapes.
const HALF: Duration = Duration::from_secs(30);

/// Shows the margin of this session, and its timeout, without keeping it alive.
pub(crate) fn show(zk: &Zk) -> Owned {
    let (trust, timeout) = (zk.trust(), zk.session_timeout());
    gauge!(metric::SESSION_TIMEOUT).set(timeout.as_secs_f64());
    let mut least = Least::new(timeout);
    let began = Instant::now();
    Owned::spawn(async move {
        loop {
            let now = Instant::now();
            let margin = trust.until().saturating_duration_since(now);
            gauge!(metric::SESSION_MARGIN).set(least.note(now - began, margin).as_secs_f64());
            sleep(timeout / LOOKS).await;
        }
    })
}

/// Shows that there is no session, and so no margin.
pub(crate) fn hide() {
    gauge!(metric::SESSION_MARGIN).set(0.0);
}

/// The least of a value in this half, and in the one before.
#[derive(Debug)]
struct Least {
    half: u128,
    now: Duration,
    before: Duration,
    most: Duration,
}

impl Least {
    fn new(most: Duration) -> Self {
        Self { half: 0, now: most, before: most, most }
    }

    /// Takes a value in, and gives the least that is remembered.
    fn note(&mut self, at: Duration, value: Duration) -> Duration {
        let half = at.as_millis() / HALF.as_millis();
        if half > self.half {
            self.before = if half == self.half + 1 { self.now } else { self.most };
            (self.half, self.now) = (half, self.most);
        }
        self.now = self.now.min(value);
        self.now.min(self.before)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dip_is_shown_for_half_a_minute_at_least_and_a_minute_at_most() {
        const SECOND: Duration = Duration::from_secs(1);
        let mut least = Least::new(10 * SECOND);
        let mut shown = |at: u32, value: u32| least.note(at * SECOND, value * SECOND);
        assert_eq!(shown(0, 9), 9 * SECOND);
        assert_eq!(shown(29, 2), 2 * SECOND, "the dip");
        assert_eq!(shown(30, 8), 2 * SECOND);
        assert_eq!(shown(59, 8), 2 * SECOND);
        assert_eq!(shown(60, 9), 8 * SECOND, "a half later it is forgotten");
        assert_eq!(shown(150, 9), 9 * SECOND, "and so is everything after a silence");
    }
}
