//! What becomes of jobs whose handlers hang, renew, report, and say what shall follow.
#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

mod hung;
mod outcomes;
mod progress;
mod renewal;
mod stage;
