//! Exponential backoff with equal jitter.
//!
//! The n-th wait is drawn from `[d/2, d]` with `d = min(initial × 2ⁿ⁻¹, max)`. One half is fixed, so that a retry never
//! comes immediately. The other half is random, so that jobs that failed together do not retry together ("equal jitter"
//! of the AWS Architecture Blog, *Exponential Backoff And Jitter*, 2015).

use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

#[cfg(feature = "describe")]
use crate::duration::DurationText;
use crate::duration::{self, DurationError, text};
use crate::time::as_millis;

/// The bounds of the waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "describe", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Backoff {
    /// The wait after the first failure, before jitter.
    #[cfg_attr(feature = "describe", schema(value_type = DurationText))]
    #[serde(with = "text")]
    pub initial: Duration,
    /// The longest wait.
    #[cfg_attr(feature = "describe", schema(value_type = DurationText))]
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

/// Reads both waits as one text: `1s..5m`.
impl FromStr for Backoff {
    type Err = BackoffError;

    fn from_str(text: &str) -> Result<Self, BackoffError> {
        let (initial, max) = text.split_once("..").ok_or(BackoffError::Form)?;
        Ok(Self { initial: duration::parse(initial)?, max: duration::parse(max)? })
    }
}

/// A text is not a backoff.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BackoffError {
    /// It is not two durations.
    #[error("give the first and the longest wait, such as 1s..5m")]
    Form,
    /// A wait is not a duration.
    #[error(transparent)]
    Duration(#[from] DurationError),
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
