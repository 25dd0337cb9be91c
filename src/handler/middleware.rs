//! Middleware: code around handlers.
//!
//! ```
//! use std::time::Instant;
//!
//! use bellwether::Handlers;
//! use bellwether::handler::middleware::from_fn;
//!
//! let handlers = Handlers::new()
//!     .job("echo", |_, text: String| async move { Ok(text) })
//!     .layer(from_fn(|context, next| async move {
//!         let (job, begun) = (context.job().clone(), Instant::now());
//!         let result = next.run(context).await;
//!         println!("job {job} took {:?}, succeeded: {}", begun.elapsed(), result.is_ok());
//!         result
//!     }));
//! # assert!(handlers.check().is_ok());
//! ```
//!
//! A middleware sees payload and result as bytes. It can act before and after the handler, replace the result or the
//! error, and refuse to run the handler. It runs on the async runtime, even around a blocking handler.
//!
//! **Built in.** A built-in middleware, outside of all others, runs the handler in the span of its attempt and measures
//! its run time. Inside of it, the [codec](crate::codec) of the node decodes the payload and encodes the result, so other
//! middleware sees plain bytes. The outcome of an attempt is not visible from a middleware; the worker records it.
//!
//! **Order.** The first one added is the outermost. The middleware of a set ([`Handlers::layer`]) is outside of the
//! middleware of a handler ([`KindHandler::layer`]).
//!
//! **Panics** of the handler unwind through the middleware. The attempt fails, as for a panic of the middleware itself.
//!
//! **The end of the attempt.** A timeout, a cancel, an expired lease and the loss of a lane's session drop the whole
//! stack at its next await, so code after [`Next::run`] does not always run. Use a value with `Drop` for what must
//! happen. The function for invalid jobs ([`KindHandler::on_invalid`]) is outside of the middleware.
//!
//! [`Handlers::layer`]: super::Handlers::layer
//! [`KindHandler::layer`]: super::KindHandler::layer
//! [`KindHandler::on_invalid`]: super::KindHandler::on_invalid

use std::fmt;
use std::future::Future;
use std::sync::Arc;

use bellwether_host::worker;
use futures::FutureExt;
use futures::future::BoxFuture;

use super::{HandlerResult, JobContext};

/// Code around handlers. See the [module](self).
pub trait Middleware: Send + Sync + 'static {
    /// Handles one attempt. Call [`Next::run`] to run the handler.
    ///
    /// # Errors
    /// The reason why the attempt has no result, see [`HandlerError`](super::HandlerError).
    ///
    /// # Cancellation
    /// When the attempt should stop, [`JobContext::cancelled`] resolves. Shortly after, the future is dropped at its
    /// next await.
    fn handle(&self, context: JobContext, next: Next) -> impl Future<Output = HandlerResult> + Send;
}

/// An async function that is a middleware. All async functions and closures with these arguments and this result
/// implement it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an async function that is a middleware",
    note = "it takes a `JobContext` and a `Next`, and returns a `HandlerResult`"
)]
pub trait MiddlewareFn:
    AsyncFn(JobContext, Next) -> HandlerResult + Fn(JobContext, Next) -> Self::Run + Send + Sync + 'static
{
    /// The run of one attempt.
    type Run: Future<Output = HandlerResult> + Send + 'static;
}

impl<F, Fut> MiddlewareFn for F
where
    F: AsyncFn(JobContext, Next) -> HandlerResult + Fn(JobContext, Next) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = HandlerResult> + Send + 'static,
{
    type Run = Fut;
}

/// Returns a middleware that calls an async function.
pub fn from_fn<F: MiddlewareFn>(handle: F) -> FromFn<F> {
    FromFn(handle)
}

/// The middleware of [`from_fn`].
#[derive(Debug, Clone, Copy)]
pub struct FromFn<F>(F);

impl<F: MiddlewareFn> Middleware for FromFn<F> {
    fn handle(&self, context: JobContext, next: Next) -> impl Future<Output = HandlerResult> + Send {
        (self.0)(context, next)
    }
}

/// A middleware of any type.
#[derive(Clone)]
pub(super) struct Layer(Arc<dyn Fn(JobContext, Next) -> BoxFuture<'static, HandlerResult> + Send + Sync>);

impl Layer {
    pub(super) fn new(middleware: impl Middleware) -> Self {
        let middleware = Arc::new(middleware);
        Self(Arc::new(move |context, next| {
            let middleware = Arc::clone(&middleware);
            async move { middleware.handle(context, next).await }.boxed()
        }))
    }
}

impl fmt::Debug for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Layer")
    }
}

/// The middleware that is further inside, and the handler.
pub struct Next {
    /// From the outermost to the innermost.
    layers: Arc<[Layer]>,
    /// How many of them have begun.
    begun: usize,
    handler: worker::Handler<JobContext>,
}

impl Next {
    /// Runs the rest of the stack.
    ///
    /// # Errors
    /// The errors of the handler, or of the middleware that is further inside.
    ///
    /// # Cancellation
    /// The handler is dropped at its next await. A blocking handler keeps running.
    pub async fn run(mut self, context: JobContext) -> HandlerResult {
        match self.layers.get(self.begun).cloned() {
            Some(Layer(handle)) => {
                self.begun += 1;
                handle(context, self).await
            }
            None => (self.handler)(context).await,
        }
    }
}

impl fmt::Debug for Next {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Next").field("left", &(self.layers.len() - self.begun)).finish_non_exhaustive()
    }
}

/// Puts middleware around a handler. The first layer is the outermost.
pub(super) fn stack(layers: Vec<Layer>, handler: worker::Handler<JobContext>) -> worker::Handler<JobContext> {
    let layers: Arc<[Layer]> = layers.into();
    Arc::new(move |context| {
        let next = Next { layers: Arc::clone(&layers), begun: 0, handler: Arc::clone(&handler) };
        next.run(context).boxed()
    })
}
