//! The classes of errors, and the remedies for them.
//!
//! Every error of a call has three methods: `class` returns the type of the failure; `remedy` returns the reaction:
//! make the same call again, read the state first, change the input, or give up; `is_retryable` is true for the first of
//! these. The errors of single values, such as [`NameError`](crate::NameError), do not have them: their input must be changed.
//! [`Rejection`] and [`RecordError`] are reasons of other errors, and a [`HandlerError`](crate::HandlerError) is a handler's result:
//! they do not have the methods either.
//!
//! ```no_run
//! use bellwether::client::SubmitError;
//! use bellwether::{Client, Job, Remedy};
//!
//! # async fn run(client: Client) -> Result<(), SubmitError> {
//! let job = Job::new("sum", &[1, 2, 3]).id("sum-1");
//! while let Err(error) = client.submit(job.clone()).await {
//!     match error.remedy() {
//!         // The job has an id, so repeating its submission is safe, even after a lost reply.
//!         Remedy::Retry => tracing::warn!(error = bellwether::error::chain(&error), "the program submits the job again"),
//!         Remedy::ReadBack | Remedy::FixInput | Remedy::GiveUp => return Err(error),
//!     }
//! }
//! # Ok(()) }
//! ```
//!
//! No error prints its source: print the whole chain, for example with [`chain`].

pub use bellwether_core::chain::chain;
pub use bellwether_core::outcome::{Reason, Rejection};
pub use bellwether_core::remedy::{ErrorClass, Remedy};
/// Why a stored record cannot be read.
pub use bellwether_core::wire::WireError as RecordError;
pub use bellwether_zk::NamespaceError;
