//! Namespaces that are closed to others, on a real server: who may touch them, who is told, and what stays secret.
#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

mod closed;
mod command;
mod refused;
mod sasl;
mod self_check;
mod stage;
#[cfg(feature = "zookeeper-tls")]
mod tls;
mod work;
