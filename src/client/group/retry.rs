//! A retry of a job that has a part in a group.
//!
//! While the group still waits for the job's part (a member's while it is open, a join's while it joins), the part comes
//! back: its mark goes and its place is made anew, and the group's record is set so that nobody who counted the mark
//! takes the group on. Otherwise the job runs for itself, and the group does not hear of its end.

use bellwether_core::group::{End, GroupError, GroupRecord, Stage};
use bellwether_core::job::{JobRecord, Membership, Role};
use bellwether_core::name::{GroupId, JobId};
use bellwether_core::path;
use bellwether_core::txn::{self, Op};

use super::super::Client;
use super::super::error::Error;
use super::super::link::Deadline;
use super::decode;

impl Client {
    /// What the retry of this terminal job must do for its group; the record's membership is set accordingly.
    ///
    /// # Errors
    /// [`GroupError::Spawned`] for a member whose sub-jobs are not done: their end is its own.
    pub(in crate::client) async fn rejoin(
        &self,
        id: &JobId,
        record: &mut JobRecord,
        by: Deadline,
    ) -> Result<Vec<Op>, Error> {
        let end = End::of(&record.state);
        if record.spawned {
            let group = GroupId::of_sub_jobs(id, record);
            let there = self.read_group(&group, by).await?;
            if there.is_some_and(|(there, _)| !matches!(there.stage, Stage::Done { .. })) {
                return Err(GroupError::Spawned { job: id.clone(), group }.into());
            }
        }
        let (Some(membership), Some(end)) = (record.membership.as_mut().filter(|part| part.counted), end)
        else {
            return Ok(Vec::new());
        };
        match self.read_group(&membership.group, by).await? {
            Some((group, version)) if waits(&group, membership) => {
                Ok(txn::rejoin_group(membership, end, version, &group))
            }
            Some(_) | None => {
                membership.counted = false;
                Ok(Vec::new())
            }
        }
    }

    async fn read_group(&self, id: &GroupId, by: Deadline) -> Result<Option<(GroupRecord, i32)>, Error> {
        let node = self.0.link.read(by, |zk| zk.get(path::group(id))).await?;
        node.map(|node| Ok((decode(id, &node)?, node.version))).transpose()
    }
}

/// Whether the group still waits for what this job is to it.
fn waits(group: &GroupRecord, part: &Membership) -> bool {
    match (group.stage, part.role) {
        (Stage::Open, Role::Member(_)) | (Stage::Joining, Role::Join) | (Stage::Finishing, Role::Finish) => {
            true
        }
        (Stage::Open | Stage::Joining | Stage::Finishing | Stage::Done { .. }, _) => false,
    }
}
