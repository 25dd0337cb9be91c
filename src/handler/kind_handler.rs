//! The handler of one kind, with its options.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use bellwether_core::name::{Kind, NameError};
use bellwether_host::worker::{self, Registered};
use futures::FutureExt;
use futures::future::BoxFuture;

use super::encoded::{self, Encoded};
use super::middleware::{Layer, Middleware, stack};
use super::observed::Observed;
use super::{HandlerResult, JobContext};
use crate::codec::Codec;

/// The handler of one kind, with its options. [`handler`](fn@crate::handler()) and the functions of
/// [`bellwether::handler`](super) create it, and [`Handlers::add`](super::Handlers::add) adds it to the handlers of a
/// node.
#[derive(Debug, Clone)]
#[must_use = "add it to the handlers of a node"]
pub struct KindHandler {
    kind: Result<Kind, NameError>,
    registered: Registered<JobContext>,
    layers: Vec<Layer>,
}

impl KindHandler {
    pub(super) fn new(
        kind: &str,
        run: impl Fn(JobContext) -> BoxFuture<'static, HandlerResult> + Send + Sync + 'static,
    ) -> Self {
        let handler: worker::Handler<JobContext> = Arc::new(run);
        Self { kind: Kind::new(kind), registered: handler.into(), layers: Vec::new() }
    }

    /// Sets the default lease of the kind's jobs: 1 s to a week, by default 5 min. A job may have its own lease.
    ///
    /// An attempt that does not renew its lease in time ([`JobContext::renew_lease`]) is cancelled and closed, and
    /// the job goes to another worker.
    pub fn lease(mut self, lease: Duration) -> Self {
        self.registered.lease = Some(lease);
        self
    }

    /// Sets whether the leases of the kind's jobs are renewed for as long as their handlers run, unless a job says otherwise.
    /// A handler that hangs then keeps its job; a process that hangs as a whole does not. Default: no.
    pub fn auto_renew(mut self, renew: bool) -> Self {
        self.registered.auto_renew = renew;
        self
    }

    /// Limits how many jobs of the kind run at the same time on this node: at least 1. By default they may use all slots.
    ///
    /// Further jobs of the kind wait on the node, and other kinds are not delayed by them: they start as soon as a slot
    /// is free. The leader does not know the limit, so each waiting job uses one of the slots that the node offers, until
    /// it starts or, after a third of its lease, goes to another node. The limit is not a limit of the cluster.
    ///
    /// A blocking handler that was abandoned (its attempt was cancelled, timed out or lost its lease) counts until it
    /// returns.
    pub fn concurrency(mut self, jobs: u32) -> Self {
        self.registered.concurrency = Some(jobs);
        self
    }

    /// Sets a function that runs before a job of the kind is closed as dead because its handler reported that it can
    /// never succeed ([`HandlerError::invalid`](super::HandlerError::invalid)). It receives the reason. Without it the
    /// job is only logged.
    ///
    /// It runs in the remaining time of the attempt, and may run again if the worker is lost while it runs. If the payload
    /// cannot be decoded by the node's codec, the context has its stored form.
    pub fn on_invalid<Fut>(mut self, run: impl Fn(JobContext, String) -> Fut + Send + Sync + 'static) -> Self
    where
        Fut: Future<Output = ()> + Send + 'static,
    {
        self.registered.on_invalid = Some(Arc::new(move |context, why| run(context, why).boxed()));
        self
    }

    /// Puts middleware around this handler, inside of the middleware that was added before. See
    /// [`middleware`](super::middleware).
    pub fn layer(mut self, middleware: impl Middleware) -> Self {
        self.layers.push(Layer::new(middleware));
        self
    }

    /// The kind, if its name is well-formed.
    pub(super) fn kind(&self) -> Option<&Kind> {
        self.kind.as_ref().ok()
    }

    /// Puts middleware around this handler, outside of all other.
    pub(super) fn surround(&mut self, layers: &[Layer]) {
        self.layers.splice(..0, layers.iter().cloned());
    }

    /// Returns the kind, and the handler inside its middleware. The built-in middleware is the outermost.
    pub(super) fn finish(
        mut self,
        codec: Option<&Codec>,
    ) -> Result<(Kind, Registered<JobContext>), NameError> {
        self.surround(&[Layer::new(Observed::default()), Layer::new(Encoded::new(codec))]);
        let Registered { handler, lease, auto_renew, concurrency, on_invalid } = self.registered;
        let handler = stack(self.layers, handler);
        let on_invalid = on_invalid.map(|run| encoded::on_invalid(codec, run));
        Ok((self.kind?, Registered { handler, lease, auto_renew, concurrency, on_invalid }))
    }
}
