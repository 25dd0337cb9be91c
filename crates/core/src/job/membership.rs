//! A job's part in a group.

use crate::name::GroupId;

/// Which group a job belongs to, and as what.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Membership {
    /// The group.
    pub group: GroupId,
    /// What it is to it.
    pub role: Role,
    /// Whether the group waits for its end. One that was retried after the join is not waited for.
    pub counted: bool,
}

/// What a job is to its group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// The member of this number, from 0.
    Member(u32),
    /// Runs once all members are terminal.
    Join,
    /// Runs once the join is terminal: the end of the job whose sub-jobs the members are.
    Finish,
}
