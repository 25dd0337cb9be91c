//! The client on a real server, with workers played by the tests.
#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

mod changed;
mod control;
mod events;
mod fake_cluster;
mod identity;
mod kinds;
mod lanes;
mod list;
mod lost;
mod pages;
mod placement;
mod retention;
mod schedules;
mod submit;
mod timing;
mod wait;
mod workers;
