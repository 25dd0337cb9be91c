//! The handlers of a node.

use std::future::Future;

use bellwether_core::name::Kind;
use bellwether_host::worker::{Registry, RegistryError};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::middleware::{Layer, Middleware};
use super::{DeadLetter, Finished, HandlerError, HandlerFn, HandlerResult, JobContext, KindHandler, create};
use crate::client::{JobKind, JoinKind, Members, ParentKind};
use crate::codec::Codec;

/// The handlers of a node, one per kind.
///
/// A kind that is malformed or has two handlers, or an option that is out of bounds, is reported by
/// [`Handlers::check`], which a node calls when it starts.
///
/// Options such as [`lease`](KindHandler::lease) belong to a handler, not to the set:
///
/// ```compile_fail,E0599
/// # use std::time::Duration;
/// # use bellwether::Handlers;
/// let handlers = Handlers::new().lease(Duration::from_secs(60));
/// ```
#[derive(Debug, Clone, Default)]
#[must_use = "give it to a node"]
pub struct Handlers {
    handlers: Vec<KindHandler>,
    /// Around all handlers.
    layers: Vec<Layer>,
}

impl Handlers {
    /// Returns an empty set of handlers.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a handler with its options.
    #[allow(
        clippy::should_implement_trait,
        reason = "the sum of handlers and a handler is not an arithmetic one"
    )]
    pub fn add(mut self, handler: KindHandler) -> Self {
        self.handlers.push(handler);
        self
    }

    /// Adds a handler without options: short for `add(handler::<K>(run))`, see [`handler`](fn@super::handler()).
    pub fn kind<K: JobKind>(self, run: impl HandlerFn<K::Payload, K::Result>) -> Self {
        self.add(create::handler::<K>(run))
    }

    /// Adds a handler without options: short for `add(handler::job(kind, run))`, see [`job`](super::job).
    pub fn job<P, R, Fut>(
        self,
        kind: &str,
        run: impl Fn(JobContext, P) -> Fut + Send + Sync + 'static,
    ) -> Self
    where
        P: DeserializeOwned,
        R: Serialize,
        Fut: Future<Output = Result<R, HandlerError>> + Send + 'static,
    {
        self.add(create::job(kind, run))
    }

    /// Adds a handler without options: short for `add(handler::join::<K>(run))`, see [`join`](super::join).
    pub fn join<K: JoinKind>(self, run: impl HandlerFn<Members<K>, K::Joined>) -> Self {
        self.add(create::join::<K>(run))
    }

    /// Adds a handler without options: short for `add(handler::finished::<K>(run))`, see
    /// [`finished`](super::finished).
    pub fn finished<K: ParentKind>(self, run: impl HandlerFn<Finished<K, K::SubJob>, K::Finished>) -> Self {
        self.add(create::finished::<K>(run))
    }

    /// Adds a handler without options: short for `add(handler::join_job(kind, run))`, see
    /// [`join_job`](super::join_job).
    pub fn join_job<R, Fut>(
        self,
        kind: &str,
        run: impl Fn(JobContext, Members) -> Fut + Send + Sync + 'static,
    ) -> Self
    where
        R: Serialize,
        Fut: Future<Output = Result<R, HandlerError>> + Send + 'static,
    {
        self.add(create::join_job(kind, run))
    }

    /// Adds a handler without options: short for `add(handler::finished_job(kind, run))`, see
    /// [`finished_job`](super::finished_job).
    pub fn finished_job<R, Fut>(
        self,
        kind: &str,
        run: impl Fn(JobContext, Finished) -> Fut + Send + Sync + 'static,
    ) -> Self
    where
        R: Serialize,
        Fut: Future<Output = Result<R, HandlerError>> + Send + 'static,
    {
        self.add(create::finished_job(kind, run))
    }

    /// Adds a handler without options: short for `add(handler::dead_letter::<K>(run))`, see
    /// [`dead_letter`](super::dead_letter()).
    pub fn dead_letter<K: JobKind>(self, run: impl HandlerFn<DeadLetter<K>, ()>) -> Self {
        self.add(create::dead_letter::<K>(run))
    }

    /// Puts middleware around all handlers of this set, including those that are added later. The first middleware is
    /// the outermost. See [`middleware`](super::middleware).
    pub fn layer(mut self, middleware: impl Middleware) -> Self {
        self.layers.push(Layer::new(middleware));
        self
    }

    /// Adds all handlers of `others`. Each set keeps its own middleware.
    pub fn and(mut self, others: Self) -> Self {
        for mut handler in others.handlers {
            handler.surround(&others.layers);
            self.handlers.push(handler);
        }
        self
    }

    /// Returns the kinds in the order in which they were added, without those that are malformed.
    pub fn kinds(&self) -> impl Iterator<Item = &Kind> {
        self.handlers.iter().filter_map(KindHandler::kind)
    }

    /// Checks that every kind is well-formed and has one handler, and that the options are within their bounds.
    ///
    /// # Errors
    /// The first violation.
    pub fn check(&self) -> Result<(), RegistryError> {
        self.clone().build(None).map(drop)
    }

    /// Runs the handler of the context's kind without a worker, to test it alone: there is no timeout, a panic reaches
    /// the caller, and a blocking handler runs on this thread. See [`JobContext::detached`].
    ///
    /// # Errors
    /// The errors of the handler; an error if the kind has no handler, or the handlers are invalid.
    pub async fn call(&self, context: JobContext) -> HandlerResult {
        let registry = self.clone().build(None)?;
        let kind = context.kind();
        let handler =
            registry.get(kind).ok_or_else(|| HandlerError::new(format!("no handler for kind {kind}")))?;
        handler(context).await
    }

    /// Returns the handlers inside their middleware, with the codec of a node.
    pub(crate) fn build(self, codec: Option<&Codec>) -> Result<Registry<JobContext>, RegistryError> {
        let mut handlers = Vec::with_capacity(self.handlers.len());
        for mut handler in self.handlers {
            handler.surround(&self.layers);
            handlers.push(handler.finish(codec)?);
        }
        Registry::new(handlers)
    }
}
