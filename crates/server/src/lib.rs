//! The `bellwether` command and its parts: the HTTP gateway, the benchmark and the ready-made job kinds.
//!
//! This crate uses the public API of the library [`bellwether`] and adds what a service that embeds a node does not need.
//!
//! | module | contents |
//! | --- | --- |
//! | `cli` | the command line: nodes, jobs, operations, an embedded server, a demo |
//! | [`http`] | the HTTP gateway |
//! | [`builtin`] | the job kinds that every `bellwether node` can run |
//! | [`metrics`] | the Prometheus exporter |
//! | [`mod@bench`] | the benchmark behind `bellwether bench` |
#![forbid(unsafe_code)]

pub mod bench;
pub mod builtin;
mod cli;
mod document;
#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub mod fuzz;
pub mod http;
pub mod metrics;
mod node_process;
#[cfg(feature = "otel")]
pub mod otel;
mod rates;

pub use cli::main;
