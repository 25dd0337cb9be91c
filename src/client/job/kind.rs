//! Job kinds as Rust types.

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{Job, JobError, JobOptions};

/// A job kind with the types of its payload and result, checked by the compiler.
///
/// ```
/// use bellwether::JobKind;
///
/// struct Sum;
///
/// impl JobKind for Sum {
///     const NAME: &'static str = "sum";
///     type Payload = Vec<i64>;
///     type Result = i64;
/// }
///
/// # fn main() -> Result<(), bellwether::JobError> {
/// let job = Sum::job(&vec![1, 2, 3])?.id("sum-of-three").max_attempts(2);
/// # job.check() }
/// ```
pub trait JobKind: Sized + 'static {
    /// The name of the kind, under which its handler is registered.
    const NAME: &'static str;
    /// The payload that a handler receives.
    type Payload: Serialize + DeserializeOwned;
    /// The result that a handler returns.
    type Result: Serialize + DeserializeOwned;

    /// Returns the options of all jobs of this kind. A job may override them.
    ///
    /// They apply to the jobs that [`JobKind::job`] creates, not to jobs that are submitted by the name of the kind.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use bellwether::JobKind;
    /// use bellwether::client::JobOptions;
    ///
    /// struct Report;
    ///
    /// impl JobKind for Report {
    ///     const NAME: &'static str = "report";
    ///     type Payload = u32;
    ///     type Result = String;
    ///
    ///     fn defaults() -> JobOptions {
    ///         JobOptions::new().max_attempts(2).timeout(Duration::from_secs(300))
    ///     }
    /// }
    ///
    /// # fn main() -> Result<(), bellwether::JobError> {
    /// let patient = Report::job(&2026)?.timeout(Duration::from_secs(3_600));
    /// # patient.check() }
    /// ```
    fn defaults() -> JobOptions {
        JobOptions::new()
    }

    /// Creates a job of this kind, with the options of the kind.
    ///
    /// # Errors
    /// Fails if the payload does not serialize or is larger than 64 KiB, or [`JobKind::NAME`] is malformed.
    fn job(payload: &Self::Payload) -> Result<Job<Self>, JobError> {
        Ok(Job::build(Self::NAME, payload)?.options(Self::defaults()))
    }
}

/// Marks jobs whose kind is not a Rust type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Untyped {}
