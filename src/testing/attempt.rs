//! One attempt at a job, without a worker.

use std::marker::PhantomData;

use bellwether_core::job::Payload;
use bellwether_core::name::Kind;
use bellwether_core::time::WallMillis;
use tokio_util::sync::CancellationToken;

use crate::client::{Job, JobError, JobKind, Untyped};
use crate::handler::{HandlerError, Handlers, JobContext, RegistryError};

/// One attempt at a job, to try its handler by itself: no cluster, no namespace, nothing stored.
///
/// The job is checked and serialized as for a submission, so what the handler gets is what a worker would give it. What
/// bounds a run in production does not: no timeout, no grace after a cancel, and a panic is the caller's.
#[derive(Debug, Clone)]
pub struct Attempt<K = Untyped> {
    context: JobContext,
    typed: PhantomData<fn() -> K>,
}

/// Why an attempt has no result.
#[derive(Debug, thiserror::Error)]
pub enum AttemptError {
    /// The handlers are none.
    #[error(transparent)]
    Handlers(#[from] RegistryError),
    /// No handler is for its kind.
    #[error("no handler for kind {0}")]
    NoHandler(Kind),
    /// The handler failed, or did not understand the payload.
    #[error("the attempt failed: {0}")]
    Failed(HandlerError),
    /// The result is of another type.
    #[error("the result is not of the kind's type")]
    Type(#[source] serde_json::Error),
}

impl<K> Attempt<K> {
    /// The first attempt at a job.
    ///
    /// # Errors
    /// What a submission would be refused for.
    pub fn of(job: Job<K>) -> Result<Self, JobError> {
        let (id, record) = job.into_record(WallMillis(0), uuid::Uuid::now_v7)?;
        let context = JobContext::detached(id, record.kind, record.payload);
        Ok(Self { context, typed: PhantomData })
    }

    /// The attempt of this number; 1 is the first.
    #[must_use]
    pub fn number(self, attempt: u32) -> Self {
        Self { context: self.context.with_attempt(attempt), ..self }
    }

    /// What the handler is told.
    #[must_use]
    pub fn context(&self) -> &JobContext {
        &self.context
    }

    /// The sign to stop: cancel it before or while the handler runs.
    #[must_use]
    pub fn cancellation(&self) -> CancellationToken {
        self.context.cancellation()
    }

    /// Runs the handler of the job's kind, a blocking one on this thread.
    ///
    /// # Errors
    /// [`AttemptError`]: what the handler fails with, or that there is none.
    pub async fn perform(&self, handlers: &Handlers) -> Result<Payload, AttemptError> {
        let registry = handlers.clone().build()?;
        let kind = self.context.kind();
        let handler = registry.get(kind).ok_or_else(|| AttemptError::NoHandler(kind.clone()))?;
        handler.call(self.context.clone()).await.map_err(AttemptError::Failed)
    }
}

impl<K: JobKind> Attempt<K> {
    /// As [`Attempt::perform`], and reads the result.
    ///
    /// # Errors
    /// As [`Attempt::perform`], and when the result is of another type.
    pub async fn result(&self, handlers: &Handlers) -> Result<K::Result, AttemptError> {
        let result = self.perform(handlers).await?;
        serde_json::from_slice(result.bytes()).map_err(AttemptError::Type)
    }
}
