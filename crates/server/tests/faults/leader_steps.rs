//! The leader is killed at each of its transactions: before the transaction reaches ZooKeeper, and after it is
//! committed and its reply is lost. One scenario contains all transactions. Each case injects the fault at another one.

use std::time::Duration;

use bellwether::{Job, State};
use bellwether_testkit::{Cut, Fault, Proxy, Request};
use futures::future::join_all;
use serde_json::json;

use crate::stage::{Stage, step};

type Step = (&'static str, fn(&Request<'_>) -> bool);

const STEPS: [Step; 5] = [
    ("claim", step::claim),
    ("assign", step::assign),
    ("close-orphan", step::close_orphan),
    ("remove-inbox", step::remove_inbox),
    ("promote", step::promote),
];

/// The number of jobs that are held until their worker is killed. More than the slots of one worker, so each of the two
/// workers has some.
const HELD: usize = 12;
/// The slots of each of the two workers.
const SLOTS: u32 = 8;
/// The number of jobs that fail once and wait for a backoff.
const FAILING: usize = 4;

async fn story(name: &str, is_claim: bool, fault: impl FnOnce(&Proxy) -> Fault) {
    let stage = Stage::set(name).await;
    let proxy = Proxy::to(&stage.to);
    let fault = fault(&proxy);
    let mut first = stage.node("first").candidate().behind(&proxy).start();
    let mut lost = stage.node("lost").worker().slots(SLOTS).start();
    let _spare = stage.node("spare").worker().slots(SLOTS).start();
    stage.workers(2).await;
    let epoch = if is_claim { 0 } else { stage.led_by(&first).await.epoch };

    stage.runs.hold();
    let failing = Job::new("fail", &json!({ "message": "once", "times": 1 }));
    let failing = failing.backoff(Duration::from_millis(100), Duration::from_millis(100));
    let jobs = (0..HELD).map(|n| stage.runs.held(&format!("held-{n}")));
    let jobs = jobs.chain((0..FAILING).map(|n| failing.clone().id(format!("failing-{n}"))));
    let ids = stage.submit(jobs).await;
    // The second candidate starts only after the fault. Otherwise it could take over on a busy machine, and the fault
    // would not be injected.
    let killing_leader = async {
        fault.fired().await;
        first.kill();
        stage.node("second").candidate().start()
    };
    let killing_worker = async {
        stage.begun(HELD).await;
        lost.kill();
        stage.runs.release();
    };
    let (second, ()) = tokio::join!(killing_leader, killing_worker);

    assert!(stage.led_by(&second).await.epoch > epoch, "{name}");
    let jobs = stage.over(&ids).await;
    assert!(jobs.iter().all(|job| job.state == State::Succeeded), "{name}: {jobs:?}");
    let counts = stage.runs.explain(&jobs);
    assert!(counts.lost > 0 && counts.released == 0, "{name}: the killed worker had jobs: {counts:?}");
    // If the first attempt was lost with its worker, the second succeeds without a failure.
    let failing = jobs.iter().filter(|job| job.id.as_str().starts_with("failing"));
    assert!(
        failing.clone().all(|job| job.failures + job.losses >= 1 && job.failures <= 1),
        "{name}: {jobs:?}"
    );
    stage.settled(1).await;
}

#[tokio::test]
async fn a_leader_killed_before_any_of_its_transactions_arrives_loses_nothing() {
    join_all(STEPS.map(|(name, step)| async move {
        let lose = |proxy: &Proxy| proxy.drop_request_and_cut(step, Cut::Reset);
        story(&format!("lost-{name}"), name == "claim", lose).await;
    }))
    .await;
}

#[tokio::test]
async fn a_leader_killed_after_any_of_its_transactions_committed_loses_nothing() {
    join_all(STEPS.map(|(name, step)| async move {
        let lose = |proxy: &Proxy| proxy.swallow_reply_and_cut(step, Cut::Reset);
        story(&format!("unheard-{name}"), name == "claim", lose).await;
    }))
    .await;
}
