//! A group as a client sees it.

use std::collections::BTreeSet;
use std::time::{Duration, SystemTime};

use bellwether_core::group::{End, GroupError, GroupRecord, Mark, Stage, Stop};
use bellwether_core::name::{GroupId, JobId, Kind};
use bellwether_core::path;
use bellwether_core::remedy::ErrorClass;
use bellwether_host::group::{Members as Numbers, members_of};
use bellwether_zk::{Node, ReadResult};
use futures::FutureExt as _;
use futures::future::BoxFuture;

use serde::Serialize;

use super::super::Client;
use super::super::error::{Error, Unavailable};
use super::super::runtime::Zk;
use super::super::session::Deadline;
use super::decode;
use crate::client::author::Changed;

/// The stage of a group's life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "describe", derive(clap::ValueEnum), value(rename_all = "snake_case"))]
pub enum GroupStage {
    /// Members are submitted and run.
    Open,
    /// The join waits for a worker, or runs.
    Joining,
    /// The parent's finished handler waits for a worker, or runs.
    Finishing,
    /// The group has ended.
    Done,
}

bellwether_core::impl_deserialize_by_name!(GroupStage);

bellwether_core::impl_names!(GroupStage {
    Open = "open",
    Joining = "joining",
    Finishing = "finishing",
    Done = "done",
});

/// A further group of a parent, as its first group lists it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct FurtherGroup {
    /// Its id.
    pub id: GroupId,
    /// The kind of its members.
    pub kind: Kind,
    /// Whether it is done.
    pub is_done: bool,
}

/// A group as read at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct GroupView {
    /// Its id.
    pub id: GroupId,
    /// The kind of its members.
    pub kind: Kind,
    /// Where it is in its life.
    pub stage: GroupStage,
    /// The total number of members, once it is set.
    pub total: Option<u32>,
    /// Members that are open.
    pub open: u32,
    /// Members that succeeded.
    pub succeeded: u32,
    /// Members that were cancelled.
    pub cancelled: u32,
    /// Members that are dead.
    pub dead: u32,
    /// Whether the first member that ends without success stops the group.
    pub fail_fast: bool,
    /// Why it was stopped before all of its members ended.
    pub stopped: Option<String>,
    /// Whether it was stopped because its client submitted no more members and did not seal it. It has no join.
    pub is_abandoned: bool,
    /// Who abandoned it, if a client did.
    pub changed: Option<Changed>,
    /// The job whose sub-jobs are the members.
    pub parent: Option<JobId>,
    /// The first group of the parent, if this is a further one.
    pub first: Option<GroupId>,
    /// The further groups of the parent, if this is its first one. The first one is done after all of them.
    pub further: Vec<FurtherGroup>,
    /// Its join, if it has one, once that was created.
    pub join: Option<JobId>,
    /// Its parent's finished job, once that was created.
    pub finished: Option<JobId>,
    /// When it was created, by the creator's clock.
    pub created_at: SystemTime,
    /// When it was done, by the leader's clock.
    pub done_at: Option<SystemTime>,
    has_joined: bool,
}

impl GroupView {
    /// Returns how many members were not submitted yet; `None` while the total is not set.
    #[must_use]
    pub fn missing(&self) -> Option<u32> {
        let there = self.open + self.succeeded + self.cancelled + self.dead;
        self.total.map(|total| total.saturating_sub(there))
    }

    /// The number of members that were submitted or are expected.
    fn size(&self) -> u32 {
        self.open + self.succeeded + self.cancelled + self.dead + self.missing().unwrap_or_default()
    }

    /// Returns its stage and what it waits for, in one line.
    #[must_use]
    pub fn status(&self) -> String {
        let why = match (self.stage, self.missing()) {
            (GroupStage::Open, _) if self.is_abandoned => {
                Some(format!("it was abandoned, {} members are open", self.open))
            }
            (GroupStage::Open | GroupStage::Joining, _) if self.awaits_only_further() => {
                let open = self.further.iter().find(|further| !further.is_done);
                open.map(|further| format!("group {} is not done", further.id))
            }
            (GroupStage::Open, None) => Some("its total is not set yet".to_owned()),
            (GroupStage::Open, Some(0)) => Some(format!("{} of {} members are open", self.open, self.size())),
            (GroupStage::Open, Some(missing)) => {
                let (size, open) = (self.size(), self.open);
                Some(format!("{missing} of {size} members were not submitted, {open} are open"))
            }
            (GroupStage::Joining, _) => self.join.as_ref().map(|job| format!("waits for {job}")),
            (GroupStage::Finishing, _) => self.finished.as_ref().map(|job| format!("waits for {job}")),
            (GroupStage::Done, _) => None,
        };
        why.map_or_else(|| self.stage.to_string(), |why| format!("{}: {why}", self.stage))
    }

    /// Whether all of its own jobs have ended, and a further group of its parent is not done.
    fn awaits_only_further(&self) -> bool {
        let members = self.missing() == Some(0) && self.open == 0;
        let joined = self.stage == GroupStage::Open || self.has_joined;
        members && joined && self.further.iter().any(|further| !further.is_done)
    }

    pub(super) fn new(id: &GroupId, record: GroupRecord, marks: &BTreeSet<Mark>) -> Self {
        let (stage, done_at) = match record.stage {
            Stage::Open => (GroupStage::Open, None),
            Stage::Joining => (GroupStage::Joining, None),
            Stage::Finishing => (GroupStage::Finishing, None),
            Stage::Done { at } => (GroupStage::Done, Some(at.into())),
        };
        let joined = record.has_join() && stage != GroupStage::Open;
        let finished = matches!(stage, GroupStage::Finishing | GroupStage::Done);
        let finish = record.parent.as_ref().filter(|parent| parent.finish && finished);
        Self {
            id: id.clone(),
            stage,
            total: record.total,
            open: 0,
            succeeded: 0,
            cancelled: 0,
            dead: 0,
            fail_fast: record.fail_fast,
            is_abandoned: record.stopped == Some(Stop::Abandoned),
            changed: record.changed.clone().map(Changed::of),
            stopped: record.stopped.map(|stop| match stop {
                Stop::Member(number) => format!("member {number} ended without success"),
                Stop::Parent => "its parent ended without success".to_owned(),
                Stop::Outer => "the group that it is nested in was stopped".to_owned(),
                Stop::Abandoned => "it was abandoned".to_owned(),
            }),
            join: joined.then(|| record.join_id(id).ok()).flatten(),
            finished: finish.and_then(|parent| parent.finish_id(id).ok()),
            has_joined: marks.contains(&Mark::Join),
            further: (0..)
                .zip(record.further_groups(id))
                .zip(&record.further)
                .map(|((number, id), kind)| FurtherGroup {
                    id,
                    kind: kind.clone(),
                    is_done: marks.contains(&Mark::Further(number)),
                })
                .collect(),
            first: record
                .parent
                .as_ref()
                .and_then(|parent| parent.first.as_ref())
                .map(|first| first.group.clone()),
            parent: record.parent.map(|parent| parent.job),
            kind: record.kind,
            created_at: record.created_at.into(),
            done_at,
        }
    }

    fn count(&mut self, members: Numbers) {
        let Numbers { mut open, ended } = members;
        open.retain(|number| !ended.contains_key(number));
        self.open += u32::try_from(open.len()).unwrap_or(u32::MAX);
        for end in ended.into_values() {
            match end {
                End::Succeeded => self.succeeded += 1,
                End::Cancelled => self.cancelled += 1,
                End::Dead => self.dead += 1,
            }
        }
    }
}

/// A wait did not reach the end of the group.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum GroupWaitError {
    /// The group is not done in time.
    #[error("group {group} is not done after {within:?}{}", .last.as_ref().map(|view| format!(": {}", view.status())).unwrap_or_default())]
    TimedOut {
        /// The group.
        group: GroupId,
        /// How long the call waited.
        within: Duration,
        /// The last seen state of the group.
        last: Option<Box<GroupView>>,
    },
    /// A request failed.
    #[error(transparent)]
    Client(#[from] Error),
}

impl GroupWaitError {
    /// Returns the class of the error.
    #[must_use]
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::TimedOut { .. } => ErrorClass::TimedOut,
            Self::Client(error) => error.class(),
        }
    }
}

bellwether_core::impl_remedy!(GroupWaitError);

/// After a timed-out wait: how long the read of the group's state may still take.
const LAST_LOOK: Duration = Duration::from_millis(500);

impl Client {
    /// Reads a group with the counts of its members; `None` if it does not exist. Members that end during the call
    /// may be counted as open. It lists the numbers of all members, a chunk of 4,096 at a time.
    ///
    /// # Errors
    /// [`Error::GroupUnreadable`], or no answer within the client's deadline.
    pub fn get_group<'a>(&'a self, id: &'a GroupId) -> BoxFuture<'a, Result<Option<GroupView>, Error>> {
        async move { self.group_by(id, self.by()).await }.boxed()
    }

    /// Waits until a group is done: its members, its join and its parent's finished handler have ended.
    ///
    /// # Errors
    /// [`GroupWaitError::TimedOut`] with the last seen state; [`GroupError::NotFound`] if the group does not exist.
    ///
    /// # Cancellation
    /// Dropping the future changes nothing.
    ///
    /// # Connection loss
    /// The wait continues after a reconnection or under a new session, until `within` has passed.
    pub fn wait_group<'a>(
        &'a self,
        id: &'a GroupId,
        within: Duration,
    ) -> BoxFuture<'a, Result<GroupView, GroupWaitError>> {
        self.wait_stage(id, within, |stage| matches!(stage, Stage::Done { .. })).boxed()
    }

    /// Waits until the members and the join of a group have ended.
    pub(in crate::client) async fn wait_joined(
        &self,
        id: &GroupId,
        within: Duration,
    ) -> Result<GroupView, GroupWaitError> {
        self.wait_stage(id, within, |stage| matches!(stage, Stage::Finishing | Stage::Done { .. })).await
    }

    async fn wait_stage(
        &self,
        id: &GroupId,
        within: Duration,
        reached: impl Fn(Stage) -> bool,
    ) -> Result<GroupView, GroupWaitError> {
        let by = self.0.session.by(within);
        match self.until_stage(id, by, reached).await {
            Ok(view) => Ok(view),
            Err(Error::Unavailable(Unavailable::NotInTime { served: true, .. })) => {
                let last = self.group_by(id, self.0.session.by(LAST_LOOK)).await;
                let last = last.ok().flatten().map(Box::new);
                Err(GroupWaitError::TimedOut { group: id.clone(), within, last })
            }
            Err(error) => Err(error.into()),
        }
    }

    async fn until_stage(
        &self,
        id: &GroupId,
        by: Deadline,
        reached: impl Fn(Stage) -> bool,
    ) -> Result<GroupView, Error> {
        let absent = || Error::Group(GroupError::NotFound { group: id.clone() });
        let reached = |node: &Node| Ok(reached(decode(id, node)?.stage).then_some(()));
        self.until(&path::group(id), by, absent, reached).await?;
        self.group_by(id, by).await?.ok_or_else(absent)
    }

    async fn group_by(&self, id: &GroupId, by: Deadline) -> Result<Option<GroupView>, Error> {
        let Some(node) = self.0.session.read(by, |zk| zk.get(path::group(id))).await? else {
            return Ok(None);
        };
        let record = decode(id, &node)?;
        let names = self.0.session.read(by, |zk| zk.children(path::group(id))).await?.unwrap_or_default();
        let marks = names.iter().filter_map(|name| path::parse_mark(name)).map(|(mark, _)| mark).collect();
        let mut view = GroupView::new(id, record, &marks);
        for chunk in chunks(&names) {
            let numbers = self.0.session.read(by, |zk| numbers(zk.clone(), id.clone(), chunk)).await?;
            view.count(numbers);
        }
        Ok(Some(view))
    }

    /// Returns the chunks of a group that have or had a member, in order.
    pub(super) async fn group_chunks(&self, id: &GroupId, by: Deadline) -> Result<Vec<u32>, Error> {
        let names = self.0.session.read(by, |zk| zk.children(path::group(id))).await?.unwrap_or_default();
        Ok(chunks(&names))
    }
}

fn chunks(names: &[String]) -> Vec<u32> {
    let mut chunks = names.iter().filter_map(|name| path::parse_chunk(name)).collect::<Vec<_>>();
    chunks.sort_unstable();
    chunks
}

pub(super) async fn numbers(zk: Zk, id: GroupId, chunk: u32) -> ReadResult<Numbers> {
    members_of(&*zk, &id, chunk).await
}

#[cfg(test)]
mod tests;
