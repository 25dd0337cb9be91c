//! Sub-jobs: the group that a handler makes.

use bellwether_core::group::{GroupError, finished_kind};

use super::JobContext;
use crate::client::{Attempt, ConnectError, Error, Group, GroupHandle};

/// The group of a running job's sub-jobs, to be made. Its total need not be said: it is what was submitted when the
/// handler has returned.
#[derive(Debug)]
pub struct SubJobs {
    context: JobContext,
    group: Result<Group, GroupError>,
}

/// Why a job cannot have sub-jobs.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SubJobsError {
    /// The handler runs by itself, in a test.
    #[error("this context has no node, so no namespace to submit sub-jobs to")]
    Detached,
    /// The node's client cannot connect.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The group cannot be made; [`GroupError::AttemptOver`] when the attempt was closed meanwhile.
    #[error(transparent)]
    Client(#[from] Error),
}

impl From<GroupError> for SubJobsError {
    fn from(error: GroupError) -> Self {
        Self::Client(error.into())
    }
}

impl JobContext {
    /// The group of this job's sub-jobs, of `kind`: there is one for each job.
    ///
    /// It is done after this job has ended: a handler that waits for it waits for itself.
    #[must_use]
    pub fn sub_jobs(&self, kind: impl AsRef<str>) -> SubJobs {
        // Its id is made of the job's, once that is read.
        SubJobs { context: self.clone(), group: Group::new(kind, "sub-jobs") }
    }
}

impl SubJobs {
    /// As [`Group::total`].
    #[must_use]
    pub fn total(self, total: u32) -> Self {
        Self { group: self.group.map(|group| group.total(total)), ..self }
    }

    /// As [`Group::fail_fast`].
    #[must_use]
    pub fn fail_fast(self) -> Self {
        Self { group: self.group.map(Group::fail_fast), ..self }
    }

    /// As [`Group::without_join`].
    #[must_use]
    pub fn without_join(self) -> Self {
        Self { group: self.group.map(Group::without_join), ..self }
    }

    /// Makes the group, or finds the one that an earlier attempt made. The job's finished handler runs after its join
    /// if this node has one.
    ///
    /// # Errors
    /// [`SubJobsError`].
    ///
    /// # Cancellation
    /// The group may be there; the next attempt finds it.
    ///
    /// # Connection loss
    /// Resolved here, by reading back, for up to a minute.
    pub async fn open(self) -> Result<GroupHandle, SubJobsError> {
        let Self { context, group } = self;
        let Group { id, mut record } = group?;
        let node = context.node().ok_or(SubJobsError::Detached)?;
        let client = node.get().await?;
        let attempt = Attempt {
            job: context.job().clone(),
            kind: context.kind().clone(),
            generation: context.generation(),
            attempt: context.attempt(),
            fencing_token: context.fencing_token(),
            worker: context.worker(),
            finish: finished_kind(context.kind()).is_ok_and(|kind| node.handles(&kind)),
        };
        record.trace = context.trace_context().copied();
        Ok(client.sub_group(&attempt, Group { id, record }).await?)
    }
}
