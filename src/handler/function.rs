//! Handlers as traits: of a type with state, and of functions.
//!
//! The traits of functions name the function's future and have `AsyncFn` as a supertrait. With both, closures need no
//! types for their arguments, futures are checked to be `Send`, and `handler::<K>(f)` has one type parameter.

use std::future::Future;

use super::{HandlerError, JobContext};
use crate::client::JobKind;

/// Runs the jobs of a kind.
///
/// Async functions and closures of a context and a payload implement it. Implement it for a type that owns what its
/// handler needs, and register it with [`handler::from_impl`](super::from_impl):
///
/// ```
/// use bellwether::{Handler, HandlerError, Handlers, JobContext, JobKind, handler};
///
/// struct Price;
///
/// impl JobKind for Price {
///     const NAME: &'static str = "price";
///     type Payload = u64;
///     type Result = u64;
/// }
///
/// struct Shop {
///     cents_each: u64,
/// }
///
/// impl Handler<Price> for Shop {
///     async fn run(&self, _: JobContext, count: u64) -> Result<u64, HandlerError> {
///         count.checked_mul(self.cents_each).ok_or(HandlerError::invalid("too many"))
///     }
/// }
///
/// let handlers = Handlers::new().add(handler::from_impl::<Price>(Shop { cents_each: 250 }));
/// # assert!(handlers.check().is_ok());
/// ```
#[diagnostic::on_unimplemented(message = "`{Self}` does not run jobs of kind `{K}`")]
pub trait Handler<K: JobKind>: Send + Sync + 'static {
    /// Runs one attempt. It may run more than once for a job.
    ///
    /// # Errors
    /// The reason why the attempt has no result, see [`HandlerError`].
    ///
    /// # Cancellation
    /// When the attempt should stop, [`JobContext::cancelled`] resolves. Shortly after, the future is dropped at its
    /// next await.
    fn run(
        &self,
        context: JobContext,
        payload: K::Payload,
    ) -> impl Future<Output = Result<K::Result, HandlerError>> + Send;
}

impl<K, F, Fut> Handler<K> for F
where
    K: JobKind,
    F: Fn(JobContext, K::Payload) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<K::Result, HandlerError>> + Send,
{
    fn run(
        &self,
        context: JobContext,
        payload: K::Payload,
    ) -> impl Future<Output = Result<K::Result, HandlerError>> + Send {
        self(context, payload)
    }
}

/// An async function that runs attempts, from an argument `A` to a result `R`: the payload of a job, the members of a
/// group for its join, or a finished parent. All async functions and closures with these arguments and this result
/// implement it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an async function that runs jobs from `{A}` to `{R}`",
    note = "it takes a `JobContext` and a `{A}`, and returns a `Result<{R}, HandlerError>`",
    note = "for a type that implements `Handler`, use `handler::from_impl`"
)]
pub trait HandlerFn<A, R>:
    AsyncFn(JobContext, A) -> Result<R, HandlerError> + Fn(JobContext, A) -> Self::Run + Send + Sync + 'static
{
    /// The run of one attempt.
    type Run: Future<Output = Result<R, HandlerError>> + Send + 'static;
}

impl<A, R, F, Fut> HandlerFn<A, R> for F
where
    F: AsyncFn(JobContext, A) -> Result<R, HandlerError> + Fn(JobContext, A) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<R, HandlerError>> + Send + 'static,
{
    type Run = Fut;
}

/// A [`HandlerFn`] whose first argument is a shared state.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an async function that runs jobs from `{A}` to `{R}` with a state `{S}`",
    note = "it takes a `{S}`, a `JobContext` and a `{A}`, and returns a `Result<{R}, HandlerError>`"
)]
pub trait StateHandlerFn<S, A, R>:
    AsyncFn(S, JobContext, A) -> Result<R, HandlerError>
    + Fn(S, JobContext, A) -> Self::Run
    + Send
    + Sync
    + 'static
{
    /// The run of one attempt.
    type Run: Future<Output = Result<R, HandlerError>> + Send + 'static;
}

impl<S, A, R, F, Fut> StateHandlerFn<S, A, R> for F
where
    F: AsyncFn(S, JobContext, A) -> Result<R, HandlerError>
        + Fn(S, JobContext, A) -> Fut
        + Send
        + Sync
        + 'static,
    Fut: Future<Output = Result<R, HandlerError>> + Send + 'static,
{
    type Run = Fut;
}
