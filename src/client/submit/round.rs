//! One multi of submissions, and what becomes of each.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use bellwether_core::budget::MAX_READ_BATCH;
use bellwether_core::job::JobRecord;
use bellwether_core::metric::UNKNOWN_RESOLVED;
use bellwether_core::outcome::{Outcome, Reason, Rejection};
use bellwether_core::path;
use bellwether_core::txn::{self, Batch, Locus};
use bellwether_core::wire;
use bellwether_zk::{Node, ReadError, Zk};
use futures::future::join_all;
use metrics::counter;

use super::super::error::{SubmitError, Unavailable};
use super::super::link::Link;
use super::occupancy::Occupancy;
use super::{Accepted, Submission};

/// How often a job is sent again after a rejection that a read cannot explain. Something else makes and
/// deletes znodes of that name then; a job id has no honest use for it.
const PUZZLES: u32 = 5;

/// Where a submission makes the job's turn in its lane.
const TURN: usize = 2;

/// Sends these jobs and answers those that are decided. What comes back is to be sent again.
pub(super) async fn round(
    link: Arc<Link>,
    occupancy: Arc<Occupancy>,
    jobs: Vec<Submission>,
) -> Vec<Submission> {
    let zk = match link.usable().await {
        Ok(zk) => zk,
        Err(reason) => return end(jobs, &reason),
    };
    match occupancy.refresh(&zk, jobs.iter().map(|job| &job.id)).await {
        Ok(()) => {}
        Err(ReadError::Disconnected) => return jobs,
        Err(ReadError::Refused(reason)) => return refuse(jobs, &reason),
    }
    let (batch, mut again) = gather(&occupancy, jobs);
    if batch.is_empty() {
        return again;
    }
    let (batch, outcome) = zk.commit_batch(batch).await;
    let mut back = match outcome {
        Outcome::Applied(()) => {
            submissions(batch).into_iter().for_each(|job| job.settle(Ok(Accepted::Made)));
            Vec::new()
        }
        Outcome::Rejected(rejection) => rejected(&zk, batch, rejection).await,
        Outcome::Unknown => resolve(&link, submissions(batch)).await,
    };
    back.append(&mut again);
    back
}

/// Fills a batch with the jobs that somebody waits for and that have room. What does not fit its bytes, and a
/// second job of one id, which would make the multi reject itself, is left for later; so is what follows such a job in
/// its lane.
fn gather(occupancy: &Occupancy, jobs: Vec<Submission>) -> (Batch<Submission>, Vec<Submission>) {
    let (mut batch, mut left) = (Batch::new(Vec::new()), Vec::new());
    let mut ids = HashSet::new();
    let mut blocked = BTreeSet::new();
    for job in jobs {
        // Nothing of it is in flight here, so this ends it.
        if !job.is_waited_for() {
            continue;
        }
        let lane = job.record.placement.lane.clone();
        if !ids.insert(job.id.clone()) || lane.as_ref().is_some_and(|lane| blocked.contains(lane)) {
            blocked.extend(lane);
            left.push(job);
            continue;
        }
        // One whose first copy may yet be applied cannot be told that nothing was sent.
        if let Err(entries) = occupancy.take(&job.id)
            && !job.maybe
        {
            let id = job.id.clone();
            job.settle(Err(SubmitError::Overloaded { id, entries }));
            continue;
        }
        let index = u32::try_from(batch.len()).expect("a multi has few operations");
        let ops = txn::submit(&job.id, &job.record, index);
        // The fate is asked last: from here on the job counts as sent.
        if !job.fate.send() {
            continue;
        }
        if let Err((job, _)) = batch.push(job, ops) {
            job.unsent();
            blocked.extend(lane);
            left.push(job);
        }
    }
    (batch, left)
}

impl Submission {
    /// What was about to be sent was not.
    fn unsent(&self) {
        if !self.maybe {
            self.fate.unsend();
        }
    }
}

fn submissions(batch: Batch<Submission>) -> Vec<Submission> {
    batch.into_groups().into_iter().map(|(job, _)| job).collect()
}

/// The client has ended, or its namespace was refused. What may have been applied stays unanswered here,
/// which its caller is told as unknown.
fn end(jobs: Vec<Submission>, reason: &Unavailable) -> Vec<Submission> {
    for job in jobs.into_iter().filter(|job| !job.maybe) {
        let id = job.id.clone();
        job.settle(Err(SubmitError::NotSent { id, reason: reason.clone() }));
    }
    Vec::new()
}

/// ZooKeeper refused these, or the read that would have told of them. Of what may have been applied this says nothing:
/// it stays unanswered as in [`end`].
fn refuse(jobs: Vec<Submission>, reason: &Reason) -> Vec<Submission> {
    for job in jobs {
        let id = job.id.clone();
        if job.maybe {
            tracing::warn!(job = %id, %reason, "refused, and an earlier copy of the submission may have been applied");
            continue;
        }
        job.settle(Err(SubmitError::Refused { id, reason: reason.clone() }));
    }
    Vec::new()
}

/// Nothing of the batch was applied. One job is to blame; the others are sent again.
async fn rejected(zk: &Zk, batch: Batch<Submission>, rejection: Rejection) -> Vec<Submission> {
    let culprit = batch.locate(rejection.at);
    let mut jobs = submissions(batch);
    jobs.iter().for_each(Submission::unsent);
    match (rejection.reason, culprit) {
        (Reason::NotSent, _) => jobs,
        (Reason::NodeExists, Some(Locus::Group { group, op: 0 })) => {
            jobs[group].puzzles += 1;
            taken(zk, jobs).await
        }
        (Reason::NoNode, Some(Locus::Group { group, op: TURN })) => make_lanes(zk, jobs, group).await,
        (reason, Some(Locus::Group { group, .. })) => {
            refuse(vec![jobs.remove(group)], &reason);
            jobs
        }
        // There is no fence, and every operation belongs to a group.
        (reason, Some(Locus::Fence(_)) | None) => refuse(jobs, &reason),
    }
}

/// The lane of one is not there, and those of others may not be either: all are made, and all is sent again.
async fn make_lanes(zk: &Zk, mut jobs: Vec<Submission>, culprit: usize) -> Vec<Submission> {
    let lanes = jobs.iter().filter_map(|job| job.record.placement.lane.clone()).collect::<BTreeSet<_>>();
    let made = lanes.iter().map(|lane| zk.create_container(path::lane(lane)));
    let made = lanes
        .iter()
        .zip(join_all(made).await)
        .find(|(lane, _)| Some(*lane) == jobs[culprit].record.placement.lane.as_ref());
    if let Some((_, Outcome::Rejected(Rejection { reason, .. }))) = made
        && !matches!(reason, Reason::NodeExists | Reason::NotSent)
    {
        refuse(vec![jobs.remove(culprit)], &reason);
    }
    jobs
}

/// A record exists. When many do, one would be found per multi: so all are looked for at once.
async fn taken(zk: &Zk, jobs: Vec<Submission>) -> Vec<Submission> {
    let paths = jobs.iter().map(|job| path::record(&job.id)).collect();
    // Without an answer all are sent again, and the rejection comes again.
    let Ok(nodes) = zk.get_many(paths).await else { return jobs };
    let (mut again, mut puzzles) = (Vec::new(), Vec::new());
    for (job, node) in jobs.into_iter().zip(nodes) {
        match node {
            Some(node) => decide(job, &node),
            None if job.puzzles >= PUZZLES => puzzles.push(job),
            None => again.push(job),
        }
    }
    refuse(puzzles, &Reason::NodeExists);
    again
}

/// Nobody knows: look for each.
async fn resolve(link: &Link, mut jobs: Vec<Submission>) -> Vec<Submission> {
    jobs.iter_mut().for_each(|job| job.maybe = true);
    debug_assert!(jobs.len() <= MAX_READ_BATCH, "a round is one batched read");
    let nodes = loop {
        let zk = match link.usable().await {
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
    for (job, node) in jobs.into_iter().zip(nodes) {
        match node {
            Some(node) => {
                counter!(UNKNOWN_RESOLVED, "as" => "applied").increment(1);
                decide(job, &node);
            }
            None => {
                counter!(UNKNOWN_RESOLVED, "as" => "not_applied").increment(1);
                again.push(job);
            }
        }
    }
    again
}

/// The id is taken: by this submission, by an earlier one of the same job, or by another job.
fn decide(job: Submission, node: &Node) {
    let id = job.id.clone();
    let reply = match wire::decode::<JobRecord>(&node.data) {
        Ok(there) if there.token == job.record.token => Ok(Accepted::Made),
        Ok(there) if there.is_same_submission(&job.record) => Ok(Accepted::Duplicate),
        Ok(there) => {
            let same_kind = there.kind == job.record.kind;
            Err(SubmitError::Conflict { id, kind: there.kind, same_kind })
        }
        Err(reason) => Err(SubmitError::Unreadable { id, reason }),
    };
    job.settle(reply);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_certainly_not_applied_is_told_as_refused() {
        let (mut jobs, mut answers): (Vec<_>, Vec<_>) = (0..2).map(|_| Submission::sample()).unzip();
        jobs[0].maybe = true;
        assert!(refuse(jobs, &Reason::Refused("throttled".into())).is_empty());
        answers[0].try_recv().expect_err("it may have been applied");
        assert!(matches!(answers[1].try_recv(), Ok(Err(SubmitError::Refused { .. }))));
    }

    /// S1, S11
    #[test]
    fn a_record_that_is_there_is_ours_by_its_token_and_the_same_job_by_its_kind_and_payload() {
        type Change = fn(&mut JobRecord);
        type IsRight = fn(&super::super::Reply) -> bool;
        let table: [(Change, IsRight); 3] = [
            (|_| {}, |reply| matches!(reply, Ok(Accepted::Made))),
            (|there| there.token = uuid::Uuid::nil(), |reply| matches!(reply, Ok(Accepted::Duplicate))),
            (
                |there| {
                    there.token = uuid::Uuid::nil();
                    there.payload = bellwether_core::job::Payload::json(*b"2").unwrap();
                },
                |reply| matches!(reply, Err(SubmitError::Conflict { same_kind: true, .. })),
            ),
        ];
        for (change, is_right) in table {
            let (job, mut answer) = Submission::sample();
            let mut there = job.record.clone();
            change(&mut there);
            let data = wire::encode(&there);
            decide(
                job,
                &Node { data, version: 0, owner: 0, created: 1, modified: there.submitted_at, children: 0 },
            );
            let reply = answer.try_recv().unwrap();
            assert!(is_right(&reply), "{reply:?}");
        }
    }
}
