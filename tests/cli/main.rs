//! The real binary against a real ZooKeeper: exit codes, documents, and what is said where.
#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

mod jobs;
mod node;
mod refusals;
mod run;
