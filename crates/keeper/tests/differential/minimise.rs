//! The shortest script that still differs: what a person wants to read.

use std::time::{Duration, Instant};

use crate::compare::{Difference, Pair, compare};
use crate::run::CLIENTS;
use crate::script::Step;

/// Each try starts two servers. Twenty tries halve a thousand steps down to some dozen.
const PATIENCE: Duration = Duration::from_secs(20);

/// Takes out of a script that differs what it does not need for it, as far as patience goes.
pub(crate) fn minimise(pair: Pair, script: &[Step], found: Difference) -> (Vec<Step>, Difference) {
    let deadline = Instant::now() + PATIENCE;
    let mut steps = script[..=found.at].to_vec();
    let mut best = found;
    // The clients' first connections stay, and so does the step that differs.
    let mut chunk = (steps.len() - CLIENTS.min(steps.len())) / 2;
    while chunk > 0 {
        let mut from = CLIENTS;
        while from + chunk < steps.len() {
            if Instant::now() > deadline {
                return (steps, best);
            }
            let mut fewer = steps.clone();
            fewer.drain(from..from + chunk);
            match compare(pair, &fewer) {
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
