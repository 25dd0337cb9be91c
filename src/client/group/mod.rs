//! Groups: jobs of one kind, and a join that runs once all of them have ended.
//!
//! A group is made, or found, once; its members ride with all other submissions. What the client knows of the group's
//! record is kept with the handle: a member is submitted with a check of its version, and when that has moved on the
//! record is read again and the member decided upon anew. So a member comes in only while the group is as it was read.
//!
//! **What if a reply is lost?** Making and sealing read the record back: it says what was asked for, or the call is
//! repeated. A member is a submission like any other. Doing all of it again changes nothing: members have their number
//! in their id, and a group that is there with the same rules is the same group.

mod list;
mod members;
mod retry;
mod spawn;
mod view;

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bellwether_actors::worker::JobContext;
use bellwether_actors::{clock, trace};
use bellwether_core::group::{GroupError, GroupRecord};
use bellwether_core::job::{Membership, Role};
use bellwether_core::name::{GroupId, JobId, Kind};
use bellwether_core::trace::TraceContextError;
use bellwether_core::txn::{self, Op};
use bellwether_core::{path, wire};
use bellwether_zk::Node;
use futures::{Stream, StreamExt, stream};
use uuid::Uuid;

pub use list::{GroupCursor, GroupPage, GroupSaid, GroupSummary};
pub use members::{Member, MemberEnd, Members};
pub use spawn::{Spawn, SpawnError, SubJobs};
pub use view::{GroupStage, GroupView, GroupWaitError};

use super::Client;
use super::error::{Error, SubmitError};
use super::job::Job;
use super::link::{Deadline, Written};
use super::submit::{JobHandle, MANY_UNDER_WAY};
use bellwether_core::job::identity::IfExists;

/// How often a group that changes under our hands is tried: its record changes a handful of times in its life.
const TRIES: u32 = 16;

/// A group to make.
#[derive(Debug, Clone)]
pub struct Group {
    pub(crate) id: GroupId,
    pub(crate) record: GroupRecord,
}

impl Group {
    /// A group of jobs of `kind`. Its name is its own in the namespace, whatever its kind; the ids of its members are
    /// made of both and their number.
    ///
    /// # Errors
    /// When one of them is not a name. That both together are too long is told when the group is made.
    pub fn new(kind: impl AsRef<str>, name: impl AsRef<str>) -> Result<Self, GroupError> {
        let record = GroupRecord::new(Kind::new(kind)?, Uuid::now_v7(), clock::wall());
        Ok(Self { id: GroupId::plain(name)?, record })
    }

    /// How many members it has. Without it the group waits for somebody to seal it.
    #[must_use]
    pub fn total(mut self, total: u32) -> Self {
        self.record.total = Some(total);
        self
    }

    /// The first member that ends without success ends the group: the join runs at once, what waits is cancelled, and
    /// what runs is asked to end.
    #[must_use]
    pub fn fail_fast(mut self) -> Self {
        self.record.fail_fast = true;
        self
    }

    /// Nothing runs when all have ended. Without this the group has a join of kind `KIND.join`, which waits for a worker
    /// that has a handler for it.
    #[must_use]
    pub fn without_join(mut self) -> Self {
        self.record.join = false;
        self
    }

    /// Makes the group part of this trace, a W3C `traceparent`: its join, and those of its members that bring none. Default: in
    /// a process with OpenTelemetry, the span in which it is made; otherwise none. A group that is there keeps its own.
    ///
    /// # Errors
    /// When it is no trace context.
    pub fn trace_context(mut self, traceparent: impl AsRef<str>) -> Result<Self, TraceContextError> {
        self.record.trace = Some(traceparent.as_ref().parse()?);
        Ok(self)
    }

    /// As [`Group::trace_context`].
    #[cfg(feature = "http")]
    pub(crate) fn traced(mut self, context: Option<bellwether_core::trace::TraceContext>) -> Self {
        self.record.trace = context;
        self
    }

    /// Its id.
    #[must_use]
    pub fn id(&self) -> &GroupId {
        &self.id
    }
}

/// A group that is there. Cheap to clone.
#[derive(Clone)]
pub struct GroupHandle {
    client: Client,
    known: Arc<Known>,
}

/// What is known of a group's record.
#[derive(Debug)]
pub(super) struct Known {
    pub(super) id: GroupId,
    record: Mutex<(GroupRecord, i32)>,
}

/// A submission's part in a group.
#[derive(Debug, Clone)]
pub(super) struct Entrant {
    pub(super) known: Arc<Known>,
    pub(super) number: u32,
}

impl Known {
    pub(super) fn look(&self) -> (GroupRecord, i32) {
        self.record.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Takes in what a read showed.
    ///
    /// # Errors
    /// When the group is gone or cannot be read.
    pub(super) fn learn(&self, node: Option<&Node>) -> Result<(), GroupError> {
        let node = node.ok_or_else(|| GroupError::Absent { group: self.id.clone() })?;
        // What cannot be read is nobody's group that this client knows of.
        let record = wire::decode::<GroupRecord>(&node.data)
            .map_err(|_| GroupError::Absent { group: self.id.clone() })?;
        let mut known = self.record.lock().unwrap_or_else(PoisonError::into_inner);
        // Its token tells a group of the same name that was made after this one was removed.
        if known.1 <= node.version || known.0.token != record.token {
            *known = (record, node.version);
        }
        Ok(())
    }
}

impl Entrant {
    /// What the group adds to the submission.
    ///
    /// # Errors
    /// Why the group takes no new member of this number: it may be there already.
    pub(super) fn ops(&self) -> Result<[Op; 2], GroupError> {
        let (record, version) = self.known.look();
        record.admits(&self.known.id, self.number)?;
        Ok(txn::join_group(&self.known.id, version, self.number))
    }

    pub(super) fn chunk(&self) -> u32 {
        path::chunk(self.number)
    }
}

impl fmt::Debug for GroupHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("GroupHandle").field(&self.known.id).finish()
    }
}

impl Client {
    /// Makes a group, or finds the one that is there with the same rules. A total is said at any time, once.
    ///
    /// # Errors
    /// [`Error::Group`]: a name, number or bound is wrong, or a group of this name has other rules or another total.
    /// Nothing was written then.
    ///
    /// # Connection loss
    /// Resolved here, by reading back.
    pub async fn group(&self, group: Group) -> Result<GroupHandle, Error> {
        let Group { id, mut record } = group;
        record.trace = record.trace.or_else(|| trace::context(&tracing::Span::current()));
        self.open_group(id, record, None).await
    }

    /// The group of this id, which somebody made.
    ///
    /// # Errors
    /// [`GroupError::Absent`], [`Error::GroupUnreadable`], or no answer within the client's deadline.
    pub async fn existing_group(&self, id: &GroupId) -> Result<GroupHandle, Error> {
        let node = self.0.link.read(self.by(), |zk| zk.get(path::group(id))).await?;
        let node = node.ok_or_else(|| GroupError::Absent { group: id.clone() })?;
        let record = Mutex::new((decode(id, &node)?, node.version));
        Ok(GroupHandle { client: self.clone(), known: Arc::new(Known { id: id.clone(), record }) })
    }

    /// Makes the group, as that of a running job's sub-jobs if one is given, unless it is there.
    async fn open_group(
        &self,
        id: GroupId,
        record: GroupRecord,
        parent: Option<&JobContext>,
    ) -> Result<GroupHandle, Error> {
        record.check(&id)?;
        let by = self.by();
        for _ in 0..TRIES {
            let Some(node) = self.0.link.read(by, |zk| zk.get(path::group(&id))).await? else {
                // Whatever the answer: it is there now, or it is made again.
                let ops = match parent {
                    None => txn::make_group(&id, &record),
                    Some(parent) => self.make_sub_group(&id, &record, parent, by).await?,
                };
                self.0.link.commit(by, ops).await?;
                continue;
            };
            let there = decode(&id, &node)?;
            same(&id, &there, &record)?;
            if let Some(parent) = parent {
                self.make_sure_spawned(parent, by).await?;
            }
            let handle = GroupHandle {
                client: self.clone(),
                known: Arc::new(Known { id: id.clone(), record: Mutex::new((there, node.version)) }),
            };
            if let Some(total) = record.total {
                handle.seal(total).await?;
            }
            return Ok(handle);
        }
        Err(Error::GroupContended { group: id, tries: TRIES })
    }
}

pub(super) fn decode(id: &GroupId, node: &Node) -> Result<GroupRecord, Error> {
    wire::decode(&node.data).map_err(|reason| Error::GroupUnreadable { group: id.clone(), reason })
}

/// Whether the group that is there has the rules that were asked for. The total is looked at by itself.
fn same(id: &GroupId, there: &GroupRecord, given: &GroupRecord) -> Result<(), GroupError> {
    let rules = |group: &GroupRecord| {
        [
            ("kind", group.kind.to_string()),
            ("failing fast", group.fail_fast.to_string()),
            ("a join", group.join.to_string()),
        ]
    };
    for ((field, there), (_, given)) in rules(there).into_iter().zip(rules(given)) {
        if there != given {
            return Err(GroupError::Other { group: id.clone(), field, there, given });
        }
    }
    Ok(())
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
        job.check()?;
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
                let mut known = self.known.record.lock().unwrap_or_else(PoisonError::into_inner);
                if known.1 == version {
                    *known = (sealed, version + 1);
                }
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
