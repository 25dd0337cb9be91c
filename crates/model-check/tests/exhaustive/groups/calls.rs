//! The calls of clients and of the parent's handler: members, a seal, the group of sub-jobs.
//!
//! A call reads the group, checks with the record whether it is allowed (`GroupRecord::admits`, `sealed`), and sends
//! its transaction. After a rejection or a lost reply it reads the current state, like `src/client/submit` and
//! `src/client/group`.

use bellwether_core::group::GroupRecord;
use bellwether_core::job::identity::{self, Comparison, IfExists};
use bellwether_core::job::{Assignment, JobRecord};
use bellwether_core::name::GroupId;
use bellwether_core::outcome::Outcome;
use bellwether_core::path;
use bellwether_core::txn::{self, Op};

use super::model::Bounds;
use super::stage::{self, MEMBERS, member, worker};
use crate::zookeeper::ZooKeeper;

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum What {
    Member(GroupId, u32),
    Seal(GroupId),
    /// Create the group of sub-jobs, and mark it in the parent's assignment.
    Spawn,
    /// Create the further group, and list it in the first one.
    Extend,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Phase {
    /// To be made, for the first time or again.
    Not,
    Sent(Vec<Op>),
    /// The reply was lost.
    Unknown,
    Accepted,
    Refused,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Call {
    pub(crate) what: What,
    pub(crate) phase: Phase,
}

impl Call {
    pub(crate) fn new(what: What) -> Self {
        Self { what, phase: Phase::Not }
    }

    /// Returns whether it can be made now: a handler submits members once it has their group.
    pub(crate) fn can_be_made(&self, zk: &ZooKeeper) -> bool {
        match &self.what {
            What::Member(group, _) | What::Seal(group) => zk.znodes.contains_key(&path::group(group)),
            What::Spawn => true,
            What::Extend => zk.znodes.contains_key(&path::group(&stage::inner())),
        }
    }

    /// Reads, and sends the transaction if there is one.
    pub(crate) fn make(&mut self, bounds: &Bounds, zk: &ZooKeeper) {
        let ops = match &self.what {
            What::Member(group, number) => {
                let (record, version) = read(zk, group);
                record.admits(group, *number, None).ok().map(|()| {
                    let submit = txn::submit(&member(group, *number), &stage::job(group, *number), 0);
                    [submit, txn::join_group(group, version, *number).to_vec()].concat()
                })
            }
            What::Seal(group) => {
                let (record, version) = read(zk, group);
                record.sealed(group, MEMBERS).ok().map(|sealed| txn::set_group(group, version, &sealed))
            }
            What::Spawn => spawn(bounds, zk),
            What::Extend => extend(zk),
        };
        self.phase = match ops {
            Some(ops) => Phase::Sent(ops),
            // The group does not admit it, but an earlier request may have been applied.
            None if self.is_done(zk) => Phase::Accepted,
            None => Phase::Refused,
        };
    }

    pub(crate) fn answered(&mut self, zk: &ZooKeeper, outcome: &Outcome<()>) {
        self.phase = match outcome {
            Outcome::Applied(()) => Phase::Accepted,
            Outcome::Unknown => Phase::Unknown,
            Outcome::Rejected(_) if self.is_done(zk) => Phase::Accepted,
            Outcome::Rejected(_) => Phase::Not,
        };
    }

    /// Reads back after a lost reply.
    pub(crate) fn look_back(&mut self, zk: &ZooKeeper) {
        self.phase = if self.is_done(zk) { Phase::Accepted } else { Phase::Not };
    }

    fn is_done(&self, zk: &ZooKeeper) -> bool {
        match &self.what {
            What::Member(group, number) => {
                let there = zk.value::<JobRecord>(&path::record(&member(group, *number)));
                let ours = stage::job(group, *number);
                let comparison = there.map(|(there, _)| identity::compare(&there, &ours, IfExists::Same));
                matches!(comparison, Some(Comparison::Accepted(_)))
            }
            What::Seal(group) => read(zk, group).0.total == Some(MEMBERS),
            What::Spawn => zk.znodes.contains_key(&path::group(&stage::inner())),
            What::Extend => zk.znodes.contains_key(&path::group(&stage::further())),
        }
    }
}

fn read(zk: &ZooKeeper, group: &GroupId) -> (GroupRecord, i32) {
    zk.value(&path::group(group)).expect("groups are not removed in this model")
}

/// Returns the transaction, as long as the parent's attempt is assigned.
fn spawn(bounds: &Bounds, zk: &ZooKeeper) -> Option<Vec<Op>> {
    let parent = member(&stage::group(), 0);
    let (_, token) = zk.value::<JobRecord>(&path::record(&parent))?;
    let (assignment, version) = zk.value::<Assignment>(&path::assignment(worker(), &parent))?;
    let (id, record) = (stage::inner(), stage::sub_group(bounds));
    Some(txn::make_sub_group(&id, &record, &parent, token, worker(), version, &assignment))
}

/// The same for the further group.
fn extend(zk: &ZooKeeper) -> Option<Vec<Op>> {
    let parent = member(&stage::group(), 0);
    let (_, token) = zk.value::<JobRecord>(&path::record(&parent))?;
    zk.value::<Assignment>(&path::assignment(worker(), &parent))?;
    let (first, (there, version)) = (stage::inner(), read(zk, &stage::inner()));
    let (id, record) = (stage::further(), stage::further_group());
    let extended = there.extended(&record.kind, false).expect("two groups are few");
    (extended != there)
        .then(|| txn::extend_parent(&parent, token, (&first, version, &extended), Some((&id, &record))))
}
