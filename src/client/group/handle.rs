//! A handle on an existing group: submits members and seals the group.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use bellwether_core::group::GroupError;
use bellwether_core::job::identity::IfExists;
use bellwether_core::job::{Membership, Role};
use bellwether_core::name::{GroupId, JobId, Kind};
use bellwether_core::{path, txn};
use futures::{Stream, StreamExt, stream};

use super::known::{Entrant, Known};
use super::{GroupView, GroupWaitError, Members, TRIES, view};
use crate::client::Client;
use crate::client::error::{Error, Subject, SubmitError};
use crate::client::job::{AnyKind, Job, JobError, Untyped};
use crate::client::session::{Deadline, Written};
use crate::client::submit::{JobHandle, MANY_UNDER_WAY};

/// A handle on an existing group. Cheap to clone. `K` is the [`JobKind`](crate::JobKind) of its members, or [`Untyped`].
pub struct GroupHandle<K = Untyped> {
    pub(in crate::client) client: Client,
    pub(super) known: Arc<Known>,
    typed: PhantomData<fn() -> K>,
}

impl<K> Clone for GroupHandle<K> {
    fn clone(&self) -> Self {
        Self { client: self.client.clone(), known: Arc::clone(&self.known), typed: PhantomData }
    }
}

impl<K> fmt::Debug for GroupHandle<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("GroupHandle").field(&self.known.id).finish()
    }
}

impl<K: AnyKind> GroupHandle<K> {
    pub(super) fn new(client: Client, known: Known) -> Self {
        Self { client, known: Arc::new(known), typed: PhantomData }
    }

    /// Returns its id.
    #[must_use]
    pub fn id(&self) -> &GroupId {
        &self.known.id
    }

    /// Returns the kind of its members.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.known.look().0.kind
    }

    /// Submits the member with this number, counted from 0. The same number, kind and payload again is the same
    /// member.
    ///
    /// # Errors
    /// [`SubmitError`]; [`SubmitError::Group`] if the group does not accept the member: the number is not below the
    /// total, the group was stopped or has ended, or the job has another kind or an explicit id. Then nothing was
    /// written.
    ///
    /// # Cancellation, ordering, connection loss
    /// Like [`Client::submit`].
    pub async fn submit(&self, number: u32, job: Job<K>) -> Result<JobHandle<K>, SubmitError> {
        let entrant = Entrant { known: Arc::clone(&self.known), number };
        let (id, membership) = self.admit(number, &job)?;
        self.client.submit_member(job, id, membership, entrant).await
    }

    /// Like [`GroupHandle::submit`], and seals the group with this member as the last one: the total is its number
    /// plus one.
    ///
    /// # Errors
    /// The errors of [`GroupHandle::submit`], and [`SubmitError::Client`] if the group cannot be sealed.
    pub async fn submit_last(&self, number: u32, job: Job<K>) -> Result<JobHandle<K>, SubmitError> {
        self.admit(number, &job)?;
        job.check_at(self.client.0.session.wall())?;
        // Seals first, so that an invalid total is reported before anything is written.
        self.seal(number.saturating_add(1)).await?;
        self.submit(number, job).await
    }

    /// Submits members as fast as they are sent. The results are in the order of the members.
    ///
    /// # Cancellation
    /// Dropping the stream drops the members that were not sent. Submitting all of them again is safe.
    pub fn submit_stream(
        &self,
        members: impl IntoIterator<Item = (u32, Job<K>)>,
    ) -> impl Stream<Item = Result<JobHandle<K>, SubmitError>> {
        stream::iter(members).map(|(number, job)| self.submit(number, job)).buffered(MANY_UNDER_WAY)
    }

    /// Submits jobs as members 0, 1, 2, … and waits until each is acknowledged. Returns their number. Does not seal
    /// the group.
    ///
    /// # Errors
    /// The first error. Later members may have been accepted.
    pub async fn submit_all(&self, jobs: impl IntoIterator<Item = Job<K>>) -> Result<u32, SubmitError> {
        let mut count = 0;
        let mut answers = std::pin::pin!(self.submit_stream((0..).zip(jobs)));
        while let Some(answer) = answers.next().await {
            answer?;
            count += 1;
        }
        Ok(count)
    }

    /// Sets the total number of members. Repeating the call changes nothing.
    ///
    /// # Errors
    /// [`Error::Group`]: another total was set before, the total is over the limit, or an existing member is not
    /// below it. A member that is submitted concurrently may not be seen; the group does not wait for it.
    ///
    /// # Connection loss
    /// A lost reply is resolved by reading back.
    pub async fn seal(&self, total: u32) -> Result<(), Error> {
        let (id, by) = (&self.known.id, self.client.by());
        for _ in 0..TRIES {
            let (record, version) = self.known.look();
            let sealed = record.sealed(id, total)?;
            if sealed == record {
                return Ok(());
            }
            if let Some(number) = self.highest(by).await?.filter(|number| *number >= total) {
                return Err(GroupError::TotalTooSmall { group: id.clone(), number, total }.into());
            }
            if self.client.0.session.commit(by, txn::set_group(id, version, &sealed)).await?
                == Written::Applied
            {
                // The stored record is now this one, or a newer one that was read in the meantime.
                self.known.wrote(version, sealed);
                return Ok(());
            }
            let node = self.client.0.session.read(by, |zk| zk.get(path::group(id))).await?;
            self.known.learn(node.as_ref())?;
        }
        Err(Error::Contended { subject: Subject::Group(id.clone()), tries: TRIES })
    }

    /// Returns the highest number of an existing member.
    async fn highest(&self, by: Deadline) -> Result<Option<u32>, Error> {
        let (id, session) = (&self.known.id, &self.client.0.session);
        for chunk in self.client.group_chunks(id, by).await?.into_iter().rev() {
            let listed = session.read(by, |zk| view::numbers(zk.clone(), id.clone(), chunk)).await?;
            let highest =
                listed.open.last().copied().max(listed.ended.last_key_value().map(|(number, _)| *number));
            if highest.is_some() {
                return Ok(highest);
            }
        }
        Ok(None)
    }

    /// Reads the group: see [`Client::get_group`].
    ///
    /// # Errors
    /// The errors of [`Client::get_group`]; [`GroupError::NotFound`] if the group was removed.
    pub async fn view(&self) -> Result<GroupView, Error> {
        let view = self.client.get_group(&self.known.id).await?;
        view.ok_or_else(|| GroupError::NotFound { group: self.known.id.clone() }.into())
    }

    /// Waits until the group is done: see [`Client::wait_group`].
    ///
    /// # Errors
    /// The errors of [`Client::wait_group`].
    pub async fn wait(&self, within: Duration) -> Result<GroupView, GroupWaitError> {
        self.client.wait_group(&self.known.id, within).await
    }

    /// Returns a reader of the members: see [`Client::group_members`].
    #[must_use]
    pub fn members(&self) -> Members<K> {
        self.client.group_members(&self.known.id)
    }

    /// Returns the member's id and membership, if the job can be a member.
    fn admit(&self, number: u32, job: &Job<K>) -> Result<(JobId, Membership), SubmitError> {
        let group = self.known.id.clone();
        let (record, _) = self.known.look();
        let kind = Kind::new(job.kind()).map_err(JobError::Name)?;
        if kind != record.kind {
            return Err(GroupError::Kind { group, existing: record.kind, given: kind }.into());
        }
        if job.has_id() {
            return Err(GroupError::OwnId { group }.into());
        }
        if job.given_if_exists() == IfExists::Again {
            return Err(GroupError::MemberReopened { group }.into());
        }
        let total = bellwether_core::budget::MAX_MEMBERS;
        if number >= total {
            return Err(GroupError::NumberTooLarge { group, number, total }.into());
        }
        let id = JobId::member(&record.kind, &group, number).map_err(GroupError::InvalidId)?;
        Ok((id, Membership { group, role: Role::Member(number), counted: true }))
    }
}
