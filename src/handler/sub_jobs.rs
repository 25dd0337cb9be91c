//! Sub-jobs: the group that a running job creates.

use bellwether_core::group::GroupError;
use bellwether_core::remedy::ErrorClass;

use super::JobContext;
use crate::client::{AnyKind, Attempt, ConnectError, Error, Group, GroupHandle, JobKind, Untyped};

/// A builder for the group of a running job's sub-jobs. The total is optional: by default it is the number of members
/// that were submitted when the handler returns.
#[derive(Debug)]
pub struct SubJobs<K = Untyped> {
    context: JobContext,
    group: Group<K>,
    finish: bool,
}

/// A job cannot have sub-jobs.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SubJobsError {
    /// The handler runs without a worker, in a test.
    #[error("this context has no node and therefore no namespace to submit sub-jobs to")]
    Detached,
    /// The node's client cannot connect.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The group cannot be created; [`GroupError::AttemptClosed`] if the attempt was closed in the meantime.
    #[error(transparent)]
    Client(#[from] Error),
}

impl SubJobsError {
    /// Returns the class of the error.
    #[must_use]
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::Detached => ErrorClass::Closed,
            Self::Connect(error) => error.class(),
            Self::Client(error) => error.class(),
        }
    }
}

bellwether_core::impl_remedy!(SubJobsError);

impl From<GroupError> for SubJobsError {
    fn from(error: GroupError) -> Self {
        Self::Client(error.into())
    }
}

impl JobContext {
    /// Returns a builder for the group of this job's sub-jobs of kind `K`. A job has one group per kind, and at most 16. Each has
    /// its own options and its own join. The job is in progress until all of them are done.
    ///
    /// The group is done only after this job has ended: a handler that waits for the group waits forever.
    ///
    /// ```
    /// # use bellwether::{HandlerError, JobContext, client::JobKind};
    /// # async fn handler<Scan: JobKind<Payload = u32>, Report: JobKind<Payload = String>>(
    /// #     job: JobContext,
    /// # ) -> Result<(), HandlerError> {
    /// let scans = job.sub_jobs::<Scan>().fail_fast(true).open().await?;
    /// for n in 0..100 {
    ///     scans.submit(n, Scan::job(&(n * 10))).await?;
    /// }
    /// let reports = job.sub_jobs::<Report>().join(false).finished(true).open().await?;
    /// reports.submit(0, Report::job(&"daily".to_owned())).await?;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn sub_jobs<K: JobKind>(&self) -> SubJobs<K> {
        SubJobs { context: self.clone(), group: K::group(PLACEHOLDER_ID), finish: false }
    }

    /// Like [`JobContext::sub_jobs`], of a kind that is given by its name.
    #[must_use]
    pub fn sub_jobs_of(&self, kind: impl AsRef<str>) -> SubJobs {
        SubJobs { context: self.clone(), group: Group::new(kind, PLACEHOLDER_ID), finish: false }
    }
}

/// A placeholder: opening the group replaces it by the id that is derived from the job's record.
const PLACEHOLDER_ID: &str = "sub-jobs";

impl<K: AnyKind> SubJobs<K> {
    /// See [`Group::total`].
    #[must_use]
    pub fn total(self, total: u32) -> Self {
        Self { group: self.group.total(total), ..self }
    }

    /// See [`Group::fail_fast`].
    #[must_use]
    pub fn fail_fast(self, fail_fast: bool) -> Self {
        Self { group: self.group.fail_fast(fail_fast), ..self }
    }

    /// See [`Group::join`].
    #[must_use]
    pub fn join(self, join: bool) -> Self {
        Self { group: self.group.join(join), ..self }
    }

    /// Sets whether the finished handler of this job's kind ([`handler::finished`](super::finished)) runs once this job, the
    /// members of all its groups and their joins have ended. It runs once, even if several groups ask for it, and waits for a
    /// node that has the handler. Default: no.
    #[must_use]
    pub fn finished(self, finished: bool) -> Self {
        Self { finish: finished, ..self }
    }

    /// Creates the group, or finds the one that an earlier call or attempt created with the same options.
    ///
    /// # Errors
    /// [`SubJobsError`].
    ///
    /// # Cancellation
    /// The group may have been created; the next attempt finds it.
    ///
    /// # Connection loss
    /// A lost reply is resolved by reading back, for up to a minute.
    pub async fn open(self) -> Result<GroupHandle<K>, SubJobsError> {
        let Self { context, group, finish } = self;
        let node = context.node().ok_or(SubJobsError::Detached)?;
        let client = node.get().await?;
        let attempt = Attempt {
            job: context.job().clone(),
            kind: context.kind().clone(),
            generation: context.generation(),
            attempt: context.attempt(),
            fencing_token: context.fencing_token(),
            worker: context.worker(),
            finish,
        };
        Ok(client.sub_group(&attempt, group.traceparent(context.traceparent().copied())).await?)
    }
}
