//! Records how close a session came to its end, as a metric.
//!
//! The margin is the rest of the trust, so it counts only what ZooKeeper's leader has provably heard of
//! (`bellwether_core::contact`), and it falls while a server that is cut off from its leader answers reads.
//!
//! A scrape every 15 s would miss a silence of a few seconds. The gauge therefore shows the minimum of the last 30 to
//! 60 s: it is kept for two windows of 30 s, and the older window is dropped as a whole.

use std::sync::Arc;
use std::time::Duration;

use bellwether_actors::gauge::GaugePart;
use bellwether_core::metric;
use bellwether_zk::Zk;
use metrics::gauge;
use tokio::time::sleep;

use crate::clock;
use crate::task::Owned;

/// Samples per session timeout. A minimum between two samples is missed by at most a twentieth of the timeout.
const LOOKS: u32 = 20;

/// The length of a window: longer than the usual scrape interval.
const HALF: Duration = Duration::from_secs(30);

/// The margin of a node's session. The gauge shows the smallest of this process.
#[derive(Debug, Clone)]
pub(crate) struct SessionMargin(Arc<GaugePart>);

impl SessionMargin {
    pub(crate) fn new() -> Self {
        Self(Arc::new(GaugePart::of_minimum(metric::SESSION_MARGIN_SECONDS)))
    }

    /// Records a margin of zero: there is no session.
    pub(crate) fn hide(&self) {
        self.0.set(0.0);
    }

    /// Records the margin and the timeout of this session. Holds no session handle, so the session can end.
    pub(crate) fn show(&self, zk: &Zk) -> Owned {
        let (trust, timeout) = (zk.trust(), zk.session_timeout());
        gauge!(metric::SESSION_TIMEOUT_SECONDS).set(timeout.as_secs_f64());
        let mut least = Least::new(timeout);
        let began = clock::now();
        let part = Arc::clone(&self.0);
        Owned::spawn(async move {
            loop {
                let now = clock::now();
                let margin = trust.until().since(now);
                part.set(least.note(now.since(began), margin).as_secs_f64());
                sleep(timeout / LOOKS).await;
            }
        })
    }
}

/// The minimum of a value in the current window and in the previous one.
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

    /// Adds a value and returns the minimum of both windows.
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
    fn a_minimum_is_shown_for_30_to_60_seconds() {
        const SECOND: Duration = Duration::from_secs(1);
        let mut least = Least::new(10 * SECOND);
        let mut shown = |at: u32, value: u32| least.note(at * SECOND, value * SECOND);
        assert_eq!(shown(0, 9), 9 * SECOND);
        assert_eq!(shown(29, 2), 2 * SECOND, "the minimum");
        assert_eq!(shown(30, 8), 2 * SECOND);
        assert_eq!(shown(59, 8), 2 * SECOND);
        assert_eq!(shown(60, 9), 8 * SECOND, "dropped with its window");
        assert_eq!(shown(150, 9), 9 * SECOND, "all windows are dropped after a long gap");
    }
}
