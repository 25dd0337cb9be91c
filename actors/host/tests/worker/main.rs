//! The worker wing on a real server. The tests play the leader: they submit and assign jobs themselves.
#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

mod faults;
mod jobs;
mod shorter_timeout;
mod stage;
