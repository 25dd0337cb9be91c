//! The client on a real server, with workers played by the tests.
#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

mod control;
mod fake_cluster;
mod identity;
mod kinds;
mod lanes;
mod list;
mod lost;
mod placement;
mod retention;
mod submit;
mod timing;
mod wait;
mod workers;
