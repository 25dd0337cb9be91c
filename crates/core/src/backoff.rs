//! Exponential backoff with equal jitter.
//!
//! The n-th wait is drawn from `[d/2, d]` with `d = min(initial × 2ⁿ⁻¹, max)`. One half is fixed, so that a retry never
//! comes immediately. The other half is random, so that jobs that failed together do not retry together ("equal jitter"
//! of the AWS Architecture Blog, *Exponential Backoff And Jitter*, 2015).

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::duration::text;
use crate::time::as_millis;

/// The bounds of the waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Backoff {
    /// The first wait before jitter.
    #[serde(with = "text")]
    pub initial: Duration,
    /// The longest wait.
    #[serde(with = "text")]
    pub max: Duration,
}

impl Backoff {
    /// The wait before retry number `retry` (1 is the first). `random` is any 64 random bits.
    #[must_use]
    pub fn delay(&self, retry: u32, random: u64) -> Duration {
        let doublings = retry.saturating_sub(1).min(40);
        let whole = as_millis(self.initial).saturating_mul(1 << doublings).min(as_millis(self.max));
        let half = whole / 2;
        let spread = whole - half;
        Duration::from_millis(half + random % (spread + 1))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const BACKOFF: Backoff = Backoff { initial: Duration::from_millis(100), max: Duration::from_secs(10) };

    #[test]
    fn waits_double_until_the_maximum() {
        let longest = |retry| (0..20_000).map(|r| BACKOFF.delay(retry, r)).max().unwrap();
        assert_eq!(
            [1, 2, 3, 7, 8, 60].map(|retry| longest(retry).as_millis()),
            [100, 200, 400, 6400, 10_000, 10_000]
        );
    }

    proptest! {
        #[test]
        fn a_wait_is_at_least_half_and_at_most_whole(retry in 1u32.., random: u64) {
            let wait = BACKOFF.delay(retry, random).as_millis();
            let whole = (100u128 << (retry - 1).min(60)).min(10_000);
            prop_assert!(whole / 2 <= wait && wait <= whole);
        }
    }
}
