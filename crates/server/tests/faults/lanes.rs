//! Lanes under faults (S6). A witness without faults receives every assignment and every close in the order in which
//! ZooKeeper committed them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use bellwether::client::{Cancelled, WaitReason};
use bellwether::{JobId, State};
use bellwether_core::path::{self, Place};
use bellwether_testkit::{Cut, Direction, Proxy, Request, eventually, eventually_some};
use bellwether_zk::{Change, ChangeKind};

use crate::stage::{SOON, Stage, client, step};

/// The order of assignments and closes. Two jobs of one lane must not be assigned at the same time.
#[derive(Clone, Default)]
struct Witness(Arc<Mutex<Vec<(ChangeKind, JobId)>>>);

impl Witness {
    async fn watch(stage: &Stage) -> Self {
        let witness = Self::default();
        let mut watch = stage.zk.watch(path::ASSIGNMENTS).await.unwrap();
        let seen = witness.clone();
        tokio::spawn(async move {
            while let Some(changes) = watch.changes().await {
                let of_jobs = changes.into_iter().filter_map(|Change { place, kind }| match place {
                    Place::Assignment(_, job) => Some((kind, job)),
                    _ => None,
                });
                seen.0.lock().unwrap().extend(of_jobs);
            }
        });
        witness
    }

    /// Waits until the ends of all these jobs are recorded. Then asserts that no two jobs of a lane were assigned at
    /// the same time, and that no job was assigned before a job that was submitted earlier.
    async fn tells(&self, lanes: &[Vec<JobId>]) {
        let jobs = lanes.iter().map(Vec::len).sum::<usize>();
        let all = eventually_some("the witness has recorded all jobs", SOON, async || {
            let seen = self.0.lock().unwrap().clone();
            let mut open = BTreeMap::new();
            for (kind, job) in &seen {
                match kind {
                    ChangeKind::Created => open.insert(job.clone(), true),
                    ChangeKind::Deleted => open.insert(job.clone(), false),
                    ChangeKind::DataChanged => None,
                };
            }
            let over = lanes.iter().flatten().filter(|job| open.get(*job) == Some(&false)).count();
            (over == jobs).then_some(seen)
        })
        .await;
        for lane in lanes {
            let (mut assigned, mut last) = (None, 0);
            for (kind, job) in &all {
                let Some(at) = lane.iter().position(|of| of == job) else { continue };
                match kind {
                    ChangeKind::Created => {
                        assert_eq!(
                            assigned.replace(job),
                            None,
                            "S6: {job} was assigned at the same time as another job"
                        );
                        assert!(at == last || at == last + 1, "{job} overtook another job");
                        last = at;
                    }
                    ChangeKind::Deleted => assert_eq!(assigned.take(), Some(job)),
                    ChangeKind::DataChanged => {}
                }
            }
            assert_eq!(assigned, None);
        }
    }
}

#[tokio::test]
async fn two_hundred_jobs_of_a_lane_keep_their_order_while_the_leader_and_a_worker_are_killed() {
    const JOBS: usize = 200;
    let stage = Stage::set("lane").await;
    let witness = Witness::watch(&stage).await;
    let mut nodes = ["a", "b", "c"].map(|name| Some(stage.node(name).start()));
    stage.workers(3).await;
    let first = stage.leader().await;
    let mut named = |name: &str| {
        let node = nodes.iter_mut().find(|node| node.as_ref().is_some_and(|node| node.name() == name));
        node.unwrap().take().unwrap()
    };
    let laned = (0..JOBS).map(|n| stage.runs.job(&format!("job-{n}")).lane("account-7"));
    let ids = stage.submit(laned).await;
    let others = (0..20).map(|n| stage.runs.job(&format!("other-{n}")).lane("account-8"));
    let others = stage.submit(others).await;
    stage.over(&others).await;

    stage.begun(60).await;
    named(first.node.as_str()).kill();
    let second = eventually_some("another node is the leader", SOON, async || {
        let leader = stage.client.leader().await.unwrap()?;
        (leader.standing && leader.epoch > first.epoch).then_some(leader)
    })
    .await;
    stage.begun(120).await;
    let worker = ["a", "b", "c"].into_iter();
    let mut worker = worker.filter(|name| *name != second.node.as_str() && *name != first.node.as_str());
    named(worker.next().unwrap()).kill();

    let jobs = stage.over(&ids).await;
    assert!(jobs.iter().all(|job| job.state == State::Succeeded), "{jobs:?}");
    stage.runs.explain(&jobs);
    witness.tells(&[ids.clone(), others]).await;
    let mut ran = stage.runs.sequence();
    ran.retain(|job| job.starts_with("job-"));
    ran.dedup();
    assert_eq!(
        ran,
        ids.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "a repeated run follows directly"
    );
    stage.settled(1).await;
}

/// Three jobs of a lane, while each of the transactions that change a turn loses its reply.
#[tokio::test]
async fn a_lost_reply_neither_duplicates_nor_leaks_a_turn() {
    type Step = fn(&Request<'_>) -> bool;
    let steps: [(&str, Step); 3] =
        [("submit", step::submit), ("assign", step::assign), ("complete", step::complete)];
    for (name, step) in steps {
        let stage = Stage::set(&format!("lane-{name}")).await;
        let witness = Witness::watch(&stage).await;
        let proxy = Proxy::to(&stage.to);
        let behind = |of: &str, launch: crate::process::Launch| {
            if of == name { launch.behind(&proxy) } else { launch }
        };
        let leader = behind("assign", stage.node("leader").candidate()).start();
        let _worker = behind("complete", stage.node("worker").worker()).start();
        stage.led_by(&leader).await;
        stage.workers(1).await;
        let submitter =
            if name == "submit" { client(&proxy.connect_string()).await } else { stage.client.clone() };
        let fault = proxy.swallow_reply_and_cut(step, Cut::Reset);
        let jobs = (0..3).map(|n| stage.runs.job(&format!("job-{n}")).lane("lane"));
        let answers = submitter.submit_many(jobs, |_| {}).await;
        let ids = answers.into_iter().map(|answer| answer.unwrap().id().clone()).collect::<Vec<_>>();
        fault.fired().await;
        let jobs = stage.over(&ids).await;
        assert!(jobs.iter().all(|job| job.state == State::Succeeded && job.attempt == 1), "{name}: {jobs:?}");
        assert_eq!(stage.runs.sequence(), ["job-0", "job-1", "job-2"], "{name}");
        witness.tells(&[ids]).await;
        stage.settled(1).await;
    }
}

#[tokio::test]
async fn after_cancelling_the_running_and_a_waiting_job_the_next_one_runs() {
    let stage = Stage::set("lane-cancel").await;
    let witness = Witness::watch(&stage).await;
    let _node = stage.node("node").start();
    stage.runs.hold();
    let ids = stage.submit((0..4).map(|n| stage.runs.held(&format!("job-{n}")).lane("lane"))).await;
    stage.begun(1).await;
    let third = stage.job("job-2").await;
    assert_eq!((third.waiting, third.behind), (Some(WaitReason::Lane), Some(ids[0].clone())));
    assert_eq!(stage.client.cancel(&ids[1]).await.unwrap(), Cancelled::Cancelled);
    assert!(matches!(stage.client.cancel(&ids[0]).await.unwrap(), Cancelled::Requested(_)));
    eventually("the third job has started", SOON, async || stage.runs.sequence() == ["job-0", "job-2"]).await;
    // A retried job is last in the lane.
    stage.client.retry(&ids[0]).await.unwrap();
    stage.runs.release();
    let states = stage.over(&ids).await.into_iter().map(|job| job.state).collect::<Vec<_>>();
    assert_eq!(states, [State::Succeeded, State::Cancelled, State::Succeeded, State::Succeeded]);
    assert_eq!(stage.runs.sequence(), ["job-0", "job-2", "job-3", "job-0"]);
    let in_order = vec![ids[2].clone(), ids[3].clone()];
    witness.tells(&[in_order]).await;
    stage.settled(1).await;
}

/// The worker is disconnected but alive. Its run in the lane, with all processes, must end before another worker gets
/// the lane.
#[tokio::test]
async fn a_run_that_holds_a_lane_ends_before_the_lane_is_reassigned() {
    let stage = Stage::set("lane-cut-off").await;
    let _leader = stage.node("leader").candidate().start();
    let proxy = Proxy::to(&stage.to);
    let cut_off = stage.node("cut-off").worker().behind(&proxy).start();
    stage.worker(&cut_off, None).await;
    stage.runs.hold();
    let ids = stage.submit((0..2).map(|n| stage.runs.alone(&format!("job-{n}")).lane("lane"))).await;
    stage.begun(1).await;
    let _spare = stage.node("spare").worker().start();
    stage.workers(2).await;
    proxy.black_hole(Direction::Both);
    stage.begun(2).await;
    stage.runs.release();
    let jobs = stage.over(&ids).await;
    assert!(jobs.iter().all(|job| job.state == State::Succeeded), "{jobs:?}");
    assert_eq!((jobs[0].attempt, jobs[0].losses), (2, 1), "{jobs:?}");
    assert_eq!(stage.runs.together(), "", "two jobs of a lane ran at the same time");
    assert_eq!(stage.runs.sequence(), ["job-0", "job-0", "job-1"]);
}
