//! A cluster of real processes under faults: killed, frozen and disconnected nodes, expired sessions, corrupt data.
//!
//! Every test has its own namespace and its own node processes. A job of these tests writes a line for each run
//! ([`runs`]), so every test detects a run that the job's record does not explain.
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
mod failover;
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
