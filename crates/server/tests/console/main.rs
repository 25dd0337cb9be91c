//! The console in a real browser.
#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

#[path = "../http/ask.rs"]
#[allow(dead_code, reason = "the tests of HTTP use more of it")]
mod ask;
mod browser;
mod changes;
mod details;
mod first_view;
mod groups;
mod insight;
mod live;
mod login;
mod pages;
mod picture;
mod roles;
#[path = "../http/stage.rs"]
#[allow(dead_code, reason = "the tests of HTTP use more of it")]
mod stage;
