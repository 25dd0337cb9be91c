//! The arguments of handlers that run after a group: its members, or the parent job.

use std::fmt;
use std::marker::PhantomData;

use bellwether_core::name::{GroupId, JobId};
use serde::Deserialize;

use super::json::decode;
use super::{HandlerError, JobContext};
use crate::client::{AnyKind, Client, GroupView, JobKind, JobView, JoinKind, Members, ResultError, Untyped};

/// The argument of a finished handler: see [`handler::finished`](super::finished). `P` is the kind of the parent, `M`
/// the kind of its sub-jobs.
#[derive(Debug)]
#[non_exhaustive]
pub struct Finished<P = Untyped, M = Untyped> {
    /// The job whose sub-jobs have ended.
    pub parent: JobView,
    /// The first group of its sub-jobs, with its counts. Its `further` lists the groups of other kinds.
    pub group: GroupView,
    /// The join of the first group, if it has one.
    pub join: Option<JobView>,
    /// The sub-jobs of the first group.
    pub members: Members<M>,
    client: Client,
    typed: PhantomData<fn() -> P>,
}

impl<P: AnyKind, M> Finished<P, M> {
    /// Returns the result of the parent.
    ///
    /// # Errors
    /// [`ResultError`]: the parent had no success, or its result has another type.
    pub fn parent_result(&self) -> Result<P::Output, ResultError> {
        self.parent.typed_result::<P>()
    }
}

impl<P, M> Finished<P, M> {
    /// Returns the sub-jobs of another kind than `M`; `None` if the parent has no group of this kind.
    #[must_use]
    pub fn further<K: JobKind>(&self) -> Option<Members<K>> {
        let group = self.group.further.iter().find(|further| further.kind.as_str() == K::NAME)?;
        Some(self.client.group_members(&group.id))
    }
}

impl<P, M: JoinKind> Finished<P, M> {
    /// Returns the result of the sub-jobs' join; `None` if they have none.
    ///
    /// # Errors
    /// [`ResultError`]: the join had no success, or its result has another type.
    pub fn join_result(&self) -> Result<Option<M::Joined>, ResultError> {
        self.join.as_ref().map(JobView::json_result).transpose()
    }
}

/// The payload of a join or finished job, written by the leader.
#[derive(Deserialize)]
struct Ended {
    group: GroupId,
    parent: Option<JobId>,
}

/// Returns the client of the handler's node.
async fn client(context: &JobContext) -> Result<&Client, HandlerError> {
    let node = context
        .node()
        .ok_or_else(|| HandlerError::new("this context has no node and therefore no namespace"))?;
    Ok(node.get().await?)
}

pub(super) async fn members<K: AnyKind>(context: &JobContext) -> Result<Members<K>, HandlerError> {
    let Ended { group, .. } = decode(context)?;
    Ok(client(context).await?.group_members(&group))
}

pub(super) async fn finished<P: AnyKind, M: AnyKind>(
    context: &JobContext,
) -> Result<Finished<P, M>, HandlerError> {
    let Ended { group, parent } = decode(context)?;
    let parent = parent.ok_or_else(|| HandlerError::new("the group has no parent"))?;
    let client = client(context).await?;
    client.caught_up().await?;
    let gone = |what: &dyn fmt::Display| HandlerError::new(format!("{what} no longer exists"));
    let members = client.group_members(&group);
    let view = client.get_group(&group).await?.ok_or_else(|| gone(&group))?;
    let join = match &view.join {
        Some(join) => client.get(join).await?,
        None => None,
    };
    let parent = client.get(&parent).await?.ok_or_else(|| gone(&parent))?;
    Ok(Finished { parent, group: view, join, members, client: client.clone(), typed: PhantomData })
}
