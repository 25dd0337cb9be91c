//! The `bellwether` command and the ready-made job kinds. The HTTP gateway is in [`bellwether_gateway`], the benchmark in
//! [`bellwether_bench`].
//!
//! This crate uses the public API of the library [`bellwether`] and adds what a service that embeds a node does not need.
//!
//! | module | contents |
//! | --- | --- |
//! | `cli` | the command line: nodes, jobs, operations, an embedded server, a demo |
//! | [`builtin`] | the job kinds that every `bellwether node` can run |
#![forbid(unsafe_code)]

pub mod builtin;
mod cli;
#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub mod fuzz;
mod node_process;
#[cfg(feature = "otel")]
pub mod otel;

pub use cli::main;
