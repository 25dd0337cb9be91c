//! The decisions of Bellwether, without side effects.
//!
//! Everything here is a value or a pure function: no I/O, no clock, no randomness, no async. Time and random numbers
//! are arguments; effects are returned as data ([`txn::Op`], the effects of a machine). Only the keys of hash maps
//! are random, and nothing depends on them ([`machine`]). The crate boundary enforces this: `tokio`, `ractor` and
//! the ZooKeeper client are not among the dependencies.
//!
//! * [`name`], [`time`], [`duration`], [`change`], [`job`], [`trace`]: the domain types and their bounds.
//! * [`ready`]: the names of everything that waits for a worker. [`segment`]: many jobs in one znode.
//! * [`wire`]: the stored form of each type. [`path`]: the znode that stores it.
//! * [`txn`]: all transactions that change a namespace, and how a lost reply of each is resolved.
//! * [`takeover`]: whether an attempt moves to another worker.
//! * [`machine`]: the state machines that the actors run.
#![forbid(unsafe_code)]
// A test may match one effect and ignore all others.
#![cfg_attr(not(test), warn(clippy::wildcard_enum_match_arm))]

pub mod backoff;
pub mod budget;
pub mod chain;
pub mod change;
pub mod clock;
pub mod clock_report;
pub mod contact;
#[cfg(feature = "describe")]
pub mod describe;
pub mod duration;
pub mod failover;
pub mod group;
pub mod instant;
pub mod job;
pub mod machine;
pub mod metric;
pub mod name;
pub mod outcome;
pub mod path;
pub mod placement;
pub mod port;
pub mod ready;
pub mod retention;
pub mod schedule;
pub mod segment;
pub mod takeover;
#[doc(hidden)]
pub mod text;
pub mod time;
pub mod trace;
pub mod txn;
pub mod wire;
pub mod worker;
#[cfg(test)]
mod zookeeper;

pub use bellwether_remedy::{self as remedy, impl_remedy};
