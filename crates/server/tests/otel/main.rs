//! Traces of real processes, some of which are killed, as a collector receives them.
#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

mod collector;
mod export;
mod process;
