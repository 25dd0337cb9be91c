//! The state machines.
//!
//! A machine takes events and pushes effects; it holds no clock, no randomness and no connection. Every request
//! to ZooKeeper goes out with a ticket and its reply comes back as an event with that ticket, so that a reply to
//! a question that is no longer asked is recognised and dropped.

pub mod campaign;
pub mod leadership;
