//! One multi of submissions, and the outcome of each.

use std::collections::{BTreeSet, HashSet, VecDeque};
use std::sync::Arc;

use bellwether_core::budget::MAX_READ_BATCH;
use bellwether_core::group::GroupError;
use bellwether_core::job::JobRecord;
use bellwether_core::metric::UNKNOWN_OUTCOMES_RESOLVED;
use bellwether_core::name::GroupId;
use bellwether_core::outcome::{Outcome, Reason, Rejection};
use bellwether_core::path;
use bellwether_core::segment::MIN_PACKED;
use bellwether_core::txn::{self, Batch, Locus, Subject};
use bellwether_core::wire;
use bellwether_zk::{Node, ReadError};
use metrics::counter;

use super::super::error::{SubmitError, Unavailable};
use super::super::group::Entrant;
use super::super::runtime::Zk;
use super::super::session::Session;
use super::Submission;
use super::capacity::Capacity;
use super::load::{Item, Load};
use super::members;
use super::packed::Packed;
use super::send_gate::SentAs;
use bellwether_core::job::identity::{self, Accepted, Comparison};

/// Limit of rejections that a read cannot explain. They mean that another process creates and deletes the same znode
/// repeatedly; there is no legitimate use of a job id for that.
const MAX_UNEXPLAINED: u32 = 5;

/// Sends these jobs and answers those that are decided. Returns what to send again.
pub(super) async fn round(session: Session, capacity: Arc<Capacity>, load: Load) -> Load {
    let zk = match session.usable().await {
        Ok(zk) => zk,
        Err(reason) => return end(load, &reason),
    };
    let load = load.packed(&session, &capacity.parts);
    match capacity.refresh(&session, &zk, &load).await {
        Ok(()) => {}
        Err(ReadError::Disconnected) => return load.again(),
        Err(ReadError::Refused(reason)) => return refuse_all(load, &reason),
    }
    let load = match members::not_parents(&zk, load.jobs).await {
        Ok(jobs) => Load { jobs, ..load },
        Err(jobs) => return Load { jobs, ..load }.again(),
    };
    let (batch, mut left, unwelcome) = gather(&session, &capacity, load);
    left.jobs.append(&mut members::look_up(&zk, unwelcome).await);
    if batch.is_empty() {
        return left.again();
    }
    let (batch, outcome) = zk.commit_batch(batch).await;
    let mut back = match outcome {
        Outcome::Applied(()) => {
            let Load { segments, jobs } = Load::of(batch);
            segments.into_iter().for_each(Packed::made);
            jobs.into_iter().for_each(Submission::made);
            Load::default()
        }
        Outcome::Rejected(rejection) => rejected(&zk, batch, rejection).await,
        Outcome::Unknown => resolve(&session, Load::of(batch)).await,
    };
    back.segments.append(&mut left.segments);
    back.jobs.append(&mut left.jobs);
    back.again()
}

/// Fills a batch with the segments and jobs that a caller waits for and that have capacity. Returned for later are those that
/// do not fit its size, a second job with the same id (it would make the multi reject itself), and the jobs behind such
/// a job in its lane.
///
/// Members that their groups do not accept are returned separately: they may exist already.
fn gather(
    session: &Session,
    capacity: &Capacity,
    load: Load,
) -> (Batch<Item>, Load, Vec<(Submission, GroupError)>) {
    let (mut batch, mut left, mut unwelcome) = (Batch::new(Vec::new()), Load::default(), Vec::new());
    gather_segments(session, capacity, load.segments, &mut batch, &mut left);
    let mut ids = HashSet::new();
    let mut blocked = BTreeSet::new();
    for mut job in load.jobs {
        // No copy of it is in flight, so dropping it ends it.
        if !job.is_waited_for() {
            continue;
        }
        let lane = job.record.placement.lane.clone();
        if !ids.insert(job.id.clone()) || lane.as_ref().is_some_and(|lane| blocked.contains(lane)) {
            blocked.extend(lane);
            left.jobs.push(job);
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
        if let Err(full) = capacity.take(&job)
            && !job.maybe
        {
            job.settle(Err(full));
            continue;
        }
        if job.reopens.is_none() {
            job.record.part = capacity.parts.choose(&job.record.entry(0));
        }
        let index = u32::try_from(batch.len()).expect("a multi has few operations");
        let mut ops = match job.reopens {
            Some(version) => txn::reopen(&job.id, version, &job.record, index),
            None => txn::submit(&job.id, &job.record, index),
        };
        ops.extend(joins.into_iter().flatten());
        // Last: from here on the job counts as sent.
        if !job.gate.send(SentAs::Record) {
            continue;
        }
        if let Err((item, _)) = batch.push(Item::Job(job), ops) {
            if let Item::Job(job) = &item {
                job.unsent();
            }
            blocked.extend(lane);
            left.take_back(item);
        }
    }
    (batch, left, unwelcome)
}

fn gather_segments(
    session: &Session,
    capacity: &Capacity,
    segments: Vec<Packed>,
    batch: &mut Batch<Item>,
    left: &mut Load,
) {
    let mut segments = VecDeque::from(segments);
    while let Some(segment) = segments.pop_front() {
        // As for a job.
        if !segment.is_waited_for() {
            continue;
        }
        if let Err(entries) = capacity.take_segment(&segment)
            && !segment.may_be_applied()
        {
            segment.refuse(|id| SubmitError::Overloaded { id, entries });
            continue;
        }
        // Last: from here on its jobs count as sent.
        let segment = match segment.send() {
            Ok(segment) => segment,
            // Some callers have given up. The others do not wait for another round, in which it may happen again.
            Err(jobs) if jobs.len() >= usize::from(MIN_PACKED) => {
                segments.push_front(Packed::of(session, &capacity.parts, jobs));
                continue;
            }
            Err(mut jobs) => {
                left.jobs.append(&mut jobs);
                continue;
            }
        };
        let ops = segment.ops();
        if let Err((item, _)) = batch.push(Item::Segment(segment), ops) {
            left.take_back(item);
        }
    }
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
    pub(super) fn unsent(&self) {
        if !self.maybe {
            self.gate.unsend();
        }
    }
}

/// The client has ended, or its namespace was refused. A job that may have been applied is not answered, which its
/// caller sees as unknown. So are the members of all segments: others are not formed before there is a session.
fn end(load: Load, reason: &Unavailable) -> Load {
    for job in load.jobs.into_iter().filter(|job| !job.maybe) {
        let id = job.id.clone();
        job.settle(Err(SubmitError::NotSent { id, reason: reason.clone() }));
    }
    Load::default()
}

/// ZooKeeper refused these jobs, or the read that would have found them. A job that may have been applied is not
/// answered, as in [`end`].
pub(super) fn refuse(jobs: Vec<Submission>, reason: &Reason) -> Vec<Submission> {
    for job in jobs {
        let id = job.id.clone();
        if job.maybe {
            tracing::warn!(job = %id, %reason, "ZooKeeper refused the submission, but it may have applied an earlier copy");
            continue;
        }
        job.settle(Err(SubmitError::Refused { id, reason: reason.clone() }));
    }
    Vec::new()
}

/// Like [`refuse`], also for segments.
fn refuse_all(load: Load, reason: &Reason) -> Load {
    load.segments.into_iter().for_each(|segment| refuse_segment(segment, reason));
    refuse(load.jobs, reason);
    Load::default()
}

fn refuse_segment(segment: Packed, reason: &Reason) {
    segment.refuse(|id| SubmitError::Refused { id, reason: reason.clone() });
}

/// Nothing in the batch was applied. One segment or job is the cause, unless the batch was not sent; the others are sent again.
async fn rejected(zk: &Zk, batch: Batch<Item>, rejection: Rejection) -> Load {
    let culprit = batch.locate(rejection.at);
    let mut load = Load::of(batch);
    load.jobs.iter().for_each(Submission::unsent);
    match (rejection.reason, culprit) {
        (Reason::NotSent, _) => {}
        (reason, Some(Locus::Group { group, .. })) if group < load.segments.len() => {
            let segment = load.segments.remove(group);
            load.segments.extend(rejected_segment(zk, segment, reason).await);
        }
        (reason, Some(Locus::Group { group, subject, .. })) => {
            let job = group - load.segments.len();
            load.jobs = rejected_job(zk, load.jobs, job, subject, reason).await;
        }
        // The batch has no fence, and every operation belongs to a group.
        (reason, Some(Locus::Fence(_)) | None) => return refuse_all(load, &reason),
    }
    load
}

/// Returns the segment if it is to be sent again. If it exists, an earlier copy was applied.
async fn rejected_segment(zk: &Zk, mut segment: Packed, reason: Reason) -> Option<Packed> {
    if reason != Reason::NodeExists {
        refuse_segment(segment, &reason);
        return None;
    }
    segment.unknown();
    // Without an answer it is sent again, and is rejected again.
    let Ok(node) = zk.get(segment.path()).await else { return Some(segment) };
    if node.is_some() {
        segment.made();
        return None;
    }
    if segment.not_explained() >= MAX_UNEXPLAINED {
        refuse_segment(segment, &Reason::NodeExists);
        return None;
    }
    Some(segment)
}

/// Handles a rejected batch whose culprit is this job. Returns the jobs to send again.
async fn rejected_job(
    zk: &Zk,
    mut jobs: Vec<Submission>,
    culprit: usize,
    subject: Subject,
    reason: Reason,
) -> Vec<Submission> {
    match (reason, subject) {
        (reason, Subject::Group | Subject::Member) => members::mend(zk, jobs, culprit, subject, reason).await,
        (Reason::NodeExists, Subject::Record) => {
            jobs[culprit].unexplained += 1;
            taken(zk, jobs).await
        }
        // The ended job that it should reopen has changed, or was removed.
        (Reason::BadVersion | Reason::NoNode, Subject::Record) if jobs[culprit].reopens.is_some() => {
            taken(zk, jobs).await
        }
        (reason, _) => {
            refuse(vec![jobs.remove(culprit)], &reason);
            jobs
        }
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

/// The outcome is unknown: reads each segment and the record of each job.
async fn resolve(session: &Session, mut load: Load) -> Load {
    load.segments.iter_mut().for_each(Packed::unknown);
    load.jobs.iter_mut().for_each(|job| job.maybe = true);
    let segments = load.segments.iter().map(Packed::path);
    let paths = segments.chain(load.jobs.iter().map(|job| path::record(&job.id))).collect::<Vec<_>>();
    debug_assert!(paths.len() <= MAX_READ_BATCH, "a round is one batched read");
    let nodes = loop {
        let zk = match session.usable().await {
            Ok(zk) => zk,
            Err(reason) => return end(load, &reason),
        };
        match zk.get_many(paths.clone()).await {
            Ok(nodes) => break nodes,
            Err(ReadError::Disconnected) => {}
            Err(ReadError::Refused(reason)) => return refuse_all(load, &reason),
        }
    };
    let (mut again, mut nodes) = (Load::default(), nodes.into_iter());
    for (segment, node) in load.segments.into_iter().zip(nodes.by_ref()) {
        let members = segment.jobs().len();
        if node.is_some() {
            resolved("applied", members);
            segment.made();
        } else {
            resolved("not_applied", members);
            again.segments.push(segment);
        }
    }
    for (mut job, node) in load.jobs.into_iter().zip(nodes) {
        let left = match node {
            Some(node) => decide(job, &node),
            None => {
                job.becomes_first();
                Some(job)
            }
        };
        resolved(if left.is_some() { "not_applied" } else { "applied" }, 1);
        again.jobs.extend(left);
    }
    again
}

fn resolved(outcome: &'static str, jobs: usize) {
    counter!(UNKNOWN_OUTCOMES_RESOLVED, "outcome" => outcome).increment(jobs as u64);
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
