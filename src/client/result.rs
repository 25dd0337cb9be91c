//! Typed results: of jobs, of the joins of groups, and of finished handlers.
//!
//! The kind states the types, so a caller repeats none of them. A result that is not of the kind's type is an error.

use std::time::Duration;

use bellwether_core::group::GroupError;
use bellwether_core::job::Payload;
use bellwether_core::name::JobId;
use serde::de::DeserializeOwned;

use super::Client;
use super::error::{Error, ResultError};
use super::group::{GroupHandle, GroupView};
use super::job::{AnyKind, JoinKind, ParentKind};
use super::submit::JobHandle;
use super::view::{JobView, State};
use crate::codec::is_encoded;

impl JobView {
    /// Returns the result, decoded as the result of a [`JobKind`](crate::JobKind).
    ///
    /// # Errors
    /// [`ResultError`]: the job has no result, is of another kind, or its result has another type.
    pub fn typed_result<K: AnyKind>(&self) -> Result<K::Output, ResultError> {
        match (&self.kind, K::KIND) {
            (Some(there), Some(given)) if there.as_str() != given => {
                Err(ResultError::Kind { id: self.id.clone(), there: there.clone(), given })
            }
            (_, None) => self.read_result(false, K::decode),
            (_, Some(_)) => self.read_result(true, K::decode),
        }
    }

    /// Returns the result of a join or a finished handler.
    pub(crate) fn json_result<R: DeserializeOwned>(&self) -> Result<R, ResultError> {
        self.read_result(true, |result| serde_json::from_slice(result.bytes()))
    }

    fn read_result<R>(
        &self,
        typed: bool,
        decode: impl FnOnce(&Payload) -> Result<R, serde_json::Error>,
    ) -> Result<R, ResultError> {
        match (self.state, &self.result) {
            (State::Succeeded, Some(result)) if typed && is_encoded(result) => {
                Err(ResultError::Encoded(self.id.clone()))
            }
            (State::Succeeded, Some(result)) => {
                decode(result).map_err(|source| ResultError::Type { id: self.id.clone(), source })
            }
            (_, _) => Err(ResultError::NoResult(Box::new(self.clone()))),
        }
    }
}

impl<K: AnyKind> JobHandle<K> {
    /// Waits until the job has ended and decodes its result. For an untyped job, returns the stored bytes.
    ///
    /// # Errors
    /// [`ResultError`]: the wait failed, the job ended without success, or its result has another type.
    pub async fn result(&self, within: Duration) -> Result<K::Output, ResultError> {
        self.wait(within).await?.typed_result::<K>()
    }
}

impl<K: ParentKind> JobHandle<K> {
    /// Waits until the job, its sub-jobs, their join and its finished handler have ended, and decodes the result of the
    /// finished handler.
    ///
    /// # Errors
    /// [`ResultError`]: the wait failed, the job has no sub-jobs, the finished handler did not run or had no success, or
    /// its result has another type.
    pub async fn finished_result(&self, within: Duration) -> Result<K::Finished, ResultError> {
        let by = self.client.0.session.by(within);
        let job = self.wait(within).await?;
        let group =
            job.sub_jobs.into_iter().next().ok_or_else(|| ResultError::NoSubJobs(self.id().clone()))?;
        let left = by.at.since(self.client.0.session.now());
        let done = self.client.wait_group(&group, left).await?;
        let finish = done.finished.ok_or(GroupError::NoResult { group, job: "finished handler" });
        self.client.ended(&finish.map_err(Error::from)?).await?.json_result()
    }
}

impl<K: JoinKind> GroupHandle<K> {
    /// Waits until the join of the group has ended and decodes its result.
    ///
    /// # Errors
    /// [`ResultError`]: the wait failed, the group has no join, the join had no success, or its result has another
    /// type.
    ///
    /// # Examples
    /// A group of a kind without a join has no such result:
    ///
    /// ```compile_fail,E0599
    /// # use std::time::Duration;
    /// # use bellwether::{Client, JobKind};
    /// # struct Sum;
    /// # impl JobKind for Sum {
    /// #     const NAME: &'static str = "sum";
    /// #     type Payload = Vec<i64>;
    /// #     type Result = i64;
    /// # }
    /// # async fn run(client: &Client) -> Result<(), Box<dyn std::error::Error>> {
    /// let group = client.group(Sum::group("november").total(1)).await?;
    /// let joined = group.join_result(Duration::from_secs(60)).await?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Cancellation, connection loss
    /// Like [`Client::wait_group`].
    pub async fn join_result(&self, within: Duration) -> Result<K::Joined, ResultError> {
        let GroupView { join, .. } = self.client.wait_joined(self.id(), within).await?;
        let join = join.ok_or_else(|| GroupError::NoResult { group: self.id().clone(), job: "join" });
        self.client.ended(&join.map_err(Error::from)?).await?.json_result()
    }
}

impl Client {
    /// Reads a job whose end is known from its group.
    async fn ended(&self, id: &JobId) -> Result<JobView, ResultError> {
        Ok(self.get(id).await?.ok_or_else(|| Error::NotFound(id.clone()))?)
    }
}
