//! Limits the audit lines of callers without a valid token, so that they cannot fill the log.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Lines in each second. An operator sees an attack with one line as well as with thousands.
const LINES: u32 = 20;

const PERIOD: Duration = Duration::from_secs(1);

/// Counts lines.
#[derive(Debug, Default)]
pub(crate) struct Sampler(Mutex<Counts>);

#[derive(Debug, Default)]
struct Counts {
    /// The start of the current period, and the lines in it.
    period: Option<(Instant, u32)>,
    /// Lines that were left out since the last one.
    left_out: u64,
}

impl Sampler {
    /// Returns how many lines were left out before this one; `None` if this one is left out, too.
    pub(super) fn line(&self, now: Instant) -> Option<u64> {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (began, lines) =
            counts.period.filter(|(began, _)| now.duration_since(*began) < PERIOD).unwrap_or((now, 0));
        if lines >= LINES {
            counts.left_out += 1;
            return None;
        }
        counts.period = Some((began, lines + 1));
        Some(std::mem::take(&mut counts.left_out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_leaves_few_lines_and_the_next_one_has_the_number_of_the_others() {
        let (sampler, start) = (Sampler::default(), Instant::now());
        let lines = (0..10_000).filter_map(|_| sampler.line(start)).collect::<Vec<_>>();
        assert_eq!(lines, vec![0; LINES as usize]);
        assert_eq!(sampler.line(start + PERIOD), Some(10_000 - u64::from(LINES)));
        assert_eq!(sampler.line(start + PERIOD), Some(0));
    }
}
