//! Placement: how the leader chooses one of the workers that can take a job.
//!
//! The strategy is one setting of the namespace, so that nodes cannot differ. A running leader follows a change:
//! [`Client::set_placement_strategy`](crate::Client::set_placement_strategy), `bellwether placement set`, or
//! `PATCH /v1/placement`. Besides the [built-in strategies](BuiltInStrategy) a node can have its own:
//!
//! ```no_run
//! use bellwether::placement::{PlacementJob, PlacementStrategy, PlacementWorker};
//! use bellwether::{Client, Node};
//!
//! /// Fills one worker after the other, so that the last ones stay empty and can be stopped.
//! struct Fullest;
//!
//! impl PlacementStrategy for Fullest {
//!     fn choose(&self, _: &PlacementJob<'_>, workers: &[PlacementWorker<'_>]) -> usize {
//!         let fullest = workers.iter().enumerate().max_by_key(|(_, worker)| worker.used);
//!         fullest.map_or(0, |(at, _)| at)
//!     }
//! }
//!
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! let zookeeper = "zk1:2181/bellwether/prod";
//! // Every candidate needs the strategy, because each may become the leader.
//! let node = Node::builder(zookeeper).placement_strategy("fullest", Fullest).start().await?;
//! let client = Client::connect(zookeeper).await?;
//! client.set_placement_strategy("fullest".parse()?).await?;
//! # Ok(()) }
//! ```
//!
//! A leader without a strategy of the name that is set, or whose strategy fails, assigns with the default,
//! [`BuiltInStrategy::LeastLoaded`]. It logs a warning, and its metric `bellwether_placement_fallback` is 1.

pub use bellwether_core::name::StrategyName;
pub use bellwether_core::placement::{
    BuiltInStrategy, CustomStrategyError, PlacementJob, PlacementStrategy, PlacementWorker,
};
