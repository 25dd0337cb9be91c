//! Jobs that no worker can run yet.

use std::process::Command;

use bellwether::State;
use bellwether::client::WaitReason;
use bellwether_testkit::{binary_or, eventually};

use crate::stage::{SOON, Stage};

fn show(stage: &Stage, id: &str) -> String {
    let mut command = Command::new(binary_or(env!("CARGO_BIN_EXE_bellwether")));
    let shown = command.args(["--zookeeper", &stage.to, "job", "show", id]).output().unwrap();
    assert!(shown.status.success(), "{shown:?}");
    String::from_utf8(shown.stdout).unwrap()
}

#[tokio::test]
async fn jobs_report_that_they_wait_for_a_worker_and_run_when_one_joins() {
    let stage = Stage::set("no-worker").await;
    let ids = stage.submit((0..20).map(|n| stage.runs.job(&format!("job-{n}")))).await;
    assert!(
        show(&stage, "job-0").contains("no live worker has a handler for its kind"),
        "{}",
        show(&stage, "job-0")
    );

    let leader = stage.node("leader").candidate().start();
    stage.led_by(&leader).await;
    eventually("the leader knows the jobs", SOON, async || {
        leader.metric(bellwether::metrics::QUEUE_DEPTH) == Some(20.0)
    })
    .await;
    // An autoscaler can start the first worker of a kind because the kind has a series before any worker serves it.
    assert_eq!((leader.queued("exec"), leader.queued("other")), (Some(20.0), Some(0.0)));
    assert!(
        show(&stage, "job-0").contains("no live worker has a handler for its kind"),
        "{}",
        show(&stage, "job-0")
    );
    let jobs = stage.client.get_many(&ids).await.unwrap();
    assert!(jobs.iter().flatten().all(|job| job.waiting == Some(WaitReason::UnknownKind)), "{jobs:?}");

    // A worker without the tag cannot run the job, and the wait reason is different.
    let tagged = stage.submit([stage.runs.job("tagged").tags(["gpu"])]).await;
    let _worker = stage.node("worker").worker().start();
    let jobs = stage.over(&ids).await;
    assert!(jobs.iter().all(|job| job.state == State::Succeeded && job.attempt == 1), "{jobs:?}");
    assert_eq!(stage.job("tagged").await.waiting, Some(WaitReason::Tags));
    assert_eq!(leader.queued("exec"), Some(1.0));
    stage.client.cancel(&tagged[0]).await.unwrap();
    stage.runs.explain(&jobs);
    stage.settled(1).await;
}
