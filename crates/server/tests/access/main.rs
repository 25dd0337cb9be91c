//! Namespaces that are closed to other users, on a real server: access lists, errors and log messages, and secrets.
#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

mod clear_text;
mod closed;
mod command;
mod pre_created;
mod refused;
mod roles;
mod rotation;
mod sasl;
mod self_check;
mod stage;
#[cfg(feature = "zookeeper-tls")]
mod tls;
mod work;
