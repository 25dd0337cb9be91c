//! Jobs whose handlers hang, renew their lease, report progress, or choose an outcome.
#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

mod closed;
mod dead_letters;
mod handlers;
mod hung;
mod outcomes;
mod progress;
mod renewal;
mod stage;
