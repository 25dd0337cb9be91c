//! What a look at a group shows.

use crate::group::{End, GroupRecord};

/// A look's answer.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Look {
    /// There is no such group.
    Absent,
    /// Its record is not one that this build knows.
    Unreadable(String),
    /// It was not answered.
    NotAnswered,
    /// What there is.
    There(Box<Sight>),
}

/// What there is of a group. The record is read first, so that what is decided on its version is fenced against
/// whatever raised it since; then the other jobs' marks; then the places; then the members' marks. A member that ends
/// meanwhile is counted twice, never not at all.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Sight {
    /// The record.
    pub record: GroupRecord,
    /// Its version.
    pub version: i32,
    /// How the parent ended.
    pub parent: Option<End>,
    /// How the join ended.
    pub join: Option<End>,
    /// How the parent's finished job ended.
    pub finish: Option<End>,
    /// Members that have ended.
    pub ended: u32,
    /// Members that are open.
    pub open: u32,
    /// A member that ended without success, if that matters to the group.
    pub failed: Option<u32>,
    /// How many members there are, exactly: counted by their numbers once the record said that none is added.
    pub members: Option<u32>,
    /// How many of the numbers below the total have ended; told once as many members have ended as there should be, for
    /// what was deleted by hand and submitted again may have a mark of each life.
    pub below: Option<u32>,
}

impl Sight {
    /// Of a group without a member.
    #[must_use]
    pub fn new(record: GroupRecord, version: i32) -> Self {
        Self {
            record,
            version,
            parent: None,
            join: None,
            finish: None,
            ended: 0,
            open: 0,
            failed: None,
            members: None,
            below: None,
        }
    }

    /// Whether members must be told by number: to find one that failed, to count them exactly, or because as many marks
    /// stand as there are members.
    #[must_use]
    pub fn wants_numbers(record: &GroupRecord, ended: u32) -> bool {
        let open = record.stage == crate::group::Stage::Open;
        let complete = record.total.is_some_and(|total| ended >= total);
        open && (record.fail_fast || record.closed || complete)
    }

    /// Whether all members have ended.
    pub(super) fn is_complete(&self, total: u32) -> bool {
        // A group that was closed has as many members as were counted, whatever their numbers.
        let ended = if self.record.closed { Some(self.ended) } else { self.below };
        self.open == 0 && ended.is_some_and(|ended| ended >= total)
    }
}
