//! Bellwether is a distributed job scheduler on Apache ZooKeeper. It never loses an acknowledged job.
//!
//! ```no_run
//! use std::time::Duration;
//! use bellwether::{Client, Job};
//!
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! let client = Client::connect("zk1:2181,zk2:2181/bellwether/prod").await?;
//! let job = client.submit(Job::new("sum", &[1, 2, 3]).id("sum-1").max_attempts(3)).await?;
//! let end = job.wait(Duration::from_secs(30)).await?;
//! println!("{}: {:?}", end.state, end.result);
//! # Ok(()) }
//! ```
//!
//! * [`Client`] submits jobs, waits for their results, and cancels, retries and lists them.
//! * [`Handlers`] are the functions that run jobs; a [`Node`] runs them as a worker and takes part in leader election.
//! * [`Schedule`] submits jobs periodically, and [`Group`] runs a join after many jobs.
//! * [`codec`] encrypts, compresses or stores elsewhere what jobs carry.
//! * [`election`] is leader election alone, for services without jobs.
//!
//! The guarantees are described in
//! [docs/semantics.md](https://github.com/bellwether-scheduler/bellwether/blob/main/docs/semantics.md).
//!
//! # Features
//!
//! None is on by default.
//!
//! * `zookeeper-tls`: TLS to ZooKeeper. Its cryptography is C code, which takes a minute or more to build.
//! * `otel`: the spans of a job's life become part of OpenTelemetry traces.
//! * `describe`: the types of requests, such as [`Job`] and [`client::JobOptions`], are arguments of clap and schemas of utoipa, for a
//!   program that offers them on its own command line or over HTTP.
//! * `testing`: clusters in the process of a test, and faults. For development dependencies only.
#![forbid(unsafe_code)]

pub mod access_lists;
pub mod client;
pub mod codec;
mod connection;
#[cfg(feature = "describe")]
pub mod describe;
pub mod election;
pub mod error;
#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub mod fuzz;
pub mod handler;
pub mod metrics;
pub mod node;
pub mod placement;
pub mod schedule;
#[cfg(feature = "testing")]
pub mod testing;

pub use bellwether_core::backoff::{Backoff, BackoffError};
pub use bellwether_core::duration::{DurationError, DurationText};
pub use bellwether_core::instant::{InstantText, InstantTextError};
pub use bellwether_core::job::{
    ContentType, ContentTypeError, NestingError, Payload, PayloadError, PolicyError, PriorityError, Progress,
    ProgressError,
};
pub use bellwether_core::name::{GroupId, JobId, Kind, Lane, NameError, NodeId, ScheduleId, Tag, WorkerId};
pub use bellwether_core::retention::{Retention, RetentionError};
pub use bellwether_core::trace::{TraceContext, TraceContextError};
/// The `tracing` target of the spans of a job's life, all of level DEBUG: submit, assign, run, report.
pub use bellwether_host::trace::TARGET as SPAN_TARGET;
pub use bellwether_zk::{Access, AccessError, ConnectString, ConnectStringError, Scheme};
#[cfg(feature = "zookeeper-tls")]
pub use bellwether_zk::{Tls, TlsError};
pub use client::{
    Client, Group, Job, JobError, JobHandle, JobKind, JobView, JoinKind, ParentKind, Schedule, State, Untyped,
};
pub use codec::{CodecContext, CodecError, PayloadCodec};
pub use connection::{InvalidConnection, SessionTimeoutError};
pub use error::{ErrorClass, Remedy};
pub use handler::{Handler, HandlerError, Handlers, JobContext, handler};
pub use node::{Node, NodeBuilder};

/// Compiles the program in the README as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
