//! The errors of groups as a submitter sees them. They are defined in one place because the client, the handler and the
//! leader apply the same rules.

use crate::budget::{MAX_DEPTH, MAX_GROUPS_OF_PARENT, MAX_MEMBERS};
use crate::name::{GroupId, JobId, Kind, Lane, NameError};
use crate::remedy::ErrorClass;

/// Why an operation on a group was refused. The text names the field, the bound and a way to proceed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GroupError {
    /// The id of the group, or the name of its kind, is invalid.
    #[error(transparent)]
    InvalidId(#[from] NameError),
    /// An id that is composed with the id of the group is too long.
    #[error("the id of group {group} and the name of its kind are too long together")]
    IdTooLong {
        /// The group.
        group: String,
        /// The error of the composed name.
        #[source]
        source: NameError,
    },
    /// The total is over the bound.
    #[error("total of group {group} is {total}: at most {MAX_MEMBERS} are allowed; nest groups for more")]
    TotalTooLarge {
        /// The group.
        group: GroupId,
        /// The given total.
        total: u32,
    },
    /// Another total was set before.
    #[error("group {group} was sealed with a total of {sealed}, not {given}: a total can be set only once")]
    Sealed {
        /// The group.
        group: GroupId,
        /// The total that was set.
        sealed: u32,
        /// The given total.
        given: u32,
    },
    /// There are members whose numbers are not below the total.
    #[error("group {group} has member {number} already: its total cannot be {total}")]
    TotalTooSmall {
        /// The group.
        group: GroupId,
        /// Its highest member.
        number: u32,
        /// The given total.
        total: u32,
    },
    /// The number is not below the total.
    #[error(
        "member {number} of group {group} is not below its total of {total}: members are numbered from 0"
    )]
    NumberTooLarge {
        /// The group.
        group: GroupId,
        /// The member's number.
        number: u32,
        /// The total, or the bound on it.
        total: u32,
    },
    /// The group accepts no new members.
    #[error("group {group} accepts no new members: {reason}")]
    Closed {
        /// The group.
        group: GroupId,
        /// The reason.
        reason: &'static str,
    },
    /// A group of sub-jobs cannot be abandoned: it ends with its parent.
    #[error("group {group} belongs to job {parent} and ends with it: cancel the job instead")]
    SubJobs {
        /// The group.
        group: GroupId,
        /// The parent.
        parent: JobId,
    },
    /// The group exists with another kind or other rules.
    #[error(
        "group {group} was created with {field} {existing}, not {given}: choose another id for another group"
    )]
    Conflict {
        /// The group.
        group: GroupId,
        /// The field that differs.
        field: &'static str,
        /// The stored value.
        existing: String,
        /// The given value.
        given: String,
    },
    /// The members have another kind.
    #[error("group {group} has members of kind {existing}, not {given}: a group has one kind")]
    Kind {
        /// The group.
        group: GroupId,
        /// The group's kind.
        existing: Kind,
        /// The given kind.
        given: Kind,
    },
    /// The group was deleted or never created.
    #[error("there is no group {group}")]
    NotFound {
        /// The group.
        group: GroupId,
    },
    /// The group was created without a join, or without a finished handler.
    #[error("group {group} has no {job}, so there is no result to wait for")]
    NoResult {
        /// The group.
        group: GroupId,
        /// The absent job: `join` or `finished handler`.
        job: &'static str,
    },
    /// A member is counted by its group: a submission cannot open it again.
    #[error("a member of group {group} cannot be opened again by submitting it: retry it instead")]
    MemberReopened {
        /// The group.
        group: GroupId,
    },
    /// The attempt that was to create sub-jobs is closed.
    #[error("the attempt of job {job} is closed: it can no longer have sub-jobs")]
    AttemptClosed {
        /// The job.
        job: JobId,
    },
    /// The sub-jobs of the job's last generation have not ended.
    #[error("job {job} cannot be retried while group {group} of its sub-jobs is not done: wait for it")]
    Spawned {
        /// The job.
        job: JobId,
        /// The group of its sub-jobs.
        group: GroupId,
    },
    /// A member was given an id; the id of a member is composed of its kind, group and number.
    #[error(
        "a member of group {group} cannot have a given id: its id consists of its kind, group and number"
    )]
    OwnId {
        /// The group.
        group: GroupId,
    },
    /// A sub-job has the lane of a job that waits for it.
    #[error(
        "a sub-job in group {group} cannot be in lane {lane}: its parent, or a job that its parent is a sub-job of, keeps its \
         turn there until the sub-job has ended"
    )]
    Lane {
        /// The group.
        group: GroupId,
        /// The lane.
        lane: Lane,
    },
    /// A job has sub-jobs of too many kinds.
    #[error(
        "job {job} cannot have a group of {kind}: it has sub-jobs of {MAX_GROUPS_OF_PARENT} kinds already; submit these as \
         sub-jobs of a sub-job"
    )]
    TooManyGroups {
        /// The job.
        job: String,
        /// The kind of the group that was refused.
        kind: Kind,
    },
    /// A job would be nested in itself.
    #[error("job {job} cannot be its own parent")]
    OwnParent {
        /// The job.
        job: JobId,
    },
    /// Groups are nested too deep.
    #[error(
        "group {group} would be nested {depth} deep: at most {MAX_DEPTH} are allowed; does its kind submit itself?"
    )]
    Depth {
        /// The group.
        group: GroupId,
        /// The depth.
        depth: u32,
    },
}

impl GroupError {
    /// Returns the class of the error.
    #[must_use]
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::InvalidId(_)
            | Self::IdTooLong { .. }
            | Self::TotalTooLarge { .. }
            | Self::NumberTooLarge { .. }
            | Self::MemberReopened { .. }
            | Self::OwnId { .. }
            | Self::OwnParent { .. }
            | Self::Lane { .. }
            | Self::TooManyGroups { .. }
            | Self::Depth { .. } => ErrorClass::Invalid,
            Self::NotFound { .. } => ErrorClass::NotFound,
            Self::Sealed { .. }
            | Self::TotalTooSmall { .. }
            | Self::Closed { .. }
            | Self::SubJobs { .. }
            | Self::Conflict { .. }
            | Self::Kind { .. }
            | Self::Spawned { .. }
            | Self::NoResult { .. } => ErrorClass::Conflict,
            Self::AttemptClosed { .. } => ErrorClass::Failed,
        }
    }
}

crate::impl_remedy!(GroupError);
