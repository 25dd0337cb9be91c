//! Test what you build on Bellwether: a single handler, or a whole cluster in the process of your test, with fault
//! injection. Feature `testing`; add it as a development dependency:
//!
//! ```toml
//! [dev-dependencies]
//! bellwether = { version = "0.1", features = ["testing"] }
//! ```
//!
//! | to test | use |
//! | --- | --- |
//! | one handler with a payload, on its third attempt, or while it is cancelled | [`Attempt`] |
//! | the jobs of a service end to end | [`Cluster`] and its [`client`](Cluster::client) |
//! | … when the leader dies | [`ClusterNode::kill`] of [`Cluster::leader`] |
//! | … when ZooKeeper expires a node's session | [`ClusterNode::expire`] |
//! | … when a node is cut off, or its replies are lost | [`ClusterNode::cut_off`], [`ClusterNode::lose_replies`] |
//! | a program that shows the state of a namespace | [`views`] |
//! | a panic, kill or stall of one of Bellwether's own actors | [`actors`] |
//!
//! A cluster needs no JVM, no other process and no fixed port. Its server is the
//! [keeper](https://github.com/bellwether-scheduler/bellwether/blob/main/docs/keeper.md) in memory; its nodes and its
//! client are the same as in production, over real sockets. It cannot test the failover of an ensemble, because there
//! is only one server.
//!
//! A single handler:
//!
//! ```
//! use bellwether::testing::Attempt;
//! use bellwether::{HandlerError, Handlers, Job};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let handlers = Handlers::new().job("charge", |context, cents: u32| async move {
//!     match context.attempt() {
//!         1 => Err(HandlerError::new("the bank does not answer")),
//!         _ => Ok(format!("charged {cents}, once, as {}", context.job())),
//!     }
//! });
//! let order = || Job::new("charge", &995).id("order-7");
//!
//! let refused = Attempt::of(order())?.perform(&handlers).await.unwrap_err();
//! assert_eq!(refused.to_string(), "the attempt failed: the bank does not answer");
//! let charged = Attempt::of(order())?.number(2).perform(&handlers).await?;
//! assert_eq!(charged.bytes(), br#""charged 995, once, as order-7""#);
//! # Ok(()) }
//! ```
//!
//! A cluster whose leader dies:
//!
//! ```
//! use std::time::Duration;
//!
//! use bellwether::testing::Cluster;
//! use bellwether::{Handlers, JobKind};
//!
//! struct Square;
//!
//! impl JobKind for Square {
//!     const NAME: &'static str = "square";
//!     type Payload = i64;
//!     type Result = i64;
//! }
//!
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let handlers = Handlers::new().kind::<Square>(|_, n| async move { Ok(n * n) });
//! let cluster = Cluster::builder(handlers).nodes(2).start().await?;
//!
//! cluster.leader().await?.kill().await;
//! let job = cluster.client().submit(Square::job(&7)).await?;
//! assert_eq!(job.result(Duration::from_secs(30)).await?, 49);
//!
//! cluster.stop().await?;
//! # Ok(()) }
//! ```

mod attempt;
mod cluster;
mod namespace;
mod node;
mod proxy;
pub mod views;

/// Faults in the messages of Bellwether's actors.
pub mod actors {
    pub use bellwether_host::testing::{Entry, Fault, InjectedFault, Kind, Planned, Probe, roster};
}

pub use attempt::{Attempt, AttemptError};
pub use cluster::{Cluster, ClusterBuilder, ClusterError};
pub use node::ClusterNode;
