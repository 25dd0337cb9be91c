//! Sub-jobs: a group that a handler makes, whose end is part of its job's end.
//!
//! The group is made in one multi with a mark in the job's assignment, so that whoever ends the job (its worker, the
//! leader after a loss, a client that cancels it) knows that its end is told to this group first. An attempt that was
//! closed meanwhile makes no group. The next attempt finds the group of the one before, as its id is made of the job's.

use bellwether_core::group::{GroupError, GroupRecord, Parent};
use bellwether_core::job::{Assignment, JobRecord};
use bellwether_core::name::{GroupId, JobId, Kind, WorkerId};
use bellwether_core::txn::{self, Op};
use bellwether_core::{path, wire};

use super::super::Client;
use super::super::error::Error;
use super::super::link::Deadline;
use super::{Group, GroupHandle, TRIES, decode};

/// The running attempt of a job that has sub-jobs.
#[doc(hidden)]
#[derive(Debug, Clone)]
pub struct Attempt {
    /// Which job.
    pub job: JobId,
    /// Its kind.
    pub kind: Kind,
    /// Its generation.
    pub generation: u32,
    /// Which attempt of the generation.
    pub attempt: u32,
    /// The version of the job's record.
    pub fencing_token: i32,
    /// The worker that runs it.
    pub worker: WorkerId,
    /// Whether the job's finished handler runs after the join.
    pub finish: bool,
}

impl Client {
    /// Makes the group of an attempt's sub-jobs, or finds the one that an earlier attempt made. Its id is made of the job's.
    ///
    /// # Errors
    /// As [`Client::group`]; [`GroupError::AttemptOver`] when the attempt was closed meanwhile.
    #[doc(hidden)]
    pub async fn sub_group(&self, attempt: &Attempt, group: Group) -> Result<GroupHandle, Error> {
        let (id, parent) = self.parent(attempt).await?;
        let record = GroupRecord { parent: Some(parent), ..group.record };
        self.open_group(id, record, Some(attempt)).await
    }

    /// The group's id, and what it says of its parent.
    async fn parent(&self, attempt: &Attempt) -> Result<(GroupId, Parent), Error> {
        let (job, by) = (&attempt.job, self.by());
        self.catch_up(by).await?;
        let node = self.0.link.read(by, |zk| zk.get(path::record(job))).await?;
        let node = node.ok_or_else(|| Error::NotFound(job.clone()))?;
        let record = wire::decode::<JobRecord>(&node.data)
            .map_err(|reason| Error::Unreadable { id: job.clone(), reason })?;
        let depth = match &record.membership {
            None => 0,
            Some(outer) => {
                let node = self.0.link.read(by, |zk| zk.get(path::group(&outer.group))).await?;
                let outer = node.map(|node| decode(&outer.group, &node)).transpose()?;
                outer.and_then(|outer| outer.parent).map_or(0, |parent| parent.depth) + 1
            }
        };
        let id = GroupId::of_sub_jobs(job, &record);
        let parent = Parent {
            job: job.clone(),
            kind: attempt.kind.clone(),
            generation: attempt.generation,
            finish: attempt.finish,
            membership: record.membership,
            depth,
        };
        Ok((id, parent))
    }

    /// Makes the group together with the mark in the assignment of this very attempt.
    pub(super) async fn make_sub_group(
        &self,
        id: &GroupId,
        record: &GroupRecord,
        parent: &Attempt,
        by: Deadline,
    ) -> Result<Vec<Op>, Error> {
        let (version, assignment) = self.assignment(parent, by).await?;
        let Attempt { job, worker, fencing_token, .. } = parent;
        Ok(txn::make_sub_group(id, record, job, *fencing_token, *worker, version, &assignment))
    }

    /// The group was there: made by this attempt, whose reply was lost, or by an earlier one. Its mark stands in the
    /// record or in the assignment, unless a hand took it away.
    pub(super) async fn make_sure_spawned(&self, parent: &Attempt, by: Deadline) -> Result<(), Error> {
        let Attempt { job, worker, fencing_token, .. } = parent;
        for _ in 0..TRIES {
            let node = self.0.link.read(by, |zk| zk.get(path::record(job))).await?;
            let spawned = node.and_then(|node| wire::decode::<JobRecord>(&node.data).ok());
            if spawned.is_some_and(|record| record.spawned) {
                return Ok(());
            }
            let (version, assignment) = self.assignment(parent, by).await?;
            if assignment.spawned {
                return Ok(());
            }
            let ops = txn::mark_spawned(job, *fencing_token, *worker, version, &assignment);
            // Whatever the answer, the next look tells.
            self.0.link.commit(by, ops).await?;
        }
        Err(Error::Contended { id: job.clone(), tries: TRIES })
    }

    /// The assignment of this very attempt.
    async fn assignment(&self, parent: &Attempt, by: Deadline) -> Result<(i32, Assignment), Error> {
        let path = path::assignment(parent.worker, &parent.job);
        let over = || GroupError::AttemptOver { job: parent.job.clone() };
        let node = self.0.link.read(by, |zk| zk.get(path.clone())).await?.ok_or_else(over)?;
        let assignment = wire::decode::<Assignment>(&node.data)
            .map_err(|reason| Error::Unreadable { id: parent.job.clone(), reason })?;
        if assignment.attempt != parent.attempt {
            return Err(over().into());
        }
        Ok((node.version, assignment))
    }
}
