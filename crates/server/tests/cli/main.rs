//! The real binary against a real server: exit codes, JSON documents, and output on stdout and stderr.
#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

mod bench;
mod config;
mod exec;
mod groups;
mod jobs;
mod keeper;
mod lanes;
mod leader;
mod node;
mod order;
mod placement;
mod refusals;
mod retention;
mod run;
mod schedules;
mod service;
mod top;
mod trace;
mod workers;
