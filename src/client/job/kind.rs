//! Kinds that the compiler knows.

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{Job, JobError};

/// A kind of job with the types of its payload and result, so that the three cannot be mixed up.
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
    /// The kind's name, which its handler is registered under.
    const NAME: &'static str;
    /// What a handler gets.
    type Payload: Serialize + DeserializeOwned;
    /// What a handler returns.
    type Result: Serialize + DeserializeOwned;

    /// A job of this kind.
    ///
    /// # Errors
    /// When the payload does not serialize, is over 64 KiB, or [`JobKind::NAME`] is not a name.
    fn job(payload: &Self::Payload) -> Result<Job<Self>, JobError> {
        Job::build(Self::NAME, payload)
    }
}

/// Marks jobs whose kind is known by name only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Untyped {}
