//! What runs a job, with its types erased: bytes in, bytes out.
//!
//! The typed face that users see is the root package's `Handlers`; it wraps typed functions into these.

mod context;
mod error;
mod registry;
mod tools;

use std::fmt;
use std::sync::Arc;

use bellwether_core::job::Payload;
use futures::future::BoxFuture;

pub use context::JobContext;
pub use error::HandlerError;
pub use registry::{OnInvalid, Registered, Registry, RegistryError};
pub use tools::Tools;

/// A result's bytes, or why there are none.
pub type HandlerResult = Result<Payload, HandlerError>;

/// Runs jobs of one kind.
#[derive(Clone)]
pub enum Handler {
    /// On the runtime. Dropped at an await when its attempt ends before it does.
    Async(Arc<dyn Fn(JobContext) -> BoxFuture<'static, HandlerResult> + Send + Sync>),
    /// On a thread of its own. Cannot be stopped, only asked to.
    Blocking(Arc<dyn Fn(JobContext) -> HandlerResult + Send + Sync>),
}

impl Handler {
    /// Runs it here, without a worker's wall around it: a panic is the caller's, and nothing bounds its time.
    ///
    /// # Errors
    /// What the handler fails with.
    pub async fn call(&self, context: JobContext) -> HandlerResult {
        match self {
            Self::Async(handle) => handle(context).await,
            Self::Blocking(handle) => handle(context),
        }
    }
}

impl fmt::Debug for Handler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Async(_) => "Async",
            Self::Blocking(_) => "Blocking",
        })
    }
}
