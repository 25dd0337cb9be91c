//! Sub-jobs: groups that a handler creates, one per kind, whose ends are part of its job's end.
//!
//! The first group is created in one multi with a mark in the job's assignment. So every process that ends the job (its
//! worker, the leader after a loss, a client that cancels it) knows that it must report the end to this group first.
//! A further group is created in one multi that adds its kind to the list in the first one. Each multi checks the job's
//! record, so a closed attempt cannot create a group.
//!
//! **What if a reply is lost?** The first group is read again. Its id is derived from the job's id, and it lists the kinds of the
//! further groups. So the same call, or the next attempt, finds every group that exists, whichever of them it opens first.

use bellwether_core::group::{FirstGroup, GroupError, GroupRecord, Parent};
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
    /// Creates the group of an attempt's sub-jobs of one kind, or finds the one that an earlier call or attempt created. Its id
    /// is derived from the job's id.
    ///
    /// # Errors
    /// The errors of [`Client::group`]; [`GroupError::AttemptClosed`] if the attempt was closed in the meantime;
    /// [`GroupError::TooManyGroups`] if the job has groups of too many other kinds.
    #[doc(hidden)]
    pub async fn sub_group<K: AnyKind>(
        &self,
        attempt: &Attempt,
        group: Group<K>,
    ) -> Result<GroupHandle<K>, Error> {
        let (_, given) = group.record()?;
        let (first, parent) = self.parent(attempt).await?;
        let record = self.stamped(GroupRecord { parent: Some(parent), ..given });
        record.check(&first)?;
        let by = self.by();
        for _ in 0..TRIES {
            // Whatever the outcome of a commit, the next read shows it.
            let Some(node) = self.0.session.read(by, |zk| zk.get(path::group(&first))).await? else {
                let ops = self.make_sub_group(&first, &record, attempt, by).await?;
                self.0.session.commit(by, ops).await?;
                continue;
            };
            self.make_sure_spawned(attempt, by).await?;
            let there = decode(&first, &node)?;
            let extended = there.extended(&record.kind, attempt.finish)?;
            let further = extended.number_of(&record.kind).map(|number| further(&first, number, &record));
            if extended != there {
                let made = further.as_ref().filter(|_| extended.further != there.further);
                if let Some((id, record)) = made {
                    record.check(id)?;
                }
                // A closed attempt is rejected: it has no assignment, or another attempt has.
                self.assignment(attempt, by).await?;
                let made = made.map(|(id, record)| (id, record));
                let first = (&first, node.version, &extended);
                let ops = txn::extend_parent(&attempt.job, attempt.fencing_token, first, made);
                self.0.session.commit(by, ops).await?;
                continue;
            }
            let Some((id, record)) = further else { return self.opened(first, &record, &node).await };
            let node = self.0.session.read(by, |zk| zk.get(path::group(&id))).await?;
            // It was created together with its place in the list: an operator has deleted it.
            let node = node.ok_or_else(|| GroupError::NotFound { group: id.clone() })?;
            return self.opened(id, &record, &node).await;
        }
        Err(Error::Contended { subject: Subject::Group(first), tries: TRIES })
    }

    /// Returns the id of the first group, and the parent as this group has it.
    async fn parent(&self, attempt: &Attempt) -> Result<(GroupId, Parent), Error> {
        let (job, by) = (&attempt.job, self.by());
        self.catch_up(by).await?;
        let node = self.0.session.read(by, |zk| zk.get(path::record(job))).await?;
        let record = match node {
            Some(node) => wire::decode::<JobRecord>(&node.data)
                .map_err(|reason| Error::Unreadable { id: job.clone(), reason })?,
            // A member of an assigned segment gets a record soon; until then there is no assignment that can be marked.
            None => {
                let found = self.unpacked(job, by).await?;
                if found.packed.is_some() {
                    return Err(GroupError::AttemptClosed { job: job.clone() }.into());
                }
                found.record
            }
        };
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
            first: None,
            lane: record.placement.lane,
            outer_lanes,
            membership: record.membership,
            depth,
        };
        Ok((id, parent))
    }

    /// Returns the operations that create the first group together with the mark in the assignment of this attempt.
    async fn make_sub_group(
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
    async fn make_sure_spawned(&self, parent: &Attempt, by: Deadline) -> Result<(), Error> {
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
        let over = || GroupError::AttemptClosed { job: parent.job.clone() };
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

/// Returns the further group with this number and the rules of `record`. The finished job belongs to the first group.
fn further(first: &GroupId, number: u32, record: &GroupRecord) -> (GroupId, GroupRecord) {
    let of_first = FirstGroup { group: first.clone(), number };
    let parent =
        record.parent.clone().map(|parent| Parent { finish: false, first: Some(of_first), ..parent });
    (first.further(number), GroupRecord { parent, ..record.clone() })
}
