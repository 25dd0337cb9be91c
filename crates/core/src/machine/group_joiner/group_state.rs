//! The result of a look at a group.

use crate::group::{End, GroupRecord};
use crate::name::GroupId;
use crate::time::WallMillis;

/// The answer to a look.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Lookup {
    /// The group does not exist.
    Absent,
    /// The record cannot be decoded by this build.
    Unreadable(String),
    /// The look was not answered.
    NotAnswered,
    /// The group.
    Found(Box<GroupState>),
}

/// The state of a group. The reads have an order: first the record, so that a decision committed at its version is
/// fenced against later changes; then the marks of the other jobs, for a further group also those of the first one; then the
/// further groups without a mark, which exist until they are done; then the places; then the marks of the members. A
/// member that ends in the meantime is counted twice, but never missed.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct GroupState {
    /// The record.
    pub record: GroupRecord,
    /// Its version.
    pub version: i32,
    /// When it was last set, by ZooKeeper's clock.
    pub modified: WallMillis,
    /// How the parent ended. The mark is in the parent's first group.
    pub parent: Option<End>,
    /// The further groups of the parent that are not done, if this is the first one. One that an operator has deleted is not
    /// among them.
    pub further: Vec<GroupId>,
    /// How the join ended.
    pub join: Option<End>,
    /// How the parent's finished job ended.
    pub finish: Option<End>,
    /// Members that have ended.
    pub ended: u32,
    /// Members that are open.
    pub open: u32,
    /// A member that ended without success, if the group fails fast.
    pub failed: Option<u32>,
    /// The exact number of members, counted by number after the record was closed.
    pub members: Option<u32>,
    /// How many numbers below the total have ended. Known once the number of marks reaches the total, because a member
    /// that was deleted by an operator and submitted again may have a mark of each life.
    pub below: Option<u32>,
}

impl GroupState {
    /// Creates the state of a group without members.
    #[must_use]
    pub fn new(record: GroupRecord, version: i32, modified: WallMillis) -> Self {
        Self {
            record,
            version,
            modified,
            parent: None,
            further: Vec::new(),
            join: None,
            finish: None,
            ended: 0,
            open: 0,
            failed: None,
            members: None,
            below: None,
        }
    }

    /// Whether members must be listed by number: to find a failed one, to count them exactly, or because there are as
    /// many marks as members.
    #[must_use]
    pub fn wants_numbers(record: &GroupRecord, ended: u32) -> bool {
        let open = record.stage == crate::group::Stage::Open;
        let complete = record.total.is_some_and(|total| ended >= total);
        open && (record.fail_fast || record.closed || complete)
    }

    /// Returns whether all members have ended.
    pub(super) fn is_complete(&self, total: u32) -> bool {
        // A closed group has exactly the members that were counted, whatever their numbers.
        let ended = if self.record.closed { Some(self.ended) } else { self.below };
        self.open == 0 && ended.is_some_and(|ended| ended >= total)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::group::Stage;
    use crate::name::Kind;

    #[test]
    fn the_members_of_an_open_group_are_listed_by_number_if_their_numbers_matter() {
        let record = GroupRecord::new(Kind::new("sum").unwrap(), uuid::Uuid::nil(), WallMillis(1));
        let of_three = GroupRecord { total: Some(3), ..record.clone() };
        let failing = GroupRecord { fail_fast: true, ..record.clone() };
        let closed = GroupRecord { closed: true, ..record.clone() };
        for (record, ended, wanted) in [
            (&record, 3, false),
            (&failing, 0, true),
            (&closed, 0, true),
            (&of_three, 2, false),
            (&of_three, 3, true),
            (&of_three, 4, true),
        ] {
            assert_eq!(GroupState::wants_numbers(record, ended), wanted, "{record:?}");
            let joining = GroupRecord { stage: Stage::Joining, ..record.clone() };
            assert!(!GroupState::wants_numbers(&joining, ended), "its members have ended");
        }
    }
}
