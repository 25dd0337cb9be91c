//! Type-erased handlers: bytes in, bytes out.
//!
//! Users work with the root package's `Handlers`, which converts typed functions into these handlers. The typed
//! handlers take a `JobContext` and are adapted to the worker's context ([`Registry::adapt`]) when their node starts.

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

/// The bytes of a result, or the reason why there is no result.
pub type HandlerResult = Result<Payload, HandlerError>;

/// Runs jobs of one kind. The context `C` describes the attempt.
pub enum Handler<C = RunContext> {
    /// Runs on the runtime. If the attempt ends first, the future is dropped at its next await point.
    Async(Arc<dyn Fn(C) -> BoxFuture<'static, HandlerResult> + Send + Sync>),
    /// Runs on its own thread. It can be asked to stop, but not aborted.
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
    /// Calls the handler without a worker: a panic propagates to the caller, and there is no timeout.
    ///
    /// # Errors
    /// The error of the handler.
    pub async fn call(&self, context: C) -> HandlerResult {
        match self {
            Self::Async(handle) => handle(context).await,
            Self::Blocking(handle) => handle(context),
        }
    }

    /// Converts the handler to contexts of type `D`.
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
