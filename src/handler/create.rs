//! The functions that create handlers.

use std::future::Future;
use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::dead_letter::{self, DeadLetter};
use super::json::{decode, encode};
use super::{Finished, Handler, HandlerError, HandlerFn, HandlerResult, JobContext, KindHandler, group_end};
use crate::client::{JobKind, JoinKind, Members, ParentKind};

/// Runs the jobs of a [`JobKind`] with an async function of a context and a payload. Payload and result are JSON.
///
/// ```
/// # use bellwether::{Handlers, JobKind, handler};
/// # struct Sum;
/// # impl JobKind for Sum {
/// #     const NAME: &'static str = "sum";
/// #     type Payload = Vec<i64>;
/// #     type Result = i64;
/// # }
/// let sum = handler::<Sum>(|context, numbers| async move {
///     println!("job {}, attempt {}", context.job(), context.attempt());
///     Ok(numbers.iter().sum())
/// });
/// # assert!(Handlers::new().add(sum).check().is_ok());
/// ```
///
/// The compiler checks payload and result:
///
/// ```compile_fail,E0631
/// # use bellwether::{JobKind, handler};
/// # struct Sum;
/// # impl JobKind for Sum {
/// #     const NAME: &'static str = "sum";
/// #     type Payload = Vec<i64>;
/// #     type Result = i64;
/// # }
/// let wrong = handler::<Sum>(|_, text: String| async move { Ok(0) });
/// ```
///
/// ```compile_fail,E0271
/// # use bellwether::{JobKind, handler};
/// # struct Sum;
/// # impl JobKind for Sum {
/// #     const NAME: &'static str = "sum";
/// #     type Payload = Vec<i64>;
/// #     type Result = i64;
/// # }
/// let wrong = handler::<Sum>(|_, numbers| async move { Ok(numbers) });
/// ```
///
/// # Cancellation
/// When the attempt should stop, [`JobContext::cancelled`] resolves. Shortly after, the future is dropped at its next
/// await.
pub fn handler<K: JobKind>(run: impl HandlerFn<K::Payload, K::Result>) -> KindHandler {
    from_impl::<K>(run)
}

/// Runs the jobs of a [`JobKind`] with a type that implements [`Handler`]. Payload and result are JSON.
pub fn from_impl<K: JobKind>(handler: impl Handler<K>) -> KindHandler {
    let handler = Arc::new(handler);
    KindHandler::new(K::NAME, move |context| {
        let handler = Arc::clone(&handler);
        async move {
            let payload = decode(&context)?;
            encode(&handler.run(context, payload).await?)
        }
        .boxed()
    })
}

/// Like [`handler()`], on a dedicated thread, for code that blocks or computes.
///
/// # Cancellation
/// A thread cannot be stopped: the handler must check [`JobContext::is_cancelled`]. It occupies its slot until it
/// returns, even if its attempt was closed long before.
pub fn blocking<K: JobKind>(
    run: impl Fn(JobContext, K::Payload) -> Result<K::Result, HandlerError> + Send + Sync + 'static,
) -> KindHandler {
    blocking_job(K::NAME, run)
}

/// Runs the jobs of a kind that is given by its name. Payload and result are JSON.
///
/// # Cancellation
/// As for [`handler()`].
pub fn job<P, R, Fut>(kind: &str, run: impl Fn(JobContext, P) -> Fut + Send + Sync + 'static) -> KindHandler
where
    P: DeserializeOwned,
    R: Serialize,
    Fut: Future<Output = Result<R, HandlerError>> + Send + 'static,
{
    KindHandler::new(kind, move |context| match decode(&context) {
        Ok(payload) => {
            let handled = run(context, payload);
            async move { encode(&handled.await?) }.boxed()
        }
        Err(error) => std::future::ready(Err(error)).boxed(),
    })
}

/// Like [`job`], on a dedicated thread.
///
/// # Cancellation
/// As for [`blocking`].
pub fn blocking_job<P, R>(
    kind: &str,
    run: impl Fn(JobContext, P) -> Result<R, HandlerError> + Send + Sync + 'static,
) -> KindHandler
where
    P: DeserializeOwned,
    R: Serialize,
{
    blocking_raw(kind, move |context| {
        let payload = decode(&context)?;
        encode(&run(context, payload)?)
    })
}

/// Runs the joins of groups of a [`JoinKind`]: once for each group, when all of its members have ended or it was
/// stopped.
///
/// Members are read a page at a time, as the handler asks for them, and their results are decoded. The join is a job of
/// kind `KIND.join` with the default policy, so it may be retried like any other job.
///
/// A kind without a join has no such handler:
///
/// ```compile_fail,E0277
/// # use bellwether::{JobKind, handler};
/// # struct Sum;
/// # impl JobKind for Sum {
/// #     const NAME: &'static str = "sum";
/// #     type Payload = Vec<i64>;
/// #     type Result = i64;
/// # }
/// let join = handler::join::<Sum>(|_, _| async move { Ok(0) });
/// ```
///
/// # Cancellation
/// As for [`handler()`].
pub fn join<K: JoinKind>(run: impl HandlerFn<Members<K>, K::Joined>) -> KindHandler {
    with_input(K::NAME, "join", |context| group_end::members(context).boxed(), run)
}

/// Runs the joins of groups of a kind that is given by its name: see [`join`]. Results are the stored bytes.
///
/// # Cancellation
/// As for [`handler()`].
pub fn join_job<R, Fut>(
    kind: &str,
    run: impl Fn(JobContext, Members) -> Fut + Send + Sync + 'static,
) -> KindHandler
where
    R: Serialize,
    Fut: Future<Output = Result<R, HandlerError>> + Send + 'static,
{
    with_input(kind, "join", |context| group_end::members(context).boxed(), run)
}

/// Runs after a job of a [`ParentKind`], its sub-jobs and their join have all ended. It is a job of kind
/// `KIND.finished`. The parent's own group counts the parent's end only after it. The parent requests it with
/// [`SubJobs::finished`](super::SubJobs::finished), whichever nodes have the handler.
///
/// # Cancellation
/// As for [`handler()`].
pub fn finished<K: ParentKind>(run: impl HandlerFn<Finished<K, K::SubJob>, K::Finished>) -> KindHandler {
    with_input(K::NAME, "finished", |context| group_end::finished(context).boxed(), run)
}

/// Runs after a job with sub-jobs of a kind that is given by its name: see [`finished`].
///
/// # Cancellation
/// As for [`handler()`].
pub fn finished_job<R, Fut>(
    kind: &str,
    run: impl Fn(JobContext, Finished) -> Fut + Send + Sync + 'static,
) -> KindHandler
where
    R: Serialize,
    Fut: Future<Output = Result<R, HandlerError>> + Send + 'static,
{
    with_input(kind, "finished", |context| group_end::finished(context).boxed(), run)
}

/// Runs after the death of a job that was submitted with the option
/// [`dead_letter`](crate::client::JobOptions::dead_letter()). It is a job of kind `KIND.dead`, created in the transaction
/// that ended the dead job: by its worker, or by the leader after a loss, an expired lease or an expiry. So each death has
/// exactly one dead-letter job, which waits until a worker has a handler for it.
///
/// ```
/// use bellwether::client::JobOptions;
/// use bellwether::{Handlers, JobKind, handler};
///
/// struct Bill;
///
/// impl JobKind for Bill {
///     const NAME: &'static str = "bill";
///     type Payload = u32;
///     type Result = ();
///
///     fn defaults() -> JobOptions {
///         JobOptions::new().dead_letter(true)
///     }
/// }
///
/// let dead = handler::dead_letter::<Bill>(|_, letter| async move {
///     println!("{} is dead: {}", letter.job, letter.error);
///     Ok(())
/// });
/// # assert!(Handlers::new().add(dead).check().is_ok());
/// ```
///
/// # Cancellation
/// As for [`handler()`].
pub fn dead_letter<K: JobKind>(run: impl HandlerFn<DeadLetter<K>, ()>) -> KindHandler {
    with_input(K::NAME, "dead", |context| dead_letter::read(context).boxed(), run)
}

/// Runs after the death of a job of a kind that is given by its name: see [`dead_letter`](dead_letter()).
///
/// # Cancellation
/// As for [`handler()`].
pub fn dead_letter_job<R, Fut>(
    kind: &str,
    run: impl Fn(JobContext, DeadLetter) -> Fut + Send + Sync + 'static,
) -> KindHandler
where
    R: Serialize,
    Fut: Future<Output = Result<R, HandlerError>> + Send + 'static,
{
    with_input(kind, "dead", |context| dead_letter::read(context).boxed(), run)
}

/// Runs the jobs of kind `KIND.SUFFIX` on what `read` reads for them.
fn with_input<P: Send + 'static, R, Fut>(
    kind: &str,
    suffix: &str,
    read: for<'a> fn(&'a JobContext) -> BoxFuture<'a, Result<P, HandlerError>>,
    run: impl Fn(JobContext, P) -> Fut + Send + Sync + 'static,
) -> KindHandler
where
    R: Serialize,
    Fut: Future<Output = Result<R, HandlerError>> + Send + 'static,
{
    let run = Arc::new(run);
    KindHandler::new(&format!("{kind}.{suffix}"), move |context| {
        let run = Arc::clone(&run);
        async move {
            let input = read(&context).await?;
            encode(&run(context, input).await?)
        }
        .boxed()
    })
}

/// Runs the jobs of `kind` on bytes of any content type: [`JobContext::payload`].
///
/// # Cancellation
/// As for [`handler()`].
pub fn raw<Fut>(kind: &str, run: impl Fn(JobContext) -> Fut + Send + Sync + 'static) -> KindHandler
where
    Fut: Future<Output = HandlerResult> + Send + 'static,
{
    KindHandler::new(kind, move |context| run(context).boxed())
}

/// Like [`raw`], on a dedicated thread.
///
/// # Cancellation
/// As for [`blocking`].
pub fn blocking_raw(
    kind: &str,
    run: impl Fn(JobContext) -> HandlerResult + Send + Sync + 'static,
) -> KindHandler {
    let run = Arc::new(run);
    KindHandler::new(kind, move |context| {
        let (run, of) = (Arc::clone(&run), context.clone());
        async move { context.blocking(move || run(of)).await }.boxed()
    })
}
