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
    /// [`GroupError::Spawned`] for a member whose sub-jobs are not done: it has not ended before they have.
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
        let node = self.0.session.read(by, |zk| zk.get(path::group(id))).await?;
        node.map(|node| Ok((decode(id, &node)?, node.version))).transpose()
    }
}

/// Whether the group still waits for this job's part.
fn waits(group: &GroupRecord, part: &Membership) -> bool {
    match (group.stage, part.role) {
        (Stage::Open, Role::Member(_)) | (Stage::Joining, Role::Join) | (Stage::Finishing, Role::Finish) => {
            true
        }
        (Stage::Open | Stage::Joining | Stage::Finishing | Stage::Done { .. }, _) => false,
    }
}
