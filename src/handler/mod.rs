//! Handlers: your code that runs jobs, one per kind.
//!
//! # A first handler
//!
//! A [`JobKind`](crate::JobKind) names a kind and the types of its payload and result. [`handler::<K>`](fn@handler())
//! makes a handler for it from an async closure or function; a [`Handlers`] is the set of all handlers of a
//! [`Node`](crate::Node).
//!
//! ```
//! use std::time::Duration;
//!
//! use bellwether::{HandlerError, Handlers, JobKind, handler};
//!
//! struct Price;
//!
//! impl JobKind for Price {
//!     const NAME: &'static str = "price";
//!     type Payload = Vec<String>;
//!     type Result = u64;
//! }
//!
//! let price = handler::<Price>(|context, items| async move {
//!     if items.is_empty() {
//!         return Err(HandlerError::new(format!("order {} is empty", context.job())));
//!     }
//!     // Any error becomes the attempt's failure with `?`.
//!     Ok(items.iter().map(|item| item.parse::<u64>()).sum::<Result<u64, _>>()?)
//! });
//! let handlers = Handlers::new().add(price.lease(Duration::from_secs(60)));
//! assert!(handlers.check().is_ok());
//! ```
//!
//! Options are methods of the handler: [`KindHandler`]. A handler without options has a short form:
//! `Handlers::new().kind::<Price>(|context, items| async move { … })`.
//!
//! # Other handlers
//!
//! | for | use |
//! | --- | --- |
//! | an async closure or function of a [`JobKind`](crate::JobKind) | [`handler::<K>(f)`](fn@handler()) |
//! | code that blocks or computes for long | [`handler::blocking::<K>(f)`](blocking) |
//! | a type that implements [`Handler`] | [`handler::from_impl::<K>(value)`](from_impl) |
//! | a kind that is given by its name | [`handler::job("sum", f)`](job), [`handler::blocking_job`](blocking_job) |
//! | payloads and results that are not JSON | [`handler::raw("sum", f)`](raw), [`handler::blocking_raw`](blocking_raw) |
//! | the join of a group | [`handler::join::<K>(f)`](join), [`handler::join_job("sum", f)`](join_job) |
//! | the end of a job with sub-jobs | [`handler::finished::<K>(f)`](finished), [`handler::finished_job("sum", f)`](finished_job) |
//! | the death of a job | [`handler::dead_letter::<K>(f)`](dead_letter()), [`handler::dead_letter_job("sum", f)`](dead_letter_job) |
//! | any of these with a shared state, such as a connection pool | [`handler::with_state(state)`](with_state) |
//! | code around handlers, for logs, metrics or checks | [`middleware`], [`Handlers::layer`] |
//!
//! # What happens to a job
//!
//! An attempt fails when its handler returns an error, panics or times out; the job's policy decides what happens
//! next. A handler may also report that the job can never succeed ([`HandlerError::invalid`]), which is automatic for
//! a payload that does not decode, or ask for a later attempt ([`HandlerError::retry_later`]).
//!
//! An attempt may run more than once: a worker may die after the side effect and before it reports the result. Make
//! handlers idempotent, with [`JobContext::job`] as the key or [`JobContext::fencing_token`] as the fence.

mod context;
mod create;
mod dead_letter;
mod encoded;
mod function;
mod group_end;
mod handlers;
mod json;
mod kind_handler;
pub mod middleware;
mod node_client;
mod observed;
mod renewal;
mod state;
mod sub_jobs;

pub use bellwether_host::worker::{Closed, HandlerError, HandlerResult, RegistryError, Stop};

pub use context::JobContext;
pub use create::{
    blocking, blocking_job, blocking_raw, dead_letter, dead_letter_job, finished, finished_job, from_impl,
    handler, job, join, join_job, raw,
};
pub use dead_letter::DeadLetter;
pub use function::{Handler, HandlerFn, StateHandlerFn};
pub use group_end::Finished;
pub use handlers::Handlers;
pub use kind_handler::KindHandler;
pub(crate) use node_client::NodeClient;
pub use renewal::RenewalError;
pub use state::{WithState, with_state};
pub use sub_jobs::{SubJobs, SubJobsError};

#[cfg(test)]
mod tests;
