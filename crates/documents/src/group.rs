//! A group.

use bellwether::InstantText;
use bellwether::client::{GroupStage, GroupSummary, GroupView};
use serde::Serialize;
use utoipa::ToSchema;

use super::{ChangedDocument, name};

/// A group.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = Group)]
pub struct GroupDocument {
    /// The group's id.
    id: String,
    /// Kind of the members.
    kind: String,
    /// Stage of the group.
    stage: GroupStage,
    /// Stage, and what the group waits for, in one line.
    status: String,
    /// Number of members, once it is set.
    #[schema(required)]
    total: Option<u32>,
    /// Open members.
    open: u32,
    /// Members that succeeded.
    succeeded: u32,
    /// Members that were cancelled.
    cancelled: u32,
    /// Members that are dead.
    dead: u32,
    /// Members that have not been submitted yet.
    #[schema(required)]
    missing: Option<u32>,
    /// Whether the first member that ends without success ends the group.
    fail_fast: bool,
    /// Why the group did not wait for all members.
    #[schema(required)]
    stopped: Option<String>,
    /// Who abandoned the group; null if no client did.
    #[schema(required)]
    changed: Option<ChangedDocument>,
    /// The parent job, if the members are its sub-jobs.
    #[schema(required)]
    parent: Option<String>,
    /// The first group of the parent, if this is a further one.
    #[schema(required)]
    first: Option<String>,
    /// The further groups of the parent, if this is its first one.
    further: Vec<String>,
    /// Id of the join, once it exists.
    #[schema(required)]
    join: Option<String>,
    /// Id of the parent's finished job, once it exists.
    #[schema(required)]
    finished: Option<String>,
    /// When the group was created.
    created_at: InstantText,
    /// When the group was done.
    #[schema(required)]
    done_at: Option<InstantText>,
}

impl From<&GroupView> for GroupDocument {
    fn from(group: &GroupView) -> Self {
        Self {
            id: group.id.to_string(),
            kind: group.kind.to_string(),
            stage: group.stage,
            status: group.status(),
            total: group.total,
            open: group.open,
            succeeded: group.succeeded,
            cancelled: group.cancelled,
            dead: group.dead,
            missing: group.missing(),
            fail_fast: group.fail_fast,
            stopped: group.stopped.clone(),
            changed: group.changed.as_ref().map(Into::into),
            parent: name(group.parent.as_ref()),
            first: name(group.first.as_ref()),
            further: group.further.iter().map(|further| further.id.to_string()).collect(),
            join: name(group.join.as_ref()),
            finished: name(group.finished.as_ref()),
            created_at: InstantText(group.created_at),
            done_at: group.done_at.map(InstantText),
        }
    }
}

/// A group without the counts of its members. Fields of its record are null if it cannot be read.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = GroupSummary)]
pub struct GroupSummaryDocument {
    /// The group's id.
    id: String,
    /// Kind of the members.
    #[schema(required)]
    kind: Option<String>,
    /// Stage of the group.
    #[schema(required)]
    stage: Option<GroupStage>,
    /// Number of members, once it is set.
    #[schema(required)]
    total: Option<u32>,
    /// The parent job, if the members are its sub-jobs.
    #[schema(required)]
    parent: Option<String>,
    /// When the group was created.
    #[schema(required)]
    created_at: Option<InstantText>,
    /// When the group was done.
    #[schema(required)]
    done_at: Option<InstantText>,
}

impl From<&GroupSummary> for GroupSummaryDocument {
    fn from(summary: &GroupSummary) -> Self {
        let group = summary.record.as_ref();
        Self {
            id: summary.id.to_string(),
            kind: group.map(|group| group.kind.to_string()),
            stage: group.map(|group| group.stage),
            total: group.and_then(|group| group.total),
            parent: name(group.and_then(|group| group.parent.as_ref())),
            created_at: group.map(|group| InstantText(group.created_at)),
            done_at: group.and_then(|group| group.done_at).map(InstantText),
        }
    }
}
