//! How fast a lost leader is replaced, with the default times of a namespace and the default session timeout.

use std::time::{Duration, Instant};

use bellwether_testkit::eventually_some;

use crate::process::NodeProcess;
use crate::stage::{SOON, Stage};

/// The default session timeout of a node.
const SESSION: Duration = Duration::from_secs(10);
/// The session of a killed leader lives for at least this long after its last ping, which is sent a third of the timeout
/// before the kill at the latest.
const EXPIRED: Duration = Duration::from_secs(6);
/// The wait for a beat, 3 s, and a claim. The simulator proves this bound in virtual time
/// (`a_silent_leader_is_replaced_before_its_session_ends`).
const EXPECTED: Duration = Duration::from_millis(3_300);
/// What the processes, ZooKeeper and this test may lose on a busy machine, in the median of the kills.
const ALLOWANCE: Duration = Duration::from_millis(700);
const KILLS: usize = 3;

/// Waits until another node leads, and returns the time since `lost`.
async fn replaced(stage: &Stage, epoch: i32, lost: Instant) -> Duration {
    eventually_some("another node leads", SOON, async || {
        let leader = stage.client.leader().await.unwrap();
        leader.filter(|leader| leader.standing && leader.epoch > epoch)
    })
    .await;
    lost.elapsed()
}

/// Waits until only one candidate waits behind the leader, and has seen a beat: it has been there for a whole beat.
async fn next_in_line(stage: &Stage, node: &NodeProcess) {
    let state = bellwether_core::path::ELECTION;
    eventually_some(&format!("{} is a candidate", node.name()), SOON, async || {
        let candidates = stage.zk.children(state.into()).await.unwrap().unwrap_or_default();
        (candidates.len() == 2).then_some(())
    })
    .await;
    let beat = async || stage.zk.get(bellwether_core::path::LEADING.into()).await.unwrap().unwrap().version;
    let seen = beat().await;
    eventually_some("two more beats", SOON, async || (beat().await >= seen + 2).then_some(())).await;
}

#[tokio::test]
async fn a_killed_leader_is_replaced_before_its_session_ends() {
    let stage = Stage::set("failover-killed").await;
    let mut leader = stage.node("0").candidate().session(SESSION).start();
    stage.led_by(&leader).await;
    let mut times = Vec::new();
    for kill in 1..=KILLS {
        let node = stage.node(&kill.to_string()).session(SESSION);
        // The last one runs the job.
        let next = if kill == KILLS { node.start() } else { node.candidate().start() };
        next_in_line(&stage, &next).await;
        let epoch = stage.led_by(&leader).await.epoch;
        let lost = Instant::now();
        leader.kill();
        times.push(replaced(&stage, epoch, lost).await);
        leader = next;
    }
    println!("replaced after {times:?} (expected: at most {EXPECTED:?})");
    times.sort();
    assert!(times[KILLS - 1] < EXPIRED, "no session has ended before: {times:?}");
    assert!(times[KILLS / 2] <= EXPECTED + ALLOWANCE, "{times:?}");
    let ids = stage.submit([stage.runs.job("job")]).await;
    stage.runs.explain(&stage.over(&ids).await);
}
