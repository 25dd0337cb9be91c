//! The server and its store, through sockets and in child processes.
//!
//! Tests that measure time or load have programs of their own, because programs run one after the other: `concurrency`,
//! `slow_reader` and `paused_server`.
#![cfg(feature = "server")]

mod client;
mod committing;
mod failing_store;
mod four_letter_words;
#[cfg(feature = "testing")]
mod hooks;
mod hostile;
mod server_kill;
mod sessions;
mod store_kill;
#[cfg(feature = "tls")]
mod tls;
#[path = "../wire/mod.rs"]
mod wire;
