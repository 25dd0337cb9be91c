//! Retry of a job that belongs to a group.
//!
//! While the group still waits for the job's part (a member while it is open, a join while it joins), the part
//! returns: its mark is deleted and its place is created again. The group's record is set too, so a leader that has
//! counted the mark cannot advance the group. Otherwise the job runs on its own, and its end does not affect the
//! group.

use bellwether_core::group::{End, GroupError, GroupRecord, Stage};
use bellwether_core::job::{JobRecord, Membership, Role};
use bellwether_core::name::{GroupId, JobId};
use bellwether_core::path;
use bellwether_core::txn::{self, Op};

use super::super::Client;
use super::super::error::Error;
use super::super::session::Deadline;
use super::decode;

impl Client {
    /// Returns the operations that the retry of this ended job adds for its group, and sets the record's membership
    /// accordingly.
    ///
    /// # Errors
    /// [`GroupError::Spawned`] for a job whose sub-jobs are not done: it is in progress until they have ended.
    pub(in crate::client) async fn rejoin(
        &self,
        id: &JobId,
        record: &mut JobRecord,
        by: Deadline,
    ) -> Result<Vec<Op>, Error> {
        let end = End::of(&record.state);
        let mut ops = Vec::new();
        if record.spawned {
            let group = GroupId::of_sub_jobs(id, record);
            match self.read_group(&group, by).await? {
                Some((there, _)) if !there.is_done() => {
                    return Err(GroupError::Spawned { job: id.clone(), group }.into());
                }
                Some(_) => {}
                None => ops.extend(self.leftover_turn(id, record, by).await?),
            }
        }
        let (Some(membership), Some(end)) = (record.membership.as_mut().filter(|part| part.counted), end)
        else {
            return Ok(ops);
        };
        match self.read_group(&membership.group, by).await? {
            Some((group, version)) if waits(&group, membership) => {
                ops.extend(txn::rejoin_group(membership, end, version, &group));
            }
            Some(_) | None => membership.counted = false,
        }
        Ok(ops)
    }

    /// Returns the deletion of the turn that a parent keeps because an operator has deleted the group of its sub-jobs. The
    /// new generation has another turn, which would come after it.
    async fn leftover_turn(&self, id: &JobId, record: &JobRecord, by: Deadline) -> Result<Option<Op>, Error> {
        let Some(turn) = record.turn() else { return Ok(None) };
        let path = path::turn(&turn, id);
        let node = self.0.session.read(by, |zk| zk.get(path.clone())).await?;
        Ok(node.map(|node| Op::Delete { path, version: Some(node.version) }))
    }

    async fn read_group(&self, id: &GroupId, by: Deadline) -> Result<Option<(GroupRecord, i32)>, Error> {
        let node = self.0.session.read(by, |zk| zk.get(path::group(id))).await?;
        node.map(|node| Ok((decode(id, &node)?, node.version))).transpose()
    }
}

/// Whether the group still waits for this job's part.
pub(super) fn waits(group: &GroupRecord, part: &Membership) -> bool {
    match (group.stage, part.role) {
        (Stage::Open, Role::Member(_)) | (Stage::Joining, Role::Join) | (Stage::Finishing, Role::Finish) => {
            true
        }
        (Stage::Open | Stage::Joining | Stage::Finishing | Stage::Done { .. }, _) => false,
    }
}
