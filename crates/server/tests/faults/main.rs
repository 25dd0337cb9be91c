//! What a cluster of real processes does when its parts are killed, frozen, cut off, expired and corrupted.
//!
//! Every test has a namespace of its own, and nodes that are processes of their own. A job of these tests writes a
//! line for each run ([`runs`]), so that a second run without a record that explains it is found, whatever else
//! the test is about.
#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

mod places;
mod process;
mod runs;
mod stage;

mod atomicity;
mod corruption;
mod drain;
mod election;
mod expiry;
mod lanes;
mod leader_steps;
mod leases;
mod lost_replies;
mod order;
mod pause;
mod retention;
mod schedules;
mod server;
mod stale_leader;
mod thousands;
mod waiting;
mod worker_loss;
