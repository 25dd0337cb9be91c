//! What runs a job, with its types erased: bytes in, bytes out.
//!
//! Users see the root package's `Handlers`, which turns typed functions into these. Its handlers take a context of their
//! own, `JobContext`, and are adapted to the worker's ([`Registry::adapt`]) when their node starts.

mod context;
mod error;
mod registry;

use std::fmt;
use std::sync::Arc;

use bellwether_core::job::Payload;
use futures::future::BoxFuture;

pub use context::RunContext;
pub use error::HandlerError;
pub use registry::{OnInvalid, Registered, Registry, RegistryError};

/// A result's bytes, or why there are none.
pub type HandlerResult = Result<Payload, HandlerError>;

/// Runs jobs of one kind. A `C` describes the attempt to it.
pub enum Handler<C = RunContext> {
    /// On the runtime. Dropped at an await when its attempt ends before it does.
    Async(Arc<dyn Fn(C) -> BoxFuture<'static, HandlerResult> + Send + Sync>),
    /// On a thread of its own. Cannot be stopped, only asked to.
    Blocking(Arc<dyn Fn(C) -> HandlerResult + Send + Sync>),
}

impl<C> Clone for Handler<C> {
    fn clone(&self) -> Self {
        match self {
            Self::Async(handle) => Self::Async(Arc::clone(handle)),
            Self::Blocking(handle) => Self::Blocking(Arc::clone(handle)),
        }
    }
}

impl<C: 'static> Handler<C> {
    /// Runs it here, without a worker's wall around it: a panic is the caller's, and nothing bounds its time.
    ///
    /// # Errors
    /// What the handler fails with.
    pub async fn call(&self, context: C) -> HandlerResult {
        match self {
            Self::Async(handle) => handle(context).await,
            Self::Blocking(handle) => handle(context),
        }
    }

    /// The same handler for contexts of type `D`.
    fn adapt<D>(self, convert: impl Fn(D) -> C + Send + Sync + 'static) -> Handler<D> {
        match self {
            Self::Async(handle) => Handler::Async(Arc::new(move |context| handle(convert(context)))),
            Self::Blocking(handle) => Handler::Blocking(Arc::new(move |context| handle(convert(context)))),
        }
    }
}

impl<C> fmt::Debug for Handler<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Async(_) => "Async",
            Self::Blocking(_) => "Blocking",
        })
    }
}
