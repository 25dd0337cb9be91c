//! How often a supervisor restarts its children before it gives up.

use std::collections::VecDeque;
use std::time::Duration;

use bellwether_core::time::Millis;

/// A supervisor fails after more restarts than this within [`WITHIN`]. A restart does not cure a fault that comes back
/// this often, so the next supervisor decides.
const RESTARTS: usize = 10;
const WITHIN: Duration = Duration::from_secs(30);

/// Counts restarts.
#[derive(Debug, Default)]
pub(crate) struct Intensity(VecDeque<Millis>);

/// The error text for too many restarts.
pub(crate) fn too_many(what: &str) -> String {
    format!("{what} was restarted more than {RESTARTS} times within {WITHIN:?}")
}

impl Intensity {
    /// Records a restart; returns `false` when there were too many.
    pub(crate) fn allows(&mut self, now: Millis) -> bool {
        self.0.push_back(now);
        while self.0.front().is_some_and(|first| now.since(*first) > WITHIN) {
            self.0.pop_front();
        }
        self.0.len() <= RESTARTS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_restarts_within_half_a_minute_are_allowed_and_old_ones_are_forgotten() {
        let mut intensity = Intensity::default();
        assert!((0..10).all(|second| intensity.allows(Millis(second * 1_000))));
        assert!(!intensity.allows(Millis(10_000)), "the eleventh");
        assert!(intensity.allows(Millis(40_001)), "all but one are older than half a minute");
    }
}
