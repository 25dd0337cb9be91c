//! Sub-jobs: a group that a handler creates, whose end is part of its job's end.
//!
//! The group is created in one multi with a mark in the job's assignment. So every process that ends the job (its
//! worker, the leader after a loss, a client that cancels it) knows that it must report the end to this group first.
//! A closed attempt cannot create a group. The next attempt finds the earlier group, because its id is derived from
//! the job's id.

use bellwether_core::group::{GroupError, GroupRecord, Parent};
use bellwether_core::job::{Assignment, JobRecord};
use bellwether_core::name::{GroupId, JobId, Kind, WorkerId};
use bellwether_core::txn::{self, Op};
use bellwether_core::{path, wire};

use super::super::Client;
use super::super::error::{Error, Subject};
use super::super::job::AnyKind;
use super::super::session::Deadline;
use super::{Group, GroupHandle, TRIES, decode};

/// The running attempt of a job that has sub-jobs.
#[doc(hidden)]
#[derive(Debug, Clone)]
pub struct Attempt {
    /// The job.
    pub job: JobId,
    /// Its kind.
    pub kind: Kind,
    /// Its generation.
    pub generation: u32,
    /// The number of the attempt in its generation.
    pub attempt: u32,
    /// The version of the job's record.
    pub fencing_token: i32,
    /// The worker that runs it.
    pub worker: WorkerId,
    /// Whether the job's finished handler runs after the join.
    pub finish: bool,
}

impl Client {
    /// Creates the group of an attempt's sub-jobs, or finds the one that an earlier attempt created. Its id is
    /// derived from the job's id.
    ///
    /// # Errors
    /// Those of [`Client::group`]; [`GroupError::AttemptOver`] if the attempt was closed in the meantime.
    #[doc(hidden)]
    pub async fn sub_group<K: AnyKind>(
        &self,
        attempt: &Attempt,
        group: Group<K>,
    ) -> Result<GroupHandle<K>, Error> {
        let (id, parent) = self.parent(attempt).await?;
        let record = GroupRecord { parent: Some(parent), ..group.record };
        self.open_group(id, record, Some(attempt)).await
    }

    /// Returns the group's id and its parent.
    async fn parent(&self, attempt: &Attempt) -> Result<(GroupId, Parent), Error> {
        let (job, by) = (&attempt.job, self.by());
        self.catch_up(by).await?;
        let node = self.0.session.read(by, |zk| zk.get(path::record(job))).await?;
        let node = node.ok_or_else(|| Error::NotFound(job.clone()))?;
        let record = wire::decode::<JobRecord>(&node.data)
            .map_err(|reason| Error::Unreadable { id: job.clone(), reason })?;
        let (mut depth, mut outer_lanes) = (0, Vec::new());
        if let Some(outer) = &record.membership {
            let node = self.0.session.read(by, |zk| zk.get(path::group(&outer.group))).await?;
            let above = node.map(|node| decode(&outer.group, &node)).transpose()?;
            let above = above.and_then(|above| above.parent);
            depth = above.as_ref().map_or(0, |above| above.depth) + 1;
            // The jobs around a member that was retried after its group had advanced do not wait for it.
            let above = above.filter(|_| outer.counted);
            outer_lanes = above.iter().flat_map(Parent::lanes).cloned().collect();
        }
        let id = GroupId::of_sub_jobs(job, &record);
        let parent = Parent {
            job: job.clone(),
            kind: attempt.kind.clone(),
            generation: attempt.generation,
            finish: attempt.finish,
            lane: record.placement.lane,
            outer_lanes,
            membership: record.membership,
            depth,
        };
        Ok((id, parent))
    }

    /// Returns the operations that create the group together with the mark in the assignment of this attempt.
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

    /// Ensures the mark of an existing group: it was created by this attempt with a lost reply, or by an earlier
    /// attempt. Its mark is in the record or in the assignment, unless an operator removed it.
    pub(super) async fn make_sure_spawned(&self, parent: &Attempt, by: Deadline) -> Result<(), Error> {
        let Attempt { job, worker, fencing_token, .. } = parent;
        for _ in 0..TRIES {
            let node = self.0.session.read(by, |zk| zk.get(path::record(job))).await?;
            let spawned = node.and_then(|node| wire::decode::<JobRecord>(&node.data).ok());
            if spawned.is_some_and(|record| record.spawned) {
                return Ok(());
            }
            let (version, assignment) = self.assignment(parent, by).await?;
            if assignment.spawned {
                return Ok(());
            }
            let ops = txn::mark_spawned(job, *fencing_token, *worker, version, &assignment);
            // Whatever the outcome, the next read shows it.
            self.0.session.commit(by, ops).await?;
        }
        Err(Error::Contended { subject: Subject::Job(job.clone()), tries: TRIES })
    }

    /// Reads the assignment of exactly this attempt.
    async fn assignment(&self, parent: &Attempt, by: Deadline) -> Result<(i32, Assignment), Error> {
        let path = path::assignment(parent.worker, &parent.job);
        let over = || GroupError::AttemptOver { job: parent.job.clone() };
        let node = self.0.session.read(by, |zk| zk.get(path.clone())).await?.ok_or_else(over)?;
        let assignment = wire::decode::<Assignment>(&node.data)
            .map_err(|reason| Error::Unreadable { id: parent.job.clone(), reason })?;
        // The transactions also check the record's version.
        if assignment.attempt != parent.attempt {
            return Err(over().into());
        }
        Ok((node.version, assignment))
    }
}
