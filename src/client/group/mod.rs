//! Groups: jobs of one kind, and a join that runs once all of them have ended.
//!
//! A group is made, or found, once; its members ride with all other submissions. What the client knows of the group's
//! record is kept with the handle: a member is submitted with a check of its version, and when that has moved on the
//! record is read again and the member decided upon anew. So a member comes in only while the group is as it was read.
//!
//! **What if a reply is lost?** Making and sealing read the record back: it says what was asked for, or the call is
//! repeated. A member is a submission like any other. Doing all of it again changes nothing: members have their number
//! in their id, and a group that is there with the same rules is the same group.

mod handle;
mod known;
mod list;
mod members;
mod retry;
mod spawn;
mod view;

use std::sync::Arc;

use bellwether_core::group::{GroupError, GroupRecord};
use bellwether_core::name::{GroupId, Kind};
use bellwether_core::time::WallMillis;
use bellwether_core::trace::TraceContext;
use bellwether_core::txn;
use bellwether_core::{path, wire};
use bellwether_host::trace;
use bellwether_zk::Node;
use uuid::Uuid;

pub use handle::GroupHandle;
pub(super) use known::{Entrant, Known};
pub use list::{GroupCursor, GroupPage, GroupSaid, GroupSummary};
pub use members::{Member, MemberEnd, Members};
#[doc(hidden)]
pub use spawn::Attempt;
pub use view::{GroupStage, GroupView, GroupWaitError};

use super::Client;
use super::error::Error;

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
        // Its token and its time are set when it is made.
        let record = GroupRecord::new(Kind::new(kind)?, Uuid::nil(), WallMillis(0));
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
    #[must_use]
    pub fn trace_context(mut self, context: impl Into<Option<TraceContext>>) -> Self {
        self.record.trace = context.into();
        self
    }

    /// Its id.
    #[must_use]
    pub fn id(&self) -> &GroupId {
        &self.id
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
        let known = Known::new(id.clone(), decode(id, &node)?, node.version);
        Ok(GroupHandle { client: self.clone(), known: Arc::new(known) })
    }

    /// Makes the group, as that of a running job's sub-jobs if one is given, unless it is there.
    async fn open_group(
        &self,
        id: GroupId,
        record: GroupRecord,
        parent: Option<&Attempt>,
    ) -> Result<GroupHandle, Error> {
        let (token, created_at) = (self.0.link.uuid(), self.0.link.wall());
        let record = GroupRecord { token, created_at, ..record };
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
                known: Arc::new(Known::new(id.clone(), there, node.version)),
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
