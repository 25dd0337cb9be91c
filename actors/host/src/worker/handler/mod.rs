//! Type-erased handlers: bytes in, bytes out.
//!
//! Users work with the root package's `Handlers`, which converts typed functions into these handlers. The typed
//! handlers take a `JobContext` and are adapted to the worker's context ([`Registry::adapt`]) when their node starts.

mod blocking;
mod context;
mod error;
mod registry;

use std::sync::Arc;

use bellwether_core::job::Payload;
use futures::future::BoxFuture;

pub(super) use blocking::Slot;
pub use context::RunContext;
pub use error::HandlerError;
pub use registry::{OnInvalid, Registered, Registry, RegistryError};

/// The bytes of a result, or the reason why there is no result.
pub type HandlerResult = Result<Payload, HandlerError>;

/// Runs jobs of one kind, on the runtime. The context `C` describes the attempt. If the attempt ends first, the future
/// is dropped at its next await point. Code that blocks runs in [`RunContext::blocking`].
pub type Handler<C = RunContext> = Arc<dyn Fn(C) -> BoxFuture<'static, HandlerResult> + Send + Sync>;
