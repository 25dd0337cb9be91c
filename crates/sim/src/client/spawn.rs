//! Sub-jobs of a running job: as `src/client/group/spawn.rs`. The node's client shares the session of its worker here; the
//! product's has one of its own.

use std::cell::Cell;
use std::rc::Rc;

use bellwether_core::group::{self, GroupRecord};
use bellwether_core::job::{Assignment, Membership, Role};
use bellwether_core::name::{GroupId, JobId, Kind, WorkerId};
use bellwether_core::path;
use bellwether_core::txn::{self, Op};
use bellwether_core::wire;
use uuid::Uuid;

use super::{Deadline, Shell, TooLate, Wish};

/// How often an assignment that changes under our hands is tried.
const TRIES: u32 = 16;

/// The running attempt that has sub-jobs.
#[derive(Debug, Clone)]
pub(crate) struct Parent {
    pub(crate) job: JobId,
    pub(crate) kind: Kind,
    pub(crate) generation: u32,
    pub(crate) attempt: u32,
    pub(crate) token: i32,
    pub(crate) worker: WorkerId,
}

/// The sub-jobs that a handler submits.
pub(crate) struct Spawned {
    pub(crate) parent: Parent,
    /// Its kind, its rules and its total, if that is said.
    pub(crate) group: GroupRecord,
    /// Whether the parent's finished handler runs after the join.
    pub(crate) finish: bool,
    /// Members by their number, but for their ids and memberships.
    pub(crate) members: Vec<Wish>,
    /// Set back when the run is over: then its future is dropped, unless it takes no notice.
    pub(crate) runs: Rc<Cell<bool>>,
}

impl Shell {
    /// Submits a job's sub-jobs; whether all were accepted.
    pub(crate) async fn spawn(&self, spawned: Spawned) -> bool {
        self.try_spawn(&spawned).await.unwrap_or(false)
    }

    async fn try_spawn(&self, spawned: &Spawned) -> Result<bool, TooLate> {
        let Spawned { parent, group, finish, members, runs } = spawned;
        let by = self.by();
        let Some((record, _)) = self.record(by, &parent.job).await? else { return Ok(false) };
        let depth = match &record.membership {
            None => 0,
            Some(outer) => {
                let outer = self.group(by, &outer.group).await?;
                outer.and_then(|(outer, _)| outer.parent).map_or(0, |parent| parent.depth) + 1
            }
        };
        let id = GroupId::of_sub_jobs(&parent.job, &record);
        let whose = group::Parent {
            job: parent.job.clone(),
            kind: parent.kind.clone(),
            generation: parent.generation,
            finish: *finish,
            membership: record.membership,
            depth,
        };
        let (token, created_at) = (Uuid::from_u128(self.random()), self.wall());
        let group = GroupRecord { parent: Some(whose), token, created_at, ..group.clone() };
        let kind = group.kind.clone();
        if !runs.get() {
            return Ok(false);
        }
        let Some(known) = self.open_group(&id, group, Some(parent)).await? else { return Ok(false) };
        for (number, wish) in (0..).zip(members) {
            if !runs.get() {
                return Ok(false);
            }
            let mut wish = wish.clone();
            let Ok(member) = JobId::member(&kind, &id, number) else { return Ok(false) };
            wish.id = member;
            let role = Role::Member(number);
            wish.record.membership = Some(Membership { group: id.clone(), role, counted: true });
            if !self.submit_to(Some(&known), vec![wish]).await {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Makes the group together with the mark in the assignment of this very attempt; `None` when that is over.
    pub(super) async fn make_sub_group(
        &self,
        by: Deadline,
        id: &GroupId,
        record: &GroupRecord,
        parent: &Parent,
    ) -> Result<Option<Vec<Op>>, TooLate> {
        let Some((assignment, version)) = self.assignment(by, parent).await? else { return Ok(None) };
        let Parent { job, token, worker, .. } = parent;
        Ok(Some(txn::make_sub_group(id, record, job, *token, *worker, version, &assignment)))
    }

    /// The group was there: its mark stands in the record or in the assignment. `false` when the attempt is over.
    pub(super) async fn make_sure_spawned(&self, by: Deadline, parent: &Parent) -> Result<bool, TooLate> {
        for _ in 0..TRIES {
            let record = self.record(by, &parent.job).await?;
            if record.is_some_and(|(record, _)| record.spawned) {
                return Ok(true);
            }
            let Some((assignment, version)) = self.assignment(by, parent).await? else { return Ok(false) };
            if assignment.spawned {
                return Ok(true);
            }
            let Parent { job, token, worker, .. } = parent;
            self.commit(by, &txn::mark_spawned(job, *token, *worker, version, &assignment)).await?;
        }
        Ok(false)
    }

    /// The assignment of this very attempt, and its version.
    async fn assignment(&self, by: Deadline, parent: &Parent) -> Result<Option<(Assignment, i32)>, TooLate> {
        let znode = self.znode(by, path::assignment(parent.worker, &parent.job)).await?;
        let read =
            znode.and_then(|znode| Some((wire::decode::<Assignment>(&znode.data).ok()?, znode.version)));
        Ok(read.filter(|(assignment, _)| assignment.attempt == parent.attempt))
    }
}
