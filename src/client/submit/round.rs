//! One multi of submissions, and the outcome of each.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use bellwether_core::budget::MAX_READ_BATCH;
use bellwether_core::group::GroupError;
use bellwether_core::job::JobRecord;
use bellwether_core::metric::UNKNOWN_OUTCOMES_RESOLVED;
use bellwether_core::name::GroupId;
use bellwether_core::outcome::{Outcome, Reason, Rejection};
use bellwether_core::path;
use bellwether_core::txn::{self, Batch, Locus, Subject};
use bellwether_core::wire;
use bellwether_zk::{Node, ReadError, ReadResult};
use futures::future::try_join;
use metrics::counter;

use super::super::error::{SubmitError, Unavailable};
use super::super::group::Entrant;
use super::super::runtime::Zk;
use super::super::session::Session;
use super::Submission;
use super::members;
use super::minutes::{Full, Minutes};
use super::occupancy::Occupancy;
use super::parts::Parts;
use bellwether_core::job::identity::{self, Accepted, Comparison};

/// Limit of rejections that a read cannot explain. They mean that another process creates and deletes the same znode
/// repeatedly; there is no legitimate use of a job id for that.
const MAX_UNEXPLAINED: u32 = 5;

/// Capacity of the buckets and minutes that submissions go to, and the parts of their slots.
#[derive(Debug, Default)]
pub(super) struct Room {
    buckets: Occupancy,
    minutes: Minutes,
    parts: Parts,
}

impl Room {
    async fn refresh(&self, session: &Session, zk: &Zk, jobs: &[Submission]) -> ReadResult<()> {
        let minutes = jobs.iter().filter_map(|job| Some(job.record.delay()?.minute)).collect();
        let now = session.now();
        let buckets = self.buckets.refresh(zk, now, jobs.iter().map(|job| &job.id));
        try_join(buckets, self.minutes.refresh(zk, now, minutes)).await?;
        Ok(())
    }

    /// Takes the places of a job, or returns why it cannot. A reopened job keeps the place of its record.
    fn take(&self, job: &Submission) -> Result<(), SubmitError> {
        let id = || job.id.clone();
        if let Some(delay) = job.record.delay() {
            self.minutes.take(delay.minute).map_err(|full| match full {
                Full::Minute(entries) => SubmitError::MinuteFull { id: id(), entries },
                Full::Minutes(minutes) => SubmitError::TooManyMinutes { id: id(), minutes },
            })?;
        }
        if job.reopens.is_none() {
            self.buckets.take(&job.id).map_err(|entries| SubmitError::Overloaded { id: id(), entries })?;
        }
        Ok(())
    }
}

/// Sends these jobs and answers those that are decided. Returns the jobs to send again.
pub(super) async fn round(session: Session, room: Arc<Room>, jobs: Vec<Submission>) -> Vec<Submission> {
    let zk = match session.usable().await {
        Ok(zk) => zk,
        Err(reason) => return end(jobs, &reason),
    };
    match room.refresh(&session, &zk, &jobs).await {
        Ok(()) => {}
        Err(ReadError::Disconnected) => return jobs,
        Err(ReadError::Refused(reason)) => return refuse(jobs, &reason),
    }
    let jobs = match members::not_parents(&zk, jobs).await {
        Ok(jobs) => jobs,
        Err(jobs) => return jobs,
    };
    let (batch, mut again, unwelcome) = gather(&room, jobs);
    again.append(&mut members::look_up(&zk, unwelcome).await);
    if batch.is_empty() {
        return again;
    }
    let (batch, outcome) = zk.commit_batch(batch).await;
    let mut back = match outcome {
        Outcome::Applied(()) => {
            submissions(batch).into_iter().for_each(Submission::made);
            Vec::new()
        }
        Outcome::Rejected(rejection) => rejected(&zk, batch, rejection).await,
        Outcome::Unknown => resolve(&session, submissions(batch)).await,
    };
    back.append(&mut again);
    back
}

/// Fills a batch with the jobs that a caller waits for and that have capacity. Returned for later are jobs that do
/// not fit its size, a second job with the same id (it would make the multi reject itself), and the jobs behind such
/// a job in its lane.
///
/// Members that their groups do not accept are returned separately: they may exist already.
fn gather(
    room: &Room,
    jobs: Vec<Submission>,
) -> (Batch<Submission>, Vec<Submission>, Vec<(Submission, GroupError)>) {
    let (mut batch, mut left, mut unwelcome) = (Batch::new(Vec::new()), Vec::new(), Vec::new());
    let mut ids = HashSet::new();
    let mut blocked = BTreeSet::new();
    for mut job in jobs {
        // No copy of it is in flight, so dropping it ends it.
        if !job.is_waited_for() {
            continue;
        }
        let lane = job.record.placement.lane.clone();
        if !ids.insert(job.id.clone()) || lane.as_ref().is_some_and(|lane| blocked.contains(lane)) {
            blocked.extend(lane);
            left.push(job);
            continue;
        }
        let joins = match job.entrant.as_ref().map(|entrant: &Entrant| entrant.ops(lane.as_ref())).transpose()
        {
            Ok(joins) => joins,
            Err(why) => {
                unwelcome.push((job, why));
                continue;
            }
        };
        // If a first copy may still be applied, the job cannot be reported as not sent.
        if let Err(full) = room.take(&job)
            && !job.maybe
        {
            job.settle(Err(full));
            continue;
        }
        if job.reopens.is_none() {
            job.record.part = room.parts.choose(&job.record);
        }
        let index = u32::try_from(batch.len()).expect("a multi has few operations");
        let mut ops = match job.reopens {
            Some(version) => txn::reopen(&job.id, version, &job.record, index),
            None => txn::submit(&job.id, &job.record, index),
        };
        ops.extend(joins.into_iter().flatten());
        // Last: from here on the job counts as sent.
        if !job.gate.send() {
            continue;
        }
        if let Err((job, _)) = batch.push(job, ops) {
            job.unsent();
            blocked.extend(lane);
            left.push(job);
        }
    }
    (batch, left, unwelcome)
}

impl Submission {
    /// The ended job that it should reopen was removed: it becomes the first job with its id.
    fn becomes_first(&mut self) {
        self.reopens = None;
        self.record = identity::as_first(self.record.clone());
    }

    fn made(self) {
        let accepted = match self.record.generation {
            1 => Accepted::New,
            generation => Accepted::Again(generation),
        };
        self.settle(Ok(accepted));
    }

    /// The pending send did not happen.
    fn unsent(&self) {
        if !self.maybe {
            self.gate.unsend();
        }
    }
}

fn submissions(batch: Batch<Submission>) -> Vec<Submission> {
    batch.into_groups().into_iter().map(|(job, _)| job).collect()
}

/// The client has ended, or its namespace was refused. A job that may have been applied is not answered, which its
/// caller sees as unknown.
fn end(jobs: Vec<Submission>, reason: &Unavailable) -> Vec<Submission> {
    for job in jobs.into_iter().filter(|job| !job.maybe) {
        let id = job.id.clone();
        job.settle(Err(SubmitError::NotSent { id, reason: reason.clone() }));
    }
    Vec::new()
}

/// ZooKeeper refused these jobs, or the read that would have found them. A job that may have been applied is not
/// answered, as in [`end`].
pub(super) fn refuse(jobs: Vec<Submission>, reason: &Reason) -> Vec<Submission> {
    for job in jobs {
        let id = job.id.clone();
        if job.maybe {
            tracing::warn!(job = %id, %reason, "the submission was refused, but an earlier copy may have been applied");
            continue;
        }
        job.settle(Err(SubmitError::Refused { id, reason: reason.clone() }));
    }
    Vec::new()
}

/// Nothing in the batch was applied. One job is the cause; the others are sent again.
async fn rejected(zk: &Zk, batch: Batch<Submission>, rejection: Rejection) -> Vec<Submission> {
    let culprit = batch.locate(rejection.at);
    let mut jobs = submissions(batch);
    jobs.iter().for_each(Submission::unsent);
    if let Some(Locus::Group { group, subject: subject @ (Subject::Group | Subject::Member), .. }) = culprit {
        return members::mend(zk, jobs, group, subject, rejection.reason).await;
    }
    match (rejection.reason, culprit) {
        (Reason::NotSent, _) => jobs,
        (Reason::NodeExists, Some(Locus::Group { group, subject: Subject::Record, .. })) => {
            jobs[group].unexplained += 1;
            taken(zk, jobs).await
        }
        // The ended job that it should reopen has changed, or was removed.
        (Reason::BadVersion | Reason::NoNode, Some(Locus::Group { group, subject: Subject::Record, .. }))
            if jobs[group].reopens.is_some() =>
        {
            taken(zk, jobs).await
        }
        (reason, Some(Locus::Group { group, .. })) => {
            refuse(vec![jobs.remove(group)], &reason);
            jobs
        }
        // The batch has no fence, and every operation belongs to a group.
        (reason, Some(Locus::Fence(_)) | None) => refuse(jobs, &reason),
    }
}

/// A record exists. The records of all jobs are read, because each multi would reveal only one of many.
async fn taken(zk: &Zk, jobs: Vec<Submission>) -> Vec<Submission> {
    let paths = jobs.iter().map(|job| path::record(&job.id)).collect();
    // Without an answer all are sent again, and are rejected again.
    let Ok(nodes) = zk.get_many(paths).await else { return jobs };
    let (mut again, mut unexplained) = (Vec::new(), Vec::new());
    for (mut job, node) in jobs.into_iter().zip(nodes) {
        match node {
            Some(node) => again.extend(decide(job, &node)),
            None if job.reopens.is_some() => {
                job.becomes_first();
                again.push(job);
            }
            None if job.unexplained >= MAX_UNEXPLAINED => unexplained.push(job),
            None => again.push(job),
        }
    }
    refuse(unexplained, &Reason::NodeExists);
    again
}

/// The outcome is unknown: reads the record of each job.
async fn resolve(session: &Session, mut jobs: Vec<Submission>) -> Vec<Submission> {
    jobs.iter_mut().for_each(|job| job.maybe = true);
    debug_assert!(jobs.len() <= MAX_READ_BATCH, "a round is one batched read");
    let nodes = loop {
        let zk = match session.usable().await {
            Ok(zk) => zk,
            Err(reason) => return end(jobs, &reason),
        };
        match zk.get_many(jobs.iter().map(|job| path::record(&job.id)).collect()).await {
            Ok(nodes) => break nodes,
            Err(ReadError::Disconnected) => {}
            Err(ReadError::Refused(reason)) => return refuse(jobs, &reason),
        }
    };
    let mut again = Vec::new();
    for (mut job, node) in jobs.into_iter().zip(nodes) {
        let left = match node {
            Some(node) => decide(job, &node),
            None => {
                job.becomes_first();
                Some(job)
            }
        };
        let outcome = if left.is_some() { "not_applied" } else { "applied" };
        counter!(UNKNOWN_OUTCOMES_RESOLVED, "outcome" => outcome).increment(1);
        again.extend(left);
    }
    again
}

/// The id is in use: by this submission, by an earlier one of the same job, or by another job. Returns the submission
/// if it reopens the existing job.
pub(super) fn decide(job: Submission, node: &Node) -> Option<Submission> {
    let id = job.id.clone();
    let there = match wire::decode::<JobRecord>(&node.data) {
        Ok(there) => there,
        Err(reason) => {
            job.settle(Err(SubmitError::Unreadable { id, reason }));
            return None;
        }
    };
    let comparison = if job.equal.as_ref() == Some(&there.payload) {
        let ours = JobRecord { payload: there.payload.clone(), ..job.record.clone() };
        identity::compare(&there, &ours, job.if_exists)
    } else {
        identity::compare(&there, &job.record, job.if_exists)
    };
    let same_kind = there.kind == job.record.kind;
    let (reply, differs) = match comparison {
        Comparison::Accepted(accepted @ Accepted::Other) => (Ok(accepted), Some(there.payload)),
        Comparison::Accepted(accepted) => (Ok(accepted), None),
        Comparison::Conflict => {
            (Err(SubmitError::Conflict { id, kind: there.kind, same_kind }), Some(there.payload))
        }
        Comparison::Ended => {
            let sub_jobs = there.spawned.then(|| GroupId::of_sub_jobs(&id, &there));
            let record = identity::reopened(job.record, there, job.reopening.clone());
            return Some(Submission { record, reopens: Some(node.version), sub_jobs, ..job });
        }
    };
    job.answer(reply, differs.filter(|_| same_kind));
    None
}

#[cfg(test)]
mod tests;
