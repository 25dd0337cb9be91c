//! Groups: jobs of one kind, and a join that runs once all of them have ended.
//!
//! A group is created or found once. Its members are batched with all other submissions. The client keeps the last
//! known group record in the handle and checks its version in each submission of a member. If the record has changed,
//! it is read again and the member is decided again. So a member is accepted only while the group's record is
//! unchanged.
//!
//! **What if a reply is lost?** Creating and sealing read the record back: it has the requested content, or the call
//! is repeated. A member is an ordinary submission. Repeating everything changes nothing: a member's id contains its
//! number, and an existing group with the same rules is the same group.

mod abandon;
mod handle;
mod known;
mod list;
mod members;
mod retry;
mod spawn;
mod view;

use std::marker::PhantomData;

#[cfg(feature = "describe")]
use bellwether_core::describe::Name;
use bellwether_core::group::{GroupError, GroupRecord};
use bellwether_core::name::{GroupId, Kind};
use bellwether_core::time::WallMillis;
use bellwether_core::trace::TraceContext;
use bellwether_core::txn;
use bellwether_core::{path, wire};
use bellwether_host::trace;
use bellwether_zk::Node;
use serde::Deserialize;
use uuid::Uuid;

pub use handle::GroupHandle;
pub(super) use known::{Entrant, Known};
pub use list::{GroupRecordView, GroupSummary};
pub use members::{Member, MemberEnd, MemberError, Members};
#[doc(hidden)]
pub use spawn::Attempt;
pub use view::{FurtherGroup, GroupStage, GroupView, GroupWaitError};

use super::Client;
use super::error::{Error, Subject};
use super::job::{AnyKind, Typed, Untyped};

/// Limit of attempts for a group that changes concurrently: its record changes only a few times in its life.
const TRIES: u32 = 16;

/// A group to create. `K` is the [`JobKind`](super::JobKind) of its members, or [`Untyped`].
/// [`JobKind::group`](super::JobKind::group) returns a typed one.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "describe", derive(clap::Args, utoipa::ToSchema), schema(as = NewGroup, bound = "", description = "A group to create."))]
// Only a group of any kind can be read: the kind is data.
#[serde(deny_unknown_fields, bound(deserialize = "PhantomData<K>: Into<PhantomData<Untyped>>"))]
pub struct Group<K = Untyped> {
    /// Kind of the members.
    #[cfg_attr(feature = "describe", schema(value_type = Kind))]
    kind: String,
    /// Id of the group.
    #[cfg_attr(feature = "describe", arg(value_name = "GROUP"), schema(value_type = Name))]
    id: String,
    /// Number of members, at most 1,000,000. It may be set later by creating the group again, and cannot be changed.
    #[cfg_attr(feature = "describe", arg(long, value_name = "N"), schema(maximum = 1_000_000))]
    total: Option<u32>,
    /// Whether the first member that ends without success ends the group.
    #[cfg_attr(feature = "describe", arg(long))]
    #[serde(default)]
    fail_fast: bool,
    /// Whether the join runs once the members have ended. Default: true.
    #[cfg_attr(feature = "describe", arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true"))]
    join: Option<bool>,
    #[cfg_attr(feature = "describe", arg(skip))]
    #[serde(skip)]
    trace: Option<TraceContext>,
    #[cfg_attr(feature = "describe", arg(skip))]
    #[serde(skip)]
    typed: Typed<K>,
}

impl<K> Clone for Group<K> {
    fn clone(&self) -> Self {
        let (kind, id) = (self.kind.clone(), self.id.clone());
        let Self { total, fail_fast, join, trace, typed, .. } = *self;
        Self { kind, id, total, fail_fast, join, trace, typed }
    }
}

impl Group {
    /// Returns a group of jobs of `kind`. Its id is unique in the namespace, independent of the kind. The ids of its members
    /// consist of kind, id and number. A malformed id is reported when the group is created.
    #[must_use]
    pub fn new(kind: impl AsRef<str>, id: impl AsRef<str>) -> Self {
        Self::of(kind, id)
    }
}

impl<K: AnyKind> Group<K> {
    /// Checks the group, without sending anything.
    ///
    /// # Errors
    /// The first error.
    pub fn check(&self) -> Result<(), GroupError> {
        self.record().map(drop)
    }

    /// Returns its id and the record to store. Token and time are set when the group is created.
    fn record(&self) -> Result<(GroupId, GroupRecord), GroupError> {
        let kind = Kind::new(&self.kind).map_err(GroupError::InvalidId)?;
        let id = GroupId::plain(&self.id).map_err(GroupError::InvalidId)?;
        let record = GroupRecord::new(kind, Uuid::nil(), WallMillis(0));
        let join = self.join.unwrap_or(record.join);
        let Self { total, fail_fast, trace, .. } = *self;
        let record = GroupRecord { total, fail_fast, join, trace, ..record };
        check_kind::<K>(&id, &record)?;
        record.check(&id)?;
        Ok((id, record))
    }
}

impl<K> Group<K> {
    pub(super) fn of(kind: impl AsRef<str>, id: impl AsRef<str>) -> Self {
        let (kind, id) = (kind.as_ref().to_owned(), id.as_ref().to_owned());
        Self { kind, id, total: None, fail_fast: false, join: None, trace: None, typed: PhantomData }
    }

    /// Returns the name of the kind of its members, which is not checked yet.
    #[must_use]
    pub fn kind(&self) -> &str {
        &self.kind
    }

    /// Sets how many members the group has, at most 1,000,000. Without it the group waits until it is [sealed](GroupHandle::seal).
    #[must_use]
    pub fn total(self, total: u32) -> Self {
        Self { total: Some(total), ..self }
    }

    /// Sets whether the first member that ends without success stops the group: then the join runs immediately, waiting members
    /// are cancelled, and running members are asked to stop. Default: no.
    #[must_use]
    pub fn fail_fast(self, fail_fast: bool) -> Self {
        Self { fail_fast, ..self }
    }

    /// Sets whether the group has a join of kind `KIND.join`, which waits for a worker with a handler for it. Default: yes.
    #[must_use]
    pub fn join(self, join: bool) -> Self {
        Self { join: Some(join), ..self }
    }

    /// Makes the group part of this trace. It applies to the join, and to members without a trace. Default: the span in
    /// which the group is created, in a process with OpenTelemetry; otherwise none. An existing group keeps its trace.
    #[must_use]
    pub fn traceparent(self, context: impl Into<Option<TraceContext>>) -> Self {
        Self { trace: context.into(), ..self }
    }
}

impl Client {
    /// Creates a group, or finds an existing one with the same rules. The total may be set at any time, once.
    ///
    /// # Errors
    /// [`Error::Group`]: a name, number or bound is invalid, or the existing group has other rules or another total.
    /// Then nothing was written.
    ///
    /// # Connection loss
    /// A lost reply is resolved by reading back.
    pub async fn group<K: AnyKind>(&self, group: Group<K>) -> Result<GroupHandle<K>, Error> {
        let (id, mut record) = group.record()?;
        record.trace = record.trace.or_else(|| trace::context(&tracing::Span::current()));
        self.open_group(id, record).await
    }

    /// Returns a handle on an existing group. `K` is the kind of its members, or [`Untyped`] for any kind.
    ///
    /// # Errors
    /// [`GroupError::NotFound`], [`GroupError::Kind`] if its members have another kind, [`Error::GroupUnreadable`], or
    /// no answer within the client's deadline.
    pub async fn existing_group<K: AnyKind>(&self, id: &GroupId) -> Result<GroupHandle<K>, Error> {
        let node = self.0.session.read(self.by(), |zk| zk.get(path::group(id))).await?;
        let node = node.ok_or_else(|| GroupError::NotFound { group: id.clone() })?;
        let record = decode(id, &node)?;
        check_kind::<K>(id, &record)?;
        Ok(GroupHandle::new(self.clone(), Known::new(id.clone(), record, node.version)))
    }

    /// Creates the group unless it exists.
    async fn open_group<K: AnyKind>(
        &self,
        id: GroupId,
        record: GroupRecord,
    ) -> Result<GroupHandle<K>, Error> {
        let record = self.stamped(record);
        let by = self.by();
        for _ in 0..TRIES {
            let Some(node) = self.0.session.read(by, |zk| zk.get(path::group(&id))).await? else {
                // Whatever the outcome: the next read finds the group, or it is created again.
                self.0.session.commit(by, txn::make_group(&id, &record)).await?;
                continue;
            };
            return self.opened(id, &record, &node).await;
        }
        Err(Error::Contended { subject: Subject::Group(id), tries: TRIES })
    }

    /// Completes the record of a group to create.
    fn stamped(&self, record: GroupRecord) -> GroupRecord {
        let (token, created_at) = (self.0.session.uuid(), self.0.session.wall());
        GroupRecord { token, created_at, ..record }
    }

    /// Returns a handle on a group that was created or found, and sets its total.
    async fn opened<K: AnyKind>(
        &self,
        id: GroupId,
        given: &GroupRecord,
        node: &Node,
    ) -> Result<GroupHandle<K>, Error> {
        let there = decode(&id, node)?;
        same(&id, &there, given)?;
        let handle = GroupHandle::new(self.clone(), Known::new(id, there, node.version));
        if let Some(total) = given.total {
            handle.seal(total).await?;
        }
        Ok(handle)
    }
}

pub(super) fn decode(id: &GroupId, node: &Node) -> Result<GroupRecord, Error> {
    wire::decode(&node.data).map_err(|reason| Error::GroupUnreadable { group: id.clone(), reason })
}

/// Checks that the members of an existing group are jobs of `K`.
fn check_kind<K: AnyKind>(id: &GroupId, record: &GroupRecord) -> Result<(), GroupError> {
    match K::KIND {
        Some(name) if name != record.kind.as_str() => {
            let (group, existing, given) = (id.clone(), record.kind.clone(), Kind::new(name)?);
            Err(GroupError::Kind { group, existing, given })
        }
        Some(_) | None => Ok(()),
    }
}

/// Checks that the existing group has the requested rules. The total is checked separately.
fn same(id: &GroupId, existing: &GroupRecord, given: &GroupRecord) -> Result<(), GroupError> {
    let rules = |group: &GroupRecord| {
        [
            ("kind", group.kind.to_string()),
            ("failing fast", group.fail_fast.to_string()),
            ("a join", group.join.to_string()),
        ]
    };
    for ((field, existing), (_, given)) in rules(existing).into_iter().zip(rules(given)) {
        if existing != given {
            return Err(GroupError::Conflict { group: id.clone(), field, existing, given });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
