//! The worked example: one job that submits a hundred sub-jobs, on three nodes, while workers and the leader are
//! killed.

use std::time::Duration;

use bellwether::handler::with_state;
use bellwether::{Handlers, Job, JobKind, JoinKind, ParentKind};
use bellwether_testkit::eventually;

use crate::stage::{Runs, SOON, cluster, done, group, sub_jobs, sum};

const RECORD_SETS: u64 = 100;

/// Reconciles one system.
struct Parent;

impl JobKind for Parent {
    const NAME: &'static str = "recon-parent";
    type Payload = ();
    type Result = ();
}

impl ParentKind for Parent {
    type SubJob = RecordSet;
    type Finished = (u32, Option<(u64, u64)>);
}

struct RecordSet;

impl JobKind for RecordSet {
    const NAME: &'static str = "recon-record-set";
    type Payload = u64;
    type Result = u64;
}

impl JoinKind for RecordSet {
    type Joined = (u64, u64);
}

fn recon(runs: &Runs) -> Handlers {
    let runs = with_state(runs.clone());
    Handlers::new()
        .add(runs.kind::<Parent>(|runs, context, ()| async move {
            let group = context.sub_jobs::<RecordSet>().finished(true).open().await?;
            group.submit_all((0..RECORD_SETS).map(set_of)).await?;
            runs.note("parent");
            Ok(())
        }))
        .add(runs.kind::<RecordSet>(|runs, _, set| async move {
            tokio::time::sleep(Duration::from_millis(60)).await;
            runs.note(format!("set {set}"));
            Ok(set)
        }))
        .add(runs.join::<RecordSet>(|runs, _, members| async move {
            let summed = sum(members).await?;
            runs.note("join");
            Ok(summed)
        }))
        .add(runs.finished::<Parent>(|runs, _, finished| async move {
            runs.note("finished");
            Ok((finished.group.succeeded, finished.join_result()?))
        }))
}

fn set_of(set: u64) -> Job<RecordSet> {
    RecordSet::job(&set).max_losses(100)
}

/// S7, L3
#[tokio::test]
async fn the_join_and_then_the_finished_handler_run_after_a_hundred_sub_jobs_despite_crashes() {
    let runs = Runs::default();
    let mut cluster = cluster(recon(&runs), 3).await;
    let parent = Parent::job(&()).id("recon-system-x").max_losses(100);
    let parent = cluster.client().submit(parent).await.unwrap();
    let id = sub_jobs(cluster.client(), "recon-system-x").await;
    // Alternately the leader and a worker; each time another node replaces it.
    for (kill, ended) in [10, 30, 50, 70, 90].into_iter().enumerate() {
        eventually("enough members have ended", SOON, async || {
            let view = cluster.client().get_group(&group(&id)).await.unwrap();
            view.is_some_and(|view| view.succeeded >= ended)
        })
        .await;
        let leader = cluster.leader().await.unwrap().name().to_owned();
        let victim = if kill % 2 == 0 {
            leader
        } else {
            let live = cluster.nodes().iter().rev().find(|node| *node.name() != leader);
            live.unwrap().name().to_owned()
        };
        cluster.named(&victim).unwrap().kill().await;
        cluster.add().await.unwrap();
    }
    let view = done(cluster.client(), &id).await;
    assert_eq!((view.succeeded, view.total), (100, Some(100)), "{view:?}");
    assert_eq!(parent.finished_result(SOON).await.unwrap(), (100, Some((100, 4950))));
    let join = runs.first("join");
    let first_ends = (0..RECORD_SETS).map(|set| runs.first(&format!("set {set}"))).max().unwrap();
    assert!(join > first_ends, "every member ended before the join started");
    assert!(runs.first("finished") > join);
    cluster.stop().await.unwrap();
}

/// The leader dies between the last member's end and the join, and between the join and the finished handler.
#[tokio::test]
async fn all_stages_complete_when_the_leader_dies_between_them() {
    let runs = Runs::default();
    let mut cluster = cluster(recon(&runs), 2).await;
    for round in 0..3 {
        let name = format!("system-{round}");
        let parent = Parent::job(&()).id(&name).max_losses(100);
        cluster.client().submit(parent).await.unwrap();
        let id = sub_jobs(cluster.client(), &name).await;
        eventually("nearly all members have ended", SOON, async || {
            let view = cluster.client().get_group(&group(&id)).await.unwrap();
            view.is_some_and(|view| view.succeeded >= 96 + round)
        })
        .await;
        cluster.leader().await.unwrap().kill().await;
        cluster.add().await.unwrap();
        let view = done(cluster.client(), &id).await;
        assert_eq!(view.succeeded, 100, "{view:?}");
    }
    cluster.stop().await.unwrap();
}
