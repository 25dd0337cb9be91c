//! What runs a job, with its types erased: bytes in, bytes out.
//!
//! The typed face that users see is the root package's `Handlers`; it wraps typed functions into these.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bellwether_core::budget::MAX_KINDS;
use bellwether_core::job::Payload;
use bellwether_core::name::{JobId, Kind, NameError, WorkerId};
use bellwether_zk::Trust;
use futures::future::BoxFuture;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// What a handler is told about the attempt that it runs.
#[derive(Debug, Clone)]
pub struct JobContext {
    pub(super) job: JobId,
    pub(super) kind: Kind,
    pub(super) generation: u32,
    pub(super) attempt: u32,
    pub(super) payload: Payload,
    pub(super) worker: WorkerId,
    pub(super) fencing_token: i32,
    pub(super) cancelled: CancellationToken,
    pub(super) trust: Trust,
}

/// How long a context without a worker says that it may be trusted.
const DETACHED_TRUST: Duration = Duration::from_secs(60);

impl JobContext {
    /// A first attempt of no worker, to try a handler by itself.
    #[must_use]
    pub fn detached(job: JobId, kind: Kind, payload: Payload) -> Self {
        Self {
            job,
            kind,
            generation: 1,
            attempt: 1,
            payload,
            worker: WorkerId::new(Uuid::nil()),
            fencing_token: 0,
            cancelled: CancellationToken::new(),
            trust: Trust::unanswered(DETACHED_TRUST),
        }
    }

    /// The same job's attempt of this number.
    #[must_use]
    pub fn with_attempt(self, attempt: u32) -> Self {
        Self { attempt, ..self }
    }

    /// The job's id: the same for every attempt, so it makes an idempotency key.
    #[must_use]
    pub fn job(&self) -> &JobId {
        &self.job
    }

    /// The job's kind.
    #[must_use]
    pub fn kind(&self) -> &Kind {
        &self.kind
    }

    /// 1, and one more for each operator's retry of the job after its end.
    #[must_use]
    pub fn generation(&self) -> u32 {
        self.generation
    }

    /// 1 for the first attempt of this generation.
    #[must_use]
    pub fn attempt(&self) -> u32 {
        self.attempt
    }

    /// What was submitted, byte for byte.
    #[must_use]
    pub fn payload(&self) -> &Payload {
        &self.payload
    }

    /// The worker incarnation that runs it.
    #[must_use]
    pub fn worker(&self) -> WorkerId {
        self.worker
    }

    /// Grows from each attempt of this job to the next. A store that remembers the highest it has seen for the
    /// job, and refuses writes with a lower one, is safe from attempts that were given up.
    #[must_use]
    pub fn fencing_token(&self) -> i32 {
        self.fencing_token
    }

    /// Until when no other worker can be given this job, as far as is known now: it moves on while ZooKeeper
    /// answers. A side effect that must not happen twice should not begin later. The run of a job with a lane is
    /// dropped then, as the next job of the lane may begin.
    #[must_use]
    pub fn trusted_until(&self) -> Instant {
        self.trust.until()
    }

    /// Whether the attempt should stop: cancelled, out of time, handed back, or not ours any more.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.cancelled.is_cancelled()
    }

    /// Waits until the attempt should stop. An async handler that does not heed it is dropped at its next
    /// await a moment later; a blocking one keeps its slot until it returns.
    pub async fn cancelled(&self) {
        self.cancelled.cancelled().await;
    }

    /// The sign to stop, to be handed on. It also fires when the attempt is over.
    #[must_use]
    pub fn cancellation(&self) -> CancellationToken {
        self.cancelled.clone()
    }
}

/// Why an attempt failed: a text for people, kept with the job.
///
/// Any error turns into one with `?`, with the chain of its sources.
#[derive(Clone, PartialEq, Eq)]
pub struct HandlerError(String);

impl HandlerError {
    /// Fails with a text of your own.
    pub fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }

    /// The text.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.0
    }
}

impl<E: Error> From<E> for HandlerError {
    fn from(error: E) -> Self {
        let mut message = error.to_string();
        let mut source = error.source();
        while let Some(cause) = source {
            message.push_str(": ");
            message.push_str(&cause.to_string());
            source = cause.source();
        }
        Self(message)
    }
}

// Not an `Error` itself, so that every error converts into it.
impl fmt::Display for HandlerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for HandlerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

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

/// The handlers of a worker, one per kind. Cheap to clone once complete.
#[derive(Debug, Clone, Default)]
pub struct Registry(Arc<BTreeMap<Kind, Handler>>);

/// A registry that cannot be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RegistryError {
    /// Two handlers for one kind.
    #[error("kind {0} has a handler already")]
    Twice(Kind),
    /// A kind that is not a name.
    #[error(transparent)]
    Name(#[from] NameError),
    /// More kinds than a worker may serve.
    #[error("a worker serves at most {MAX_KINDS} kinds")]
    TooMany,
}

impl Registry {
    /// Takes one handler per kind.
    ///
    /// # Errors
    /// A kind that comes twice, or too many kinds.
    pub fn new(handlers: impl IntoIterator<Item = (Kind, Handler)>) -> Result<Self, RegistryError> {
        let mut registry = BTreeMap::new();
        for (kind, handler) in handlers {
            match registry.entry(kind) {
                Entry::Vacant(free) => free.insert(handler),
                Entry::Occupied(taken) => return Err(RegistryError::Twice(taken.key().clone())),
            };
        }
        if registry.len() > MAX_KINDS {
            return Err(RegistryError::TooMany);
        }
        Ok(Self(Arc::new(registry)))
    }

    /// The kinds, sorted.
    pub fn kinds(&self) -> impl Iterator<Item = &Kind> {
        self.0.keys()
    }

    /// The handler of a kind.
    #[must_use]
    pub fn get(&self, kind: &Kind) -> Option<&Handler> {
        self.0.get(kind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn handler() -> Handler {
        Handler::Blocking(Arc::new(|context| Ok(context.payload().clone())))
    }

    #[test]
    fn a_kind_has_one_handler() {
        let (a, b) = (Kind::new("a").unwrap(), Kind::new("b").unwrap());
        let twice = [(a.clone(), handler()), (b, handler()), (a.clone(), handler())];
        assert_eq!(Registry::new(twice).unwrap_err(), RegistryError::Twice(a));
    }

    #[test]
    fn an_error_keeps_the_chain_of_its_sources() {
        #[derive(Debug, thiserror::Error)]
        #[error("outer")]
        struct Outer(#[source] std::num::ParseIntError);
        let error = HandlerError::from(Outer("x".parse::<i32>().unwrap_err()));
        assert_eq!(error.message(), "outer: invalid digit found in string");
    }
}
