//! One attempt of a job, without a worker.

use std::marker::PhantomData;

use bellwether_core::job::Payload;
use bellwether_core::name::Kind;
use bellwether_core::remedy::ErrorClass;
use bellwether_core::time::WallMillis;
use tokio_util::sync::CancellationToken;

use crate::client::{AnyKind, Job, JobError, JobKind, Untyped};
use crate::handler::{HandlerError, Handlers, JobContext, RegistryError};

/// One attempt of a job, to test its handler alone: no cluster, no namespace, nothing stored.
///
/// The job is checked and serialized as for a submission, so the handler gets what a worker would pass to it. The
/// limits of production do not apply: there is no timeout and no grace after a cancel, and a panic reaches the
/// caller.
#[derive(Debug, Clone)]
pub struct Attempt<K = Untyped> {
    context: JobContext,
    typed: PhantomData<fn() -> K>,
}

/// An attempt has no result.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AttemptError {
    /// The handlers are invalid.
    #[error(transparent)]
    Handlers(#[from] RegistryError),
    /// The job's kind has no handler.
    #[error("no handler for kind {0}")]
    NoHandler(Kind),
    /// The handler failed, or the payload does not decode.
    #[error("the attempt failed: {0}")]
    Failed(HandlerError),
    /// The result has another type.
    #[error("the result is not of the kind's type")]
    Type(#[source] serde_json::Error),
}

impl AttemptError {
    /// Returns the class of the error.
    #[must_use]
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::Handlers(error) => error.class(),
            Self::NoHandler(_) | Self::Type(_) => ErrorClass::Invalid,
            Self::Failed(_) => ErrorClass::Failed,
        }
    }
}

bellwether_core::impl_remedy!(AttemptError);

impl<K: AnyKind> Attempt<K> {
    /// Returns the first attempt of a job.
    ///
    /// # Errors
    /// The errors of a submission.
    pub fn of(job: Job<K>) -> Result<Self, JobError> {
        let (id, record) = job.into_record(WallMillis(0), uuid::Uuid::now_v7)?;
        let context = JobContext::detached(id, record.kind, record.payload);
        Ok(Self { context, typed: PhantomData })
    }

    /// Sets the number of the attempt; 1 is the first.
    #[must_use]
    pub fn number(self, attempt: u32) -> Self {
        Self { context: self.context.with_attempt(attempt), ..self }
    }

    /// Returns the context that the handler receives.
    #[must_use]
    pub fn context(&self) -> &JobContext {
        &self.context
    }

    /// Returns the cancellation token: cancel it before or while the handler runs.
    #[must_use]
    pub fn cancellation(&self) -> CancellationToken {
        self.context.cancellation()
    }

    /// Runs the handler of the job's kind. A blocking handler runs on this thread.
    ///
    /// # Errors
    /// [`AttemptError`]: the handler failed, or the kind has no handler.
    pub async fn perform(&self, handlers: &Handlers) -> Result<Payload, AttemptError> {
        let registry = handlers.clone().build(None)?;
        let kind = self.context.kind();
        let handler = registry.get(kind).ok_or_else(|| AttemptError::NoHandler(kind.clone()))?;
        handler(self.context.clone()).await.map_err(AttemptError::Failed)
    }
}

impl<K: JobKind> Attempt<K> {
    /// Like [`Attempt::perform`], and decodes the result.
    ///
    /// # Errors
    /// The errors of [`Attempt::perform`], and [`AttemptError::Type`] if the result has another type.
    pub async fn result(&self, handlers: &Handlers) -> Result<K::Result, AttemptError> {
        let result = self.perform(handlers).await?;
        serde_json::from_slice(result.bytes()).map_err(AttemptError::Type)
    }
}
