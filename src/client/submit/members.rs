//! Additional steps for members of groups: the group's current record, and the parents of their places and marks.

use std::collections::{BTreeMap, BTreeSet};

use bellwether_core::budget::MAX_READ_BATCH;
use bellwether_core::group::{GroupError, GroupRecord, Stage};
use bellwether_core::job::identity::Accepted;
use bellwether_core::name::GroupId;
use bellwether_core::outcome::{Outcome, Reason, Rejection};
use bellwether_core::path;
use bellwether_core::txn::{self, Subject};
use bellwether_core::wire;
use bellwether_zk::Node;
use futures::future::join_all;

use super::super::error::{Error, SubmitError};
use super::super::group::Known;
use super::super::runtime::Zk;
use super::Submission;
use super::round::{decide, refuse};

/// Handles a rejected batch whose culprit is a group's record or a place in it. Returns the jobs to send again.
pub(super) async fn mend(
    zk: &Zk,
    mut jobs: Vec<Submission>,
    culprit: usize,
    subject: Subject,
    reason: Reason,
) -> Vec<Submission> {
    match (subject, &reason) {
        (Subject::Group, Reason::BadVersion | Reason::NoNode) => read_again(zk, jobs).await,
        // The parent of the place is missing.
        (Subject::Member, Reason::NoNode) => make_chunks(zk, jobs, culprit).await,
        (_, _) => {
            refuse(vec![jobs.remove(culprit)], &reason);
            jobs
        }
    }
}

/// Reads the groups of all jobs again. Members of a group that was removed or cannot be read are refused.
async fn read_again(zk: &Zk, jobs: Vec<Submission>) -> Vec<Submission> {
    let known = || jobs.iter().filter_map(|job| Some(&job.entrant.as_ref()?.known));
    // At most one group per job, and a round has at most as many jobs as one batched read takes.
    let groups = known().map(|known| known.id.clone()).collect::<BTreeSet<_>>();
    debug_assert!(groups.len() <= MAX_READ_BATCH, "a round is one batched read");
    let Ok(nodes) = zk.get_many(groups.iter().map(path::group).collect()).await else { return jobs };
    let nodes = groups.into_iter().zip(nodes).collect::<BTreeMap<_, _>>();
    // Each handle of a group has its own known state, and an outdated one would reject the round for all.
    let learnt = known().map(|known| (known, known.learn(nodes.get(&known.id).and_then(Option::as_ref))));
    let lost = learnt.filter_map(|(known, learnt)| Some((known.id.clone(), learnt.err()?))).collect();
    without(jobs, &lost)
}

/// Creates the missing parents of the culprit's place and mark, and those of the other jobs.
async fn make_chunks(zk: &Zk, jobs: Vec<Submission>, culprit: usize) -> Vec<Submission> {
    type Chunk = (GroupId, u32);
    let chunk = |job: &Submission| {
        let entrant = job.entrant.as_ref()?;
        let known: &Known = &entrant.known;
        Some((known.id.clone(), entrant.chunk()))
    };
    let wanted = chunk(&jobs[culprit]);
    let chunks = jobs.iter().filter_map(chunk).collect::<BTreeSet<Chunk>>();
    let made = join_all(chunks.iter().map(|(group, chunk)| make_chunk(zk, group, *chunk))).await;
    let found = chunks.iter().zip(made).find(|(chunk, _)| Some(*chunk) == wanted.as_ref());
    match found {
        // The group itself was removed, not the chunk.
        Some(((group, _), Outcome::Rejected(Rejection { reason: Reason::NoNode, .. }))) => {
            let absent = GroupError::NotFound { group: group.clone() };
            without(jobs, &BTreeMap::from([(group.clone(), absent.into())]))
        }
        // Created here or by another client, or unknown: the next submission shows it.
        Some(_) | None => jobs,
    }
}

/// Creates both parents in one multi. If one of them exists (the other was deleted by hand), creates them one by one,
/// the parent of the marks first.
async fn make_chunk(zk: &Zk, group: &GroupId, chunk: u32) -> Outcome<()> {
    let ops = txn::make_chunk(group, chunk);
    let made = zk.commit(ops.clone()).await;
    let Outcome::Rejected(Rejection { reason: Reason::NodeExists, .. }) = made else { return made };
    let mut last = made;
    for op in ops {
        last = zk.commit(vec![op]).await;
    }
    last
}

/// Refuses the members of lost groups, and returns the other jobs.
fn without(jobs: Vec<Submission>, lost: &BTreeMap<GroupId, Error>) -> Vec<Submission> {
    let mut left = Vec::new();
    for job in jobs {
        match job.entrant.as_ref().and_then(|entrant| lost.get(&entrant.known.id)) {
            None => left.push(job),
            // A job that may have been applied is not answered, which its caller sees as unknown.
            Some(_) if job.maybe => {}
            Some(error) => job.settle(Err(error.clone().into())),
        }
    }
    left
}

/// Returns the jobs that do not reopen a job with running sub-jobs. Such a job has not ended, so its submission is
/// accepted as the same job. If the read fails, all jobs are returned as the error.
pub(super) async fn not_parents(zk: &Zk, jobs: Vec<Submission>) -> Result<Vec<Submission>, Vec<Submission>> {
    let groups = jobs.iter().filter_map(|job| job.sub_jobs.clone()).collect::<BTreeSet<_>>();
    if groups.is_empty() {
        return Ok(jobs);
    }
    let Ok(nodes) = zk.get_many(groups.iter().map(path::group).collect()).await else { return Err(jobs) };
    let goes_on = |node: &Node| {
        let record = wire::decode::<GroupRecord>(&node.data);
        !record.is_ok_and(|record| matches!(record.stage, Stage::Done { .. }))
    };
    let open = groups.into_iter().zip(nodes).filter(|(_, node)| node.as_ref().is_some_and(goes_on));
    let open = open.map(|(group, _)| group).collect::<BTreeSet<_>>();
    let (parents, others) = jobs
        .into_iter()
        .partition::<Vec<_>, _>(|job| job.sub_jobs.as_ref().is_some_and(|group| open.contains(group)));
    parents.into_iter().for_each(|job| job.settle(Ok(Accepted::Same)));
    Ok(others)
}

/// Handles members that their groups do not accept. An existing member is accepted as the same member. Returns the
/// jobs to send again.
pub(super) async fn look_up(zk: &Zk, jobs: Vec<(Submission, GroupError)>) -> Vec<Submission> {
    if jobs.is_empty() {
        return Vec::new();
    }
    let paths = jobs.iter().map(|(job, _)| path::record(&job.id)).collect();
    let Ok(nodes) = zk.get_many(paths).await else { return jobs.into_iter().map(|(job, _)| job).collect() };
    let mut again = Vec::new();
    for ((job, why), node) in jobs.into_iter().zip(nodes) {
        match node {
            Some(node) => again.extend(decide(job, &node)),
            // A first copy that is applied late checks the group's version and is rejected.
            None => job.settle(Err(SubmitError::Group(why))),
        }
    }
    again
}
