//! Compares the results of joins and finished handlers with the transactions.
//!
//! The history checker decides whether a join *runs* after its members (S7). This module checks its input: a join must
//! get all members of a group that was not stopped, each with its end, although the client's server may be stale; a
//! finished handler must get the ends of its parent and of the join.

use std::collections::{BTreeMap, BTreeSet};

use bellwether_core::group::{GroupRecord, Mark, Stage};
use bellwether_core::job::{JobRecord, JobState, Membership, Payload, Role, Verdict};
use bellwether_core::name::GroupId;
use bellwether_core::path::{GroupPlace, Place};
use bellwether_core::{path, wire};
use bellwether_sim::history::TxnOp;

use crate::groups::{Finished, Joined};

/// The state of all groups, from the committed transactions.
#[derive(Debug, Default)]
pub(crate) struct Groups {
    records: BTreeMap<GroupId, GroupRecord>,
    /// Groups with a member that was retried after the group stopped waiting for it. The member may be open while the
    /// join runs.
    retried: BTreeSet<GroupId>,
    pub(crate) made: u64,
    pub(crate) stopped: u64,
    pub(crate) done: u64,
    pub(crate) removed: u64,
    /// Number of members that were retried and are counted again.
    pub(crate) rejoined: u64,
    pub(crate) joins: u64,
    pub(crate) finishes: u64,
    pub(crate) violations: Vec<String>,
}

impl Groups {
    pub(crate) fn note(&mut self, op: &TxnOp) {
        let (path, data) = match op {
            TxnOp::Create { path, data, .. } | TxnOp::Set { path, data, .. } => (path, &data.0),
            TxnOp::Delete { path } => return self.deleted(path),
            TxnOp::Check { .. } | TxnOp::CloseSession => return,
        };
        if let Place::Group(GroupPlace::Record(id)) = path::parse(path) {
            self.group(id, data);
        } else if path.starts_with("/jobs/")
            && let Ok(record) = wire::decode::<JobRecord>(data)
            && let Some(part) = &record.membership
        {
            self.job(part, &record.state);
        }
    }

    fn group(&mut self, id: GroupId, data: &[u8]) {
        let Ok(after) = wire::decode::<GroupRecord>(data) else { return };
        let before = self.records.get(&id).filter(|before| before.token == after.token);
        let is_done = |group: &GroupRecord| matches!(group.stage, Stage::Done { .. });
        self.made += u64::from(before.is_none());
        self.stopped +=
            u64::from(after.stopped.is_some() && before.is_none_or(|before| before.stopped.is_none()));
        self.done += u64::from(is_done(&after) && !before.is_some_and(is_done));
        if before.is_none() {
            self.retried.remove(&id);
        }
        self.records.insert(id, after);
    }

    fn deleted(&mut self, path: &str) {
        let Place::Group(place) = path::parse(path) else { return };
        match place {
            GroupPlace::Record(id) => self.removed += u64::from(self.records.remove(&id).is_some()),
            // A mark of an open group is deleted by a retry. Other marks are deleted with their group.
            GroupPlace::Mark(id, Mark::Member(_), _) => {
                let open = self.records.get(&id).is_some_and(|group| group.stage == Stage::Open);
                self.rejoined += u64::from(open);
            }
            GroupPlace::Mark(_, Mark::Parent | Mark::Join | Mark::Finish | Mark::Further(_), _)
            | GroupPlace::Member(..) => {}
        }
    }

    fn job(&mut self, part: &Membership, state: &JobState) {
        let Membership { group, role, counted } = part;
        let result = match state {
            JobState::Terminal { verdict: Verdict::Succeeded(result), .. } => Some(result),
            JobState::Terminal { verdict: Verdict::Cancelled | Verdict::Dead, .. }
            | JobState::Open { .. } => None,
        };
        match (role, result) {
            (Role::Member(_), _) if !counted => {
                self.retried.insert(group.clone());
            }
            (Role::Join, Some(result)) => self.joined(group, result),
            (Role::Finish, Some(result)) => self.finished(group, result),
            (Role::Member(_) | Role::Join | Role::Finish, _) => {}
        }
    }

    fn joined(&mut self, id: &GroupId, result: &Payload) {
        self.joins += 1;
        let Some(group) = self.records.get(id) else { return };
        let Ok(joined) = serde_json::from_slice::<Joined>(result.bytes()) else {
            return self.violations.push(format!("S7: the join of {id} has an unreadable result"));
        };
        let Joined { ended, open, unreadable } = joined;
        let all = group.total == Some(ended + open);
        let wrong = !all || unreadable > 0 || (open > 0 && !self.retried.contains(id));
        if wrong && group.stopped.is_none() {
            self.violations
                .push(format!("S7: the join of {id} with {:?} members got {joined:?}", group.total));
        }
    }

    fn finished(&mut self, id: &GroupId, result: &Payload) {
        self.finishes += 1;
        let Some(group) = self.records.get(id) else { return };
        match serde_json::from_slice(result.bytes()) {
            Ok(Finished { parent_over: true, join_over }) if join_over || !group.join => {}
            found => self.violations.push(format!("S7: the finished handler of {id} got {found:?}")),
        }
    }
}
