//! Why something cannot be part of a group, as a submitter reads it: here in one place because client, handler and
//! leader refuse by the same rules.

use crate::budget::{MAX_DEPTH, MAX_MEMBERS};
use crate::name::{GroupId, JobId, Kind, NameError};

/// Why something cannot be part of a group. The text names the field, the bound and the way out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GroupError {
    /// The group, or its kind, has no name.
    #[error(transparent)]
    Word(#[from] NameError),
    /// An id that is composed with the group's is none, which only its length can bring about.
    #[error("group {group} with its kind: {source}")]
    Name {
        /// Which group.
        group: String,
        /// What is wrong.
        #[source]
        source: NameError,
    },
    /// The total is over the bound.
    #[error("total of group {group} is {total}: at most {MAX_MEMBERS} are allowed; nest groups for more")]
    Total {
        /// Which group.
        group: GroupId,
        /// What was given.
        total: u32,
    },
    /// The total was said before, and was another.
    #[error("group {group} was sealed with a total of {sealed}, not {given}: a total is said once")]
    Sealed {
        /// Which group.
        group: GroupId,
        /// The total that stands.
        sealed: u32,
        /// The other one.
        given: u32,
    },
    /// There are members whose numbers are not below the total.
    #[error("group {group} has member {number} already: its total cannot be {total}")]
    Below {
        /// Which group.
        group: GroupId,
        /// Its highest member.
        number: u32,
        /// The total that was given.
        total: u32,
    },
    /// The number is not below the total.
    #[error(
        "member {number} of group {group} is not below its total of {total}: members are numbered from 0"
    )]
    Number {
        /// Which group.
        group: GroupId,
        /// The member's number.
        number: u32,
        /// The total, or the bound on it.
        total: u32,
    },
    /// No member is accepted any more.
    #[error("group {group} takes no more members: {why}")]
    Closed {
        /// Which group.
        group: GroupId,
        /// Why.
        why: &'static str,
    },
    /// The group is one of another kind, or with other rules.
    #[error("group {group} was made with {field} {there}, not {given}: use another name for another group")]
    Other {
        /// Which group.
        group: GroupId,
        /// What differs.
        field: &'static str,
        /// As it stands.
        there: String,
        /// As it was given.
        given: String,
    },
    /// The member is a job of another kind.
    #[error("group {group} has members of kind {there}, not {given}: give each kind a group of its own")]
    Kind {
        /// Which group.
        group: GroupId,
        /// The group's kind.
        there: Kind,
        /// The job's kind.
        given: Kind,
    },
    /// It was deleted, or never made.
    #[error("there is no group {group}")]
    Absent {
        /// Which group.
        group: GroupId,
    },
    /// A member belongs to what the group counts: it is not opened again by a submission.
    #[error("a member of group {group} is not opened again by submitting it: retry it instead")]
    Again {
        /// Which group.
        group: GroupId,
    },
    /// The attempt that would have sub-jobs was closed.
    #[error("the attempt of job {job} is over: it can have no sub-jobs any more")]
    AttemptOver {
        /// Which job.
        job: JobId,
    },
    /// A retry would come before the end of what the job's last generation left behind.
    #[error("job {job} cannot be retried while group {group} of its sub-jobs is not done: wait for it")]
    Spawned {
        /// Which job.
        job: JobId,
        /// The group of its sub-jobs.
        group: GroupId,
    },
    /// A member's id is made of the group and its number.
    #[error("a member of group {group} has no id of its own: it is named by its kind, group and number")]
    OwnId {
        /// Which group.
        group: GroupId,
    },
    /// A job would be nested in itself.
    #[error("job {job} cannot be its own parent")]
    OwnParent {
        /// Which job.
        job: JobId,
    },
    /// Groups are nested too deep.
    #[error(
        "group {group} would be nested {depth} deep: at most {MAX_DEPTH} are allowed; does its kind submit itself?"
    )]
    Depth {
        /// Which group.
        group: GroupId,
        /// How deep.
        depth: u32,
    },
}
