//! The election strategy `single`, with nodes from the command line.

use bellwether::State;
use bellwether_core::path;

use crate::stage::Stage;

#[tokio::test]
async fn with_strategy_single_a_killed_leader_is_replaced_and_all_jobs_end() {
    let stage = Stage::set("single").await;
    let mut leader = stage.node("first").candidate().election("single").start();
    let epoch = stage.led_by(&leader).await.epoch;
    let _second = stage.node("second").election("single").start();
    stage.workers(1).await;
    assert!(stage.zk.get(path::LEADER.into()).await.unwrap().is_some_and(|znode| znode.owner != 0));
    assert_eq!(stage.zk.children(path::ELECTION.into()).await.unwrap(), Some(vec![]));

    let ids = stage.submit((0..50).map(|n| stage.runs.job(&format!("job-{n}")))).await;
    leader.kill();
    let jobs = stage.over(&ids).await;
    assert!(jobs.iter().all(|job| job.state == State::Succeeded && job.attempt == 1), "{jobs:?}");
    stage.runs.explain(&jobs);
    let now = stage.leader().await;
    assert!(now.node.as_str() == "second" && now.epoch > epoch, "{now:?}");
}
