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
/// Wait for a beat, and a little for a busy machine to print a warning.
const EXPECTED: Duration = Duration::from_millis(3_300);

/// Waits until another node leads, and returns the time since `lost`.
async fn replaced(stage: &Stage, epoch: i32, lost: Instant) -> Duration {
    eventually_some("another node leads", SOON, async || {
        let leader = stage.client.leader().await.unwrap();
        leader.filter(|leader| leader.standing && leader.epoch > epoch)
    })
    .await;
    lost.elapsed()
}

/// Waits until a candidate waits behind the leader and has seen a beat: it has been there for a whole beat.
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
    let mut first = stage.node("first").candidate().session(SESSION).start();
    let epoch = stage.led_by(&first).await.epoch;
    let second = stage.node("second").session(SESSION).start();
    next_in_line(&stage, &second).await;

    let lost = Instant::now();
    first.kill();
    let after = replaced(&stage, epoch, lost).await;
    println!("replaced {after:?} after the kill (expected: at most {EXPECTED:?})");
    assert!(after < EXPIRED, "{after:?}");
    let ids = stage.submit([stage.runs.job("job")]).await;
    stage.runs.explain(&stage.over(&ids).await);
}
