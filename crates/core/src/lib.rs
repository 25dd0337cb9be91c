//! Bellwether's decisions, without its effects.
//!
//! Everything here is a value or a pure function: no I/O, no clock, no randomness, no async. Time and
//! random numbers are passed in; what should happen comes back as data ([`txn::Op`], a machine's effects).
//! Only the keys of hash maps are random, and nothing depends on them ([`machine`]).
//! The crate boundary enforces it: `tokio`, `ractor` and the ZooKeeper client are not among the dependencies.
//!
//! * [`name`], [`time`], [`job`], [`trace`]: the words of the domain and their bounds.
//! * [`wire`]: how each of them is stored in a znode. [`path`]: where.
//! * [`txn`]: every transaction that changes a namespace, in one place, and how a lost reply is resolved.
//! * [`machine`]: the state machines that actors feed.
#![forbid(unsafe_code)]
// A test may look for one effect among all.
#![cfg_attr(not(test), warn(clippy::wildcard_enum_match_arm))]

pub mod backoff;
pub mod budget;
pub mod group;
pub mod job;
pub mod machine;
pub mod metric;
pub mod name;
pub mod outcome;
pub mod path;
pub mod port;
pub mod retention;
pub mod schedule;
pub mod time;
pub mod trace;
pub mod txn;
pub mod wire;
pub mod worker;
#[cfg(test)]
mod zookeeper;
