//! The election on a real server.
#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

mod faults;
mod handover;
mod operators;
mod stage;
