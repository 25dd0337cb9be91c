//! The progress and checkpoint of an attempt whose worker is killed.

use bellwether::{Job, State};
use bellwether_testkit::eventually;
use serde_json::json;

use crate::stage::{SOON, Stage};

#[tokio::test]
async fn a_checkpoint_survives_the_kill_of_its_worker_and_of_the_leader() {
    let stage = Stage::set("checkpoint").await;
    let mut leader = stage.node("leader").candidate().start();
    stage.led_by(&leader).await;
    let _next = stage.node("next").candidate().start();
    let mut killed = stage.node("killed").worker().start();
    stage.worker(&killed, None).await;
    let sleep = Job::new("sleep", &json!({ "millis": 5_000 })).id("sleep");
    let ids = stage.submit([sleep]).await;
    eventually("half of the job is done and recorded", SOON, async || {
        let progress = stage.job("sleep").await.progress;
        progress.and_then(|progress| progress.percent()).is_some_and(|percent| percent >= 50)
    })
    .await;
    let left = stage.job("sleep").await.progress.unwrap();
    killed.kill();
    leader.kill();
    let spare = stage.node("spare").worker().start();
    stage.worker(&spare, None).await;
    let job = stage.over(&ids).await.remove(0);
    assert_eq!((job.state, job.attempt, job.losses), (State::Succeeded, 2, 1), "{job:?}");
    let end = job.progress.unwrap();
    assert_eq!(end.percent(), Some(100));
    // The job continued from the last checkpoint of the killed worker, which may be newer than the one that was read.
    let from = |progress: &bellwether_core::job::Progress| {
        u64::from_le_bytes(progress.checkpoint().try_into().unwrap())
    };
    assert!(end.message().starts_with("resumed after "), "{end:?}");
    assert!(from(&left) >= 2_500 && from(&end) >= 5_000, "{left:?} {end:?}");
}
