//! Thousands of jobs on three nodes, while the leader and a worker are killed.

use std::time::{Duration, Instant};

use bellwether::{Job, State};
use bellwether_testkit::{eventually, eventually_some};

use crate::process::NodeProcess;
use crate::stage::{SOON, Stage};

const JOBS: usize = 5_000;

/// The default session timeout. With a short one, the load of this test on a slow machine ends the trust of each leader.
const SESSION: Duration = Duration::from_secs(10);

/// Every fifth job runs a program that writes a line.
const RECORDED: usize = 5;

#[tokio::test]
async fn five_thousand_jobs_succeed_while_the_leader_and_a_worker_are_killed() {
    let stage = Stage::set("thousands").await;
    let start = |name| stage.node(name).slots(32).session(SESSION).start();
    let mut nodes = ["a", "b", "c"].map(start).into_iter().collect::<Vec<_>>();
    stage.workers(3).await;
    let first = stage.leader().await;
    let began = Instant::now();
    let jobs = (0..JOBS).map(|n| match n % RECORDED {
        0 => stage.runs.job(&format!("job-{n}")),
        _ => Job::new("sum", &[n, 1]).id(format!("job-{n}")),
    });
    let ids = stage.submit(jobs).await;
    println!("submitted after {:?}", began.elapsed());

    let begun = |runs: usize| {
        let what = format!("{runs} runs");
        let stage = &stage;
        async move { eventually(&what, SOON, async || stage.runs.begun().len() >= runs).await }
    };
    begun(JOBS / RECORDED / 4).await;
    take(&mut nodes, first.node.as_str()).kill();
    let second = leader_after(&stage, first.epoch).await;
    println!("{second} replaced {} after {:?}", first.node, began.elapsed());
    begun(JOBS / RECORDED / 2).await;
    let worker = nodes.iter().find(|node| node.name() != second).unwrap().name().to_owned();
    take(&mut nodes, &worker).kill();

    let jobs = stage.over(&ids).await;
    assert_eq!(jobs.iter().find(|job| job.state != State::Succeeded), None);
    for (n, job) in jobs.iter().enumerate().filter(|(n, _)| n % RECORDED != 0) {
        assert_eq!(job.result.as_ref().unwrap().bytes(), (n + 1).to_string().as_bytes());
    }
    let counts = stage.runs.explain(&jobs);
    println!("{counts:?} after {:?}", began.elapsed());
    assert_eq!((counts.failed, counts.released), (0, 0), "{counts:?}");
    assert!(counts.lost > 0, "the killed nodes had jobs: {counts:?}");
    stage.settled(1).await;
    assert!(stage.leader().await.epoch > first.epoch);
}

fn take(nodes: &mut Vec<NodeProcess>, name: &str) -> NodeProcess {
    let at = nodes.iter().position(|node| node.name() == name).unwrap();
    nodes.remove(at)
}

/// Waits for a leader with a higher epoch and returns its node.
async fn leader_after(stage: &Stage, epoch: i32) -> String {
    eventually_some("another node is the leader", SOON, async || {
        let leader = stage.client.leader().await.unwrap()?;
        (leader.standing && leader.epoch > epoch).then(|| leader.node.to_string())
    })
    .await
}
