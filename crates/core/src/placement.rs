//! Placement: how the leader chooses one of the workers that can take a job.
//!
//! The strategy is a setting of the namespace, `/config/placement`, by name. A name denotes a [`BuiltInStrategy`] or a
//! [custom strategy](PlacementStrategy) that the leader's process provides. If the setting is absent, or its strategy cannot
//! be used, the leader uses the default: [`BuiltInStrategy::LeastLoaded`].

use std::collections::BTreeMap;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crate::name::{JobId, Kind, NodeId, StrategyName, Tag, WorkerId};

/// A strategy that every leader has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum BuiltInStrategy {
    /// The worker with the smallest share of used slots.
    #[default]
    LeastLoaded,
    /// Each worker in turn.
    RoundRobin,
    /// A random worker.
    Random,
    /// Sends jobs of one affinity key to one worker while it has a free slot, then to the next worker in the key's
    /// order. The order does not depend on the leader and changes little when workers join or leave. (Rendezvous or
    /// highest-random-weight hashing; Thaler and Ravishankar, 1998.)
    Rendezvous,
}

crate::impl_names!(BuiltInStrategy {
    LeastLoaded = "least-loaded",
    RoundRobin = "round-robin",
    Random = "random",
    Rendezvous = "rendezvous",
});

impl BuiltInStrategy {
    /// Returns the built-in strategy with this name.
    #[must_use]
    pub fn named(name: &StrategyName) -> Option<Self> {
        Self::ALL.into_iter().find(|strategy| strategy.as_str() == name.as_str())
    }
}

impl From<BuiltInStrategy> for StrategyName {
    fn from(strategy: BuiltInStrategy) -> Self {
        Self::new(strategy.as_str()).expect("the names of the built-in strategies are valid")
    }
}

/// The setting in `/config/placement`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PlacementSetting {
    /// The strategy.
    pub strategy: StrategyName,
}

/// A job that waits for a worker, as a [`PlacementStrategy`] sees it.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct PlacementJob<'a> {
    /// The job.
    pub id: &'a JobId,
    /// Its kind.
    pub kind: &'a Kind,
    /// Its affinity key.
    pub affinity: Option<&'a str>,
    /// Its priority, 0 to 9.
    pub priority: u8,
    /// The number of the attempt that is assigned.
    pub attempt: u32,
}

/// A worker that can take the job: it serves the kind, has the tags and has a free slot.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct PlacementWorker<'a> {
    /// The worker.
    pub id: WorkerId,
    /// The worker's node.
    pub node: &'a NodeId,
    /// The node's host, as the node reports it.
    pub host: &'a str,
    /// The worker's tags, sorted.
    pub tags: &'a [Tag],
    /// The worker's slots.
    pub slots: usize,
    /// How many of these slots hold a job; fewer than `slots`. Jobs that have just ended may be counted.
    pub used: usize,
}

impl<'a> PlacementJob<'a> {
    /// Describes a job, for a test of a strategy.
    #[must_use]
    pub fn new(id: &'a JobId, kind: &'a Kind) -> Self {
        Self { id, kind, affinity: None, priority: 5, attempt: 1 }
    }
}

impl<'a> PlacementWorker<'a> {
    /// Describes a worker without jobs and tags, for a test of a strategy.
    #[must_use]
    pub fn new(id: WorkerId, node: &'a NodeId, slots: usize) -> Self {
        Self { id, node, host: "", tags: &[], slots, used: 0 }
    }
}

/// A custom strategy: chooses one of the workers that can take a job.
///
/// Implement it as a pure function. The leader calls it once per assignment, in the task that assigns all jobs: a call that
/// takes long delays every job, and a call that never returns stops all assignments of this leader. What the strategy
/// remembers is lost when another node becomes the leader.
///
/// A strategy cannot hold a job back, and cannot choose a worker that is not offered. If it panics or returns a position
/// outside `workers`, the leader logs a warning and assigns with the default strategy until the setting changes or
/// another leader is elected. No job is lost.
pub trait PlacementStrategy: Send + Sync {
    /// Returns the position of the chosen worker in `workers`, which is not empty and ordered by id.
    fn choose(&self, job: &PlacementJob<'_>, workers: &[PlacementWorker<'_>]) -> usize;
}

/// A custom strategy with its name.
#[derive(Clone)]
pub struct OwnStrategy {
    name: StrategyName,
    strategy: Arc<dyn PlacementStrategy>,
}

impl OwnStrategy {
    /// Returns the position that the strategy chooses.
    pub(crate) fn choose(
        &self,
        job: &PlacementJob<'_>,
        workers: &[PlacementWorker<'_>],
    ) -> Result<usize, Fallback> {
        // The leader does not use the strategy after a panic, so a state that the panic left broken is not seen.
        match catch_unwind(AssertUnwindSafe(|| self.strategy.choose(job, workers))) {
            Ok(at) if at < workers.len() => Ok(at),
            Ok(at) => Err(Fallback::NoWorker { strategy: self.name.clone(), at, workers: workers.len() }),
            Err(_) => Err(Fallback::Panicked(self.name.clone())),
        }
    }
}

impl fmt::Debug for OwnStrategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OwnStrategy({})", self.name)
    }
}

impl PartialEq for OwnStrategy {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name && Arc::ptr_eq(&self.strategy, &other.strategy)
    }
}

impl Eq for OwnStrategy {}

impl Hash for OwnStrategy {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

/// The own strategies of a process, by name.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct OwnStrategies(BTreeMap<StrategyName, OwnStrategy>);

/// A custom strategy cannot be added.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CustomStrategyError {
    /// The name denotes a built-in strategy.
    #[error("{0} is a built-in placement strategy: choose another name")]
    BuiltIn(StrategyName),
    /// The name is used twice.
    #[error("the placement strategy {0} is given twice")]
    Twice(StrategyName),
}

impl OwnStrategies {
    /// Adds a strategy.
    ///
    /// # Errors
    /// The name denotes a strategy already.
    pub fn add(
        &mut self,
        name: StrategyName,
        strategy: Arc<dyn PlacementStrategy>,
    ) -> Result<(), CustomStrategyError> {
        if BuiltInStrategy::named(&name).is_some() {
            return Err(CustomStrategyError::BuiltIn(name));
        }
        let own = OwnStrategy { name: name.clone(), strategy };
        match self.0.insert(name.clone(), own) {
            None => Ok(()),
            Some(_) => Err(CustomStrategyError::Twice(name)),
        }
    }

    /// Returns the strategy with this name.
    pub(crate) fn named(&self, name: &StrategyName) -> Option<&OwnStrategy> {
        self.0.get(name)
    }
}

/// Why a leader uses the default strategy instead of the set one.
#[derive(Debug, Clone, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Fallback {
    /// The setting cannot be read.
    #[error("the setting cannot be read: {0}")]
    Unreadable(String),
    /// This process has no strategy with this name.
    #[error("this node has no placement strategy {0}")]
    Unknown(StrategyName),
    /// The strategy panicked.
    #[error("the placement strategy {0} panicked")]
    Panicked(StrategyName),
    /// The strategy returned a position outside the list.
    #[error("the placement strategy {strategy} chose worker {at} of {workers}, counted from 0")]
    NoWorker {
        /// The strategy.
        strategy: StrategyName,
        /// The returned position.
        at: usize,
        /// The number of workers.
        workers: usize,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    struct First;

    impl PlacementStrategy for First {
        fn choose(&self, _: &PlacementJob<'_>, _: &[PlacementWorker<'_>]) -> usize {
            0
        }
    }

    #[test]
    fn each_built_in_strategy_is_found_by_its_name() {
        for strategy in BuiltInStrategy::ALL {
            assert_eq!(BuiltInStrategy::named(&strategy.into()), Some(strategy));
        }
        assert_eq!(BuiltInStrategy::named(&StrategyName::new("fullest").unwrap()), None);
    }

    #[test]
    fn an_own_strategy_cannot_have_the_name_of_another_one() {
        let mut own = OwnStrategies::default();
        let mut add = |name: &str| own.add(StrategyName::new(name).unwrap(), Arc::new(First));
        assert_eq!(add("first"), Ok(()));
        assert_eq!(add("first").unwrap_err().to_string(), "the placement strategy first is given twice");
        let taken = "random is a built-in placement strategy: choose another name";
        assert_eq!(add("random").unwrap_err().to_string(), taken);
    }

    #[test]
    fn two_own_strategies_are_equal_only_if_name_and_implementation_are() {
        let hash = |own: &OwnStrategy| {
            let mut hasher = std::hash::DefaultHasher::new();
            own.hash(&mut hasher);
            hasher.finish()
        };
        let own = |name: &str, strategy: &Arc<dyn PlacementStrategy>| OwnStrategy {
            name: StrategyName::new(name).unwrap(),
            strategy: Arc::clone(strategy),
        };
        // `First` has no size: two of them could have the same address.
        struct Fixed(#[expect(dead_code, reason = "gives the strategy an address")] u8);
        impl PlacementStrategy for Fixed {
            fn choose(&self, _: &PlacementJob<'_>, _: &[PlacementWorker<'_>]) -> usize {
                0
            }
        }
        let [one, two]: [Arc<dyn PlacementStrategy>; 2] = [Arc::new(Fixed(1)), Arc::new(Fixed(2))];
        assert_eq!(own("a", &one), own("a", &one));
        assert_ne!(own("a", &one), own("b", &one));
        assert_ne!(own("a", &one), own("a", &two));
        assert_eq!(hash(&own("a", &one)), hash(&own("a", &two)));
        assert_ne!(hash(&own("a", &one)), hash(&own("b", &one)));
        assert_eq!(format!("{:?}", own("a", &one)), "OwnStrategy(a)");
    }
}
