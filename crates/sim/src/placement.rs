//! The own placement strategies of the simulated nodes.

use std::sync::Arc;

use bellwether_core::name::StrategyName;
use bellwether_core::placement::{OwnStrategies, PlacementJob, PlacementStrategy, PlacementWorker};

/// The names that plans use besides those of the built-in strategies. No node has the last one.
pub(crate) const OWN_STRATEGIES: [&str; 3] = ["fullest", "beyond", "unknown"];

/// Chooses the worker with the most jobs.
struct Fullest;

impl PlacementStrategy for Fullest {
    fn choose(&self, _: &PlacementJob<'_>, workers: &[PlacementWorker<'_>]) -> usize {
        workers.iter().enumerate().max_by_key(|(_, worker)| worker.used).map_or(0, |(at, _)| at)
    }
}

/// Chooses a worker that is not offered.
struct Beyond;

impl PlacementStrategy for Beyond {
    fn choose(&self, _: &PlacementJob<'_>, workers: &[PlacementWorker<'_>]) -> usize {
        workers.len()
    }
}

/// Returns the strategies that each node has.
pub(crate) fn strategies() -> OwnStrategies {
    let [fullest, beyond, _] = OWN_STRATEGIES.map(|name| StrategyName::new(name).expect("letters"));
    let mut own = OwnStrategies::default();
    own.add(fullest, Arc::new(Fullest)).expect("the name is free");
    own.add(beyond, Arc::new(Beyond)).expect("the name is free");
    own
}
