//! The membership of a job in a group.

use crate::name::GroupId;

/// The group of a job and the job's role in it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Membership {
    /// The group.
    pub group: GroupId,
    /// The role of the job in the group.
    pub role: Role,
    /// Whether the group waits for its end. It does not wait for a job that was retried after the join.
    pub counted: bool,
}

/// The role of a job in its group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// The member with this number; numbers start at 0.
    Member(u32),
    /// Runs once all members are terminal.
    Join,
    /// The finished job, which runs once the join and the job whose sub-jobs the members are have ended.
    Finish,
}
