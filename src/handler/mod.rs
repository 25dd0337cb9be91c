//! Handlers: your code that runs jobs, one per kind.
//!
//! ```
//! use bellwether::{HandlerError, Handlers};
//! use serde::{Deserialize, Serialize};
//!
//! #[derive(Deserialize)]
//! struct Order {
//!     items: Vec<String>,
//! }
//!
//! #[derive(Serialize)]
//! struct Priced {
//!     cents: u64,
//! }
//!
//! let handlers = Handlers::new()
//!     // On the async runtime. Any error becomes the attempt's failure with `?`.
//!     .job("price", |context, order: Order| async move {
//!         if order.items.is_empty() {
//!             return Err(HandlerError::new(format!("order {} is empty", context.job())));
//!         }
//!         let cents = order.items.iter().map(|item| item.parse::<u64>()).sum::<Result<u64, _>>()?;
//!         Ok(Priced { cents })
//!     })
//!     // On a dedicated thread, for code that blocks or computes.
//!     .blocking_job("factorial", |_, n: u32| {
//!         (1..=u64::from(n)).try_fold(1_u64, u64::checked_mul).ok_or(HandlerError::new("too large"))
//!     });
//! assert!(handlers.build().is_ok());
//! ```
//!
//! An attempt fails when its handler returns an error, panics or times out; the job's policy decides what happens
//! next. A handler may also report that the job can never succeed ([`HandlerError::invalid`]), which is automatic for
//! a payload that does not decode, or ask for a later attempt ([`HandlerError::retry_later`]).
//!
//! An attempt may run more than once: a worker may die after the side effect and before it reports the result. Make
//! handlers idempotent, with [`JobContext::job`] as the key or [`JobContext::fencing_token`] as the fence.

mod context;
mod node_client;
mod sub_jobs;

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use bellwether_core::job::Payload;
use bellwether_core::name::{GroupId, JobId, Kind};
use bellwether_host::worker;
use futures::FutureExt;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

pub use bellwether_host::worker::{HandlerError, HandlerResult, RegistryError};

use crate::client::{Client, GroupView, JobKind, JobView, Members};

pub use context::JobContext;
pub(crate) use node_client::NodeClient;
pub use sub_jobs::{SubJobs, SubJobsError};

/// Runs jobs of one kind. Payload and result are bytes.
pub type Handler = worker::Handler<JobContext>;

/// The handler of a kind, with the default settings of its jobs.
pub type Registered = worker::Registered<JobContext>;

/// The validated handlers of a node, one per kind.
pub type Registry = worker::Registry<JobContext>;

/// Runs before an invalid job is closed: see [`Handlers::on_invalid`].
pub type OnInvalid = worker::OnInvalid<JobContext>;

/// The handlers of a node, one per kind.
///
/// A kind that is malformed or has two handlers is reported by [`Handlers::build`], which a node calls when it
/// starts.
#[derive(Debug, Clone, Default)]
pub struct Handlers {
    handlers: Vec<(Kind, Registered)>,
    problem: Option<RegistryError>,
}

impl Handlers {
    /// Returns an empty set of handlers.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Runs jobs of `kind` on the async runtime. Payload and result are JSON.
    ///
    /// # Cancellation
    /// When the attempt should stop, [`JobContext::cancelled`] resolves. Shortly after, the future is dropped at its
    /// next await.
    #[must_use]
    pub fn job<P, R, Fut>(
        self,
        kind: &str,
        handle: impl Fn(JobContext, P) -> Fut + Send + Sync + 'static,
    ) -> Self
    where
        P: DeserializeOwned,
        R: Serialize,
        Fut: Future<Output = Result<R, HandlerError>> + Send + 'static,
    {
        let run = move |context: JobContext| match decode(&context) {
            Ok(payload) => {
                let handled = handle(context, payload);
                async move { encode(&handled.await?) }.boxed()
            }
            Err(error) => std::future::ready(Err(error)).boxed(),
        };
        self.raw(kind, Handler::Async(Arc::new(run)))
    }

    /// Runs jobs of `kind` on dedicated threads. Payload and result are JSON.
    ///
    /// # Cancellation
    /// A thread cannot be stopped: the handler must check [`JobContext::is_cancelled`]. It occupies its slot until it
    /// returns, even if its attempt was closed long before.
    #[must_use]
    pub fn blocking_job<P, R>(
        self,
        kind: &str,
        handle: impl Fn(JobContext, P) -> Result<R, HandlerError> + Send + Sync + 'static,
    ) -> Self
    where
        P: DeserializeOwned,
        R: Serialize,
    {
        let run = move |context: JobContext| {
            let payload = decode(&context)?;
            encode(&handle(context, payload)?)
        };
        self.raw(kind, Handler::Blocking(Arc::new(run)))
    }

    /// Like [`Handlers::job`], with the name and types of a [`JobKind`].
    #[must_use]
    pub fn kind<K, Fut>(self, handle: impl Fn(JobContext, K::Payload) -> Fut + Send + Sync + 'static) -> Self
    where
        K: JobKind,
        Fut: Future<Output = Result<K::Result, HandlerError>> + Send + 'static,
    {
        self.job(K::NAME, handle)
    }

    /// Like [`Handlers::blocking_job`], with the name and types of a [`JobKind`].
    #[must_use]
    pub fn blocking_kind<K: JobKind>(
        self,
        handle: impl Fn(JobContext, K::Payload) -> Result<K::Result, HandlerError> + Send + Sync + 'static,
    ) -> Self {
        self.blocking_job(K::NAME, handle)
    }

    /// Runs the joins of groups of `kind`: once for each group, when all of its members have ended or it was stopped.
    ///
    /// Members are read a page at a time, as the handler asks for them. The join is a job of kind `KIND.join` with
    /// the default policy, so it may be retried like any other job.
    #[must_use]
    pub fn join<R, Fut>(
        self,
        kind: &str,
        handle: impl Fn(JobContext, Members) -> Fut + Send + Sync + 'static,
    ) -> Self
    where
        R: Serialize,
        Fut: Future<Output = Result<R, HandlerError>> + Send + 'static,
    {
        self.given(&format!("{kind}.join"), members, handle)
    }

    /// Runs after a job of `kind` with sub-jobs, its sub-jobs and their join have all ended. It is a job of kind
    /// `KIND.finished`. The parent's own group counts the parent's end only after it.
    #[must_use]
    pub fn finished<R, Fut>(
        self,
        kind: &str,
        handle: impl Fn(JobContext, Finished) -> Fut + Send + Sync + 'static,
    ) -> Self
    where
        R: Serialize,
        Fut: Future<Output = Result<R, HandlerError>> + Send + 'static,
    {
        self.given(&format!("{kind}.finished"), finished, handle)
    }

    /// Runs jobs of `kind` with a value that is read from the namespace for each job.
    fn given<T, R, Read, Fut>(
        self,
        kind: &str,
        read: impl Fn(JobContext) -> Read + Send + Sync + 'static,
        handle: impl Fn(JobContext, T) -> Fut + Send + Sync + 'static,
    ) -> Self
    where
        R: Serialize,
        Read: Future<Output = Result<T, HandlerError>> + Send + 'static,
        Fut: Future<Output = Result<R, HandlerError>> + Send + 'static,
    {
        let handle = Arc::new(handle);
        let run = move |context: JobContext| {
            let (given, handle) = (read(context.clone()), Arc::clone(&handle));
            async move {
                let given = given.await?;
                encode(&handle(context, given).await?)
            }
            .boxed()
        };
        self.raw(kind, Handler::Async(Arc::new(run)))
    }

    /// Runs jobs of `kind`. Payload and result are bytes of any content type.
    #[must_use]
    pub fn raw(mut self, kind: &str, handler: Handler) -> Self {
        match Kind::new(kind) {
            Ok(kind) => self.handlers.push((kind, handler.into())),
            Err(error) => self.problem = self.problem.or(Some(error.into())),
        }
        self
    }

    /// Sets the default lease of the kind that was added last: 1 s to a week, by default 5 min. A job may have its
    /// own lease.
    ///
    /// An attempt that does not renew its lease in time ([`JobContext::renew_lease`]) is cancelled and closed, and
    /// the job goes to another worker.
    #[must_use]
    pub fn lease(self, lease: Duration) -> Self {
        self.option("a lease", |registered| registered.lease = Some(lease))
    }

    /// Renews the lease of jobs of the kind that was added last for as long as their handlers run, unless a job says
    /// otherwise. A handler that hangs then keeps its job; a process that hangs as a whole does not.
    #[must_use]
    pub fn renew_automatically(self) -> Self {
        self.option("automatic renewal", |registered| registered.auto_renew = true)
    }

    /// Sets a function that runs before a job of the kind that was added last is closed as dead because its handler
    /// reported that it can never succeed ([`HandlerError::invalid`]). It receives the reason. Without it the job is
    /// only logged.
    ///
    /// It runs in the remaining time of the attempt, and may run again if the worker is lost while it runs.
    #[must_use]
    pub fn on_invalid<Fut>(self, run: impl Fn(JobContext, String) -> Fut + Send + Sync + 'static) -> Self
    where
        Fut: Future<Output = ()> + Send + 'static,
    {
        let run = Arc::new(move |context: JobContext, why: String| run(context, why).boxed());
        self.option("a handler of invalid jobs", |registered| registered.on_invalid = Some(run))
    }

    fn option(mut self, what: &'static str, set: impl FnOnce(&mut Registered)) -> Self {
        match self.handlers.last_mut() {
            Some((_, registered)) => set(registered),
            // A malformed kind was not added; its own error is reported.
            None => self.problem = self.problem.or(Some(RegistryError::NoKind(what))),
        }
        self
    }

    /// Adds all handlers of `others`.
    #[must_use]
    pub fn and(mut self, others: Self) -> Self {
        self.handlers.extend(others.handlers);
        self.problem = self.problem.or(others.problem);
        self
    }

    /// Checks that every kind is well-formed and has one handler.
    ///
    /// # Errors
    /// The first kind that is malformed or has a second handler.
    pub fn build(self) -> Result<Registry, RegistryError> {
        match self.problem {
            Some(problem) => Err(problem),
            None => Registry::new(self.handlers),
        }
    }
}

/// The argument of a finished handler: see [`Handlers::finished`].
#[derive(Debug)]
#[non_exhaustive]
pub struct Finished {
    /// The job whose sub-jobs have ended.
    pub parent: JobView,
    /// The group of its sub-jobs, with its counts.
    pub group: GroupView,
    /// Their join, if they have one.
    pub join: Option<JobView>,
    /// The sub-jobs.
    pub members: Members,
}

/// The payload of a join or finished job, written by the leader.
#[derive(Deserialize)]
struct Ended {
    group: GroupId,
    parent: Option<JobId>,
}

/// Returns the client of the handler's node.
async fn client(context: &JobContext) -> Result<&Client, HandlerError> {
    let node = context
        .node()
        .ok_or_else(|| HandlerError::new("this context has no node and therefore no namespace"))?;
    Ok(node.get().await?)
}

async fn members(context: JobContext) -> Result<Members, HandlerError> {
    let Ended { group, .. } = decode(&context)?;
    Ok(client(&context).await?.group_members(&group))
}

async fn finished(context: JobContext) -> Result<Finished, HandlerError> {
    let Ended { group, parent } = decode(&context)?;
    let parent = parent.ok_or_else(|| HandlerError::new("the group has no parent"))?;
    let client = client(&context).await?;
    client.caught_up().await?;
    let gone = |what: &dyn fmt::Display| HandlerError::new(format!("{what} no longer exists"));
    let members = client.group_members(&group);
    let view = client.get_group(&group).await?.ok_or_else(|| gone(&group))?;
    let join = match &view.join {
        Some(join) => client.get(join).await?,
        None => None,
    };
    let parent = client.get(&parent).await?.ok_or_else(|| gone(&parent))?;
    Ok(Finished { parent, group: view, join, members })
}

fn decode<P: DeserializeOwned>(context: &JobContext) -> Result<P, HandlerError> {
    let (kind, payload) = (context.kind(), context.payload());
    let media = payload.content_type().as_str();
    let essence = media.split(';').next().unwrap_or(media).trim();
    if essence != "application/json" && !essence.ends_with("+json") {
        return Err(HandlerError::invalid(format!("kind {kind} takes JSON, and the payload is {media}")));
    }
    serde_json::from_slice(payload.bytes())
        .map_err(|error| HandlerError::invalid(format!("the payload does not fit kind {kind}: {error}")))
}

fn encode<R: Serialize>(result: &R) -> HandlerResult {
    let json = serde_json::to_vec(result)
        .map_err(|error| HandlerError::new(format!("the result is not JSON: {error}")))?;
    Payload::json(json).map_err(|error| HandlerError::new(format!("the result has {error}")))
}

#[cfg(test)]
mod tests {
    use bellwether_core::job::ContentType;

    use super::*;

    fn context(kind: &str, payload: Payload) -> JobContext {
        JobContext::detached(JobId::new("a").unwrap(), Kind::new(kind).unwrap(), payload)
    }

    async fn run(handlers: Handlers, kind: &str, payload: Payload) -> Result<String, String> {
        let registry = handlers.build().unwrap();
        let handled = registry.get(&Kind::new(kind).unwrap()).unwrap().call(context(kind, payload)).await;
        let text = |result: Payload| String::from_utf8(result.bytes().to_vec()).unwrap();
        handled.map(text).map_err(|error| error.message().to_owned())
    }

    fn json(text: &str) -> Payload {
        Payload::json(text.as_bytes()).unwrap()
    }

    struct Double;

    impl JobKind for Double {
        const NAME: &'static str = "double";
        type Payload = i64;
        type Result = i64;
    }

    fn double() -> Handlers {
        Handlers::new().kind::<Double, _>(|_, n| async move { Ok(2 * n) })
    }

    #[tokio::test]
    async fn a_typed_handler_receives_its_payload_and_returns_its_result() {
        assert_eq!(run(double(), "double", json("21")).await, Ok("42".into()));
        let blocking = Handlers::new().blocking_kind::<Double>(|_, n| Ok(2 * n));
        assert_eq!(run(blocking, "double", json("21")).await, Ok("42".into()));
    }

    #[tokio::test]
    async fn a_payload_of_another_type_fails_with_the_reason() {
        let refused = run(double(), "double", json("\"x\"")).await.unwrap_err();
        assert_eq!(
            refused,
            "the payload does not fit kind double: invalid type: string \"x\", expected i64 at line 1 column 3"
        );
        let text = Payload::new(ContentType::new("text/plain").unwrap(), *b"21").unwrap();
        let refused = run(double(), "double", text).await.unwrap_err();
        assert_eq!(refused, "kind double takes JSON, and the payload is text/plain");
        let media = ContentType::new("application/cloudevents+json; charset=utf-8").unwrap();
        assert!(run(double(), "double", Payload::new(media, *b"21").unwrap()).await.is_ok());
    }

    #[tokio::test]
    async fn a_result_over_the_size_limit_fails() {
        let large = Handlers::new().job("large", |_, n: usize| async move { Ok("x".repeat(n)) });
        let refused = run(large, "large", json("65536")).await.unwrap_err();
        assert!(refused.starts_with("the result has 65538 bytes: at most 65536"), "{refused}");
    }

    #[test]
    fn a_malformed_or_repeated_kind_is_an_error_of_build() {
        let twice = double().and(double()).build().unwrap_err();
        assert_eq!(twice.to_string(), "kind double has a handler already");
        let bad = Handlers::new().job("a/b", |_, (): ()| async { Ok(()) }).build().unwrap_err();
        assert_eq!(bad.to_string(), "kind has '/' at byte 1: only [A-Za-z0-9._-] are allowed");
    }
}
