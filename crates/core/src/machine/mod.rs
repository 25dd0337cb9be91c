//! The state machines that actors feed.
//!
//! A machine takes events and pushes effects; it holds no clock, no randomness and no connection. What an
//! effect led to comes back as an event, with a ticket where answers may overtake each other, so that a reply
//! to a question that is no longer asked is recognised and dropped.
//!
//! One thing is random: the keys of the hash maps by job (`by_job`), which nobody shall know. No event's effects depend on
//! them.

pub mod assigner;
pub mod backlog;
mod by_job;
pub mod campaign;
pub mod expirer;
pub mod group;
pub mod janitor;
pub mod leadership;
pub mod lease;
pub mod membership;
pub mod promoter;
pub mod recovery;
pub mod schedule;
pub mod worker;
