//! A group that is there: its members are submitted, and their number is said.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bellwether_core::group::GroupError;
use bellwether_core::job::identity::IfExists;
use bellwether_core::job::{Membership, Role};
use bellwether_core::name::{GroupId, JobId};
use bellwether_core::{path, txn};
use futures::{Stream, StreamExt, stream};

use super::known::{Entrant, Known};
use super::{GroupView, GroupWaitError, Members, TRIES, view};
use crate::client::Client;
use crate::client::error::{Error, SubmitError};
use crate::client::job::Job;
use crate::client::link::{Deadline, Written};
use crate::client::submit::{JobHandle, MANY_UNDER_WAY};

/// A group that is there. Cheap to clone.
#[derive(Clone)]
pub struct GroupHandle {
    pub(super) client: Client,
    pub(super) known: Arc<Known>,
}

impl fmt::Debug for GroupHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("GroupHandle").field(&self.known.id).finish()
    }
}

impl GroupHandle {
    /// Its id.
    #[must_use]
    pub fn id(&self) -> &GroupId {
        &self.known.id
    }

    /// Submits the member of this number, from 0. The same number, kind and payload again is the same member.
    ///
    /// # Errors
    /// [`SubmitError`]; [`SubmitError::Group`] when the group does not take it: the number is not below the total, the
    /// group was stopped or is over, or the job is of another kind or has an id of its own. Nothing was written then.
    ///
    /// # Cancellation, ordering, connection loss
    /// As [`Client::submit`].
    pub async fn submit<K>(&self, number: u32, job: Job<K>) -> Result<JobHandle<K>, SubmitError> {
        let entrant = Entrant { known: Arc::clone(&self.known), number };
        let (id, membership) = self.admit(number, &job)?;
        self.client.submit_member(job, id, membership, entrant).await
    }

    /// As [`GroupHandle::submit`], and this is the last: the total is one more than its number.
    ///
    /// # Errors
    /// As [`GroupHandle::submit`], and [`SubmitError::Client`] when the group cannot be sealed.
    pub async fn submit_last<K>(&self, number: u32, job: Job<K>) -> Result<JobHandle<K>, SubmitError> {
        self.admit(number, &job)?;
        job.check_at(self.client.0.link.wall())?;
        // First, so that a total that cannot stand is told before anything is written.
        self.seal(number.saturating_add(1)).await.map_err(|error| match error {
            Error::Group(error) => SubmitError::Group(error),
            other => SubmitError::Client(other),
        })?;
        self.submit(number, job).await
    }

    /// Submits members as fast as they are sent; the answers are in their order.
    ///
    /// # Cancellation
    /// Drops what was not sent. Submitting all of them again is safe.
    pub fn submit_stream<K>(
        &self,
        members: impl IntoIterator<Item = (u32, Job<K>)>,
    ) -> impl Stream<Item = Result<JobHandle<K>, SubmitError>> {
        stream::iter(members).map(|(number, job)| self.submit(number, job)).buffered(MANY_UNDER_WAY)
    }

    /// Submits jobs as members 0, 1, 2, … and sees every one acknowledged; how many there were. It does not seal.
    ///
    /// # Errors
    /// The first error; members that come after it may have been accepted.
    pub async fn submit_all<K>(&self, jobs: impl IntoIterator<Item = Job<K>>) -> Result<u32, SubmitError> {
        let mut count = 0;
        let mut answers = std::pin::pin!(self.submit_stream((0..).zip(jobs)));
        while let Some(answer) = answers.next().await {
            answer?;
            count += 1;
        }
        Ok(count)
    }

    /// Says how many members there are. Saying it again changes nothing.
    ///
    /// # Errors
    /// [`Error::Group`]: another total was said before, it is over the bound, or a member that is there is not below it.
    /// One that comes in at the same moment is not seen: it is not waited for.
    ///
    /// # Connection loss
    /// Resolved here, by reading back.
    pub async fn seal(&self, total: u32) -> Result<(), Error> {
        let (id, by) = (&self.known.id, self.client.by());
        for _ in 0..TRIES {
            let (record, version) = self.known.look();
            let sealed = record.sealed(id, total)?;
            if sealed == record {
                return Ok(());
            }
            if let Some(number) = self.highest(by).await?.filter(|number| *number >= total) {
                return Err(GroupError::Below { group: id.clone(), number, total }.into());
            }
            if self.client.0.link.commit(by, txn::seal(id, version, &sealed)).await? == Written::Applied {
                // Unless it was sealed again meanwhile, which changes nothing, that is what it is now.
                self.known.wrote(version, sealed);
                return Ok(());
            }
            let node = self.client.0.link.read(by, |zk| zk.get(path::group(id))).await?;
            self.known.learn(node.as_ref())?;
        }
        Err(Error::GroupContended { group: id.clone(), tries: TRIES })
    }

    /// The highest number of a member that is there.
    async fn highest(&self, by: Deadline) -> Result<Option<u32>, Error> {
        let (id, link) = (&self.known.id, &self.client.0.link);
        for chunk in self.client.group_chunks(id, by).await?.into_iter().rev() {
            let listed = link.read(by, |zk| view::numbers(zk.clone(), id.clone(), chunk)).await?;
            let highest =
                listed.open.last().copied().max(listed.ended.last_key_value().map(|(number, _)| *number));
            if highest.is_some() {
                return Ok(highest);
            }
        }
        Ok(None)
    }

    /// Reads it: see [`Client::get_group`].
    ///
    /// # Errors
    /// As [`Client::get_group`]; that it is gone is [`GroupError::Absent`].
    pub async fn view(&self) -> Result<GroupView, Error> {
        let view = self.client.get_group(&self.known.id).await?;
        view.ok_or_else(|| GroupError::Absent { group: self.known.id.clone() }.into())
    }

    /// Waits until it is done: see [`Client::wait_group`].
    ///
    /// # Errors
    /// As [`Client::wait_group`].
    pub async fn wait(&self, within: Duration) -> Result<GroupView, GroupWaitError> {
        self.client.wait_group(&self.known.id, within).await
    }

    /// Reads its members, one after the other: see [`Client::group_members`].
    #[must_use]
    pub fn members(&self) -> Members {
        self.client.group_members(&self.known.id)
    }

    /// The member's id and membership, if the job can be one.
    fn admit<K>(&self, number: u32, job: &Job<K>) -> Result<(JobId, Membership), GroupError> {
        let group = self.known.id.clone();
        let (record, _) = self.known.look();
        if *job.kind() != record.kind {
            return Err(GroupError::Kind { group, there: record.kind, given: job.kind().clone() });
        }
        if job.has_id() {
            return Err(GroupError::OwnId { group });
        }
        if job.mode() == IfExists::Again {
            return Err(GroupError::Again { group });
        }
        let total = bellwether_core::budget::MAX_MEMBERS;
        if number >= total {
            return Err(GroupError::Number { group, number, total });
        }
        let id = JobId::member(&record.kind, &group, number)?;
        Ok((id, Membership { group, role: Role::Member(number), counted: true }))
    }
}
