//! Traces as a collector gets them from real processes, some of which are killed.
#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

mod collector;
mod export;
mod process;
