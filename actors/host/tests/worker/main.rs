//! The worker wing against a real server. The tests are the leader: they submit and assign by hand.
#![allow(clippy::unwrap_used, reason = "a test's helpers fail as its tests do")]

mod faults;
mod life;
mod stage;
