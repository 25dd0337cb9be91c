//! The HTTP gateway: a namespace for programs in other languages, and for people with curl.
//!
//! A [`Gateway`] serves HTTP/1.1 on top of a [`Client`](bellwether::Client). Except for its remote workers it keeps no state
//! of its own, so several gateways can serve one namespace, and each can answer for the requests of the others.
//!
//! ```no_run
//! use bellwether::Client;
//! use bellwether_gateway::Gateway;
//!
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! let client = Client::connect("zk1:2181,zk2:2181/bellwether/prod").await?;
//! let gateway = Gateway::builder(client).listen("127.0.0.1:8080".parse()?).start().await?;
//! println!("http://{}/docs", gateway.address());
//! # gateway.stop().await;
//! # Ok(()) }
//! ```
//!
//! | folder or file | concern |
//! | --- | --- |
//! | `builder`, `limits`, [`tls`] | configuration and limits, checked before the gateway listens |
//! | [`access`], `exposure` | tokens and certificates with roles and scopes, and where they are required |
//! | `audit_log`, `audit_file` | the last audit lines, and a file of all of them |
//! | `open_jobs` | the limit of a token's open jobs |
//! | `reload` | reads the files of tokens and certificates again |
//! | `metrics_server` | metrics on an address of their own |
//! | `server/` | accepting, TLS, connections, shutdown |
//! | `layers/` | layers of every request: id, audit line, metrics, origin, credentials, admission, time limit |
//! | `extract/` | bodies, parameters and ids, with errors that give the reason |
//! | `problem` | every error, as `application/problem+json` |
//! | `remote/` | remote workers: nodes whose handlers wait for calls |
//! | `alerts` | problems of the cluster, detected at each sample |
//! | `kind_statistics` | how many jobs of each kind end, and how long they run |
//! | `samples` | the samples of the last hour, for the charts of the console |
//! | `routes/` | one file per resource; the OpenAPI document is generated from them |
//! | [`metrics`] | the Prometheus exporter |
//! | [`rates`] | jobs per second between two snapshots |
//!
//! # Layers of a request
//!
//! ```text
//! accept ─ limit? ─ TLS ─ headers ≤ 16 KiB in 10 s ─ id, audit, meters ─ framing, origin ─ token ─ limit? ─ time ─ role ─ route
//! ```
//!
//! # Lost answers
//!
//! A caller without an answer may repeat the request: a job with an id is the same job, and a repeated cancel or retry
//! reports that it is already done. A submission without an id that got no answer may have been accepted: use an id.

#![forbid(unsafe_code)]

pub mod access;
mod alerts;
mod audit_file;
mod audit_log;
mod builder;
#[cfg(test)]
mod error_classes;
mod exposure;
mod extract;
#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub mod fuzz;
mod kind_statistics;
mod layers;
mod limits;
pub mod metrics;
mod metrics_server;
mod open_jobs;
mod problem;
pub mod rates;
mod reload;
mod remote;
mod routes;
mod samples;
mod server;
mod state;
pub mod tls;

pub use audit_file::AuditFile;
pub use builder::Auditing;
pub use builder::{DEFAULT_ADDRESS, GatewayBuilder, GatewayError};
pub use exposure::Protection;
pub use limits::{Limits, LimitsError};
pub use metrics_server::MetricsServer;
pub use routes::openapi;
pub use server::Gateway;
