//! The console in a real browser.
#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

#[path = "../http/ask.rs"]
#[allow(dead_code, reason = "the tests of HTTP use more of it")]
mod ask;
mod browser;
mod changes;
mod groups;
mod live;
mod login;
mod pages;
#[path = "../http/stage.rs"]
#[allow(dead_code, reason = "the tests of HTTP use more of it")]
mod stage;
