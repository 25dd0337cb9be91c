//! Finds a short script with a difference, for the report.

use std::time::{Duration, Instant};

use crate::compare::{Difference, compare};
use crate::run::CLIENTS;
use crate::script::Step;
use crate::servers::Kind;

/// Each attempt starts two servers. Twenty attempts reduce a thousand steps to about a dozen.
const PATIENCE: Duration = Duration::from_secs(60);

/// Removes steps that are not needed for the difference, within the time limit.
pub(crate) fn minimise(kind: Kind, script: &[Step], found: Difference) -> (Vec<Step>, Difference) {
    let deadline = Instant::now() + PATIENCE;
    let mut steps = script[..=found.at].to_vec();
    let mut best = found;
    // The first connections of the clients and the step with the difference are kept.
    let mut chunk = (steps.len() - CLIENTS.min(steps.len())) / 2;
    while chunk > 0 {
        let mut from = CLIENTS;
        while from + chunk < steps.len() {
            if Instant::now() > deadline {
                return (steps, best);
            }
            let mut fewer = steps.clone();
            fewer.drain(from..from + chunk);
            match compare(kind, &fewer) {
                Some(difference) => {
                    fewer.truncate(difference.at + 1);
                    (steps, best) = (fewer, difference);
                }
                None => from += chunk,
            }
        }
        chunk /= 2;
    }
    (steps, best)
}
