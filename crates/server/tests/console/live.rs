//! Pages follow the cluster without being loaded again.

use std::process::Command;
use std::time::Duration;

use bellwether::{Handlers, Node};
use bellwether_testkit::{Process, binary_or, eventually};

use crate::browser::{browse, browse_in_chromium};
use crate::stage::{SOON, Stage};

/// A node in its own process, which can be killed.
fn node_process(stage: &Stage) -> Process {
    let mut command = Command::new(binary_or(env!("CARGO_BIN_EXE_bellwether")));
    command.args([
        "--zookeeper",
        &stage.to,
        "node",
        "--roles",
        "candidate,worker",
        "--session-timeout",
        "8s",
    ]);
    Process::start("node", &mut command).unwrap()
}

/// Handlers that end the job of the killed node.
fn ends_at_once() -> Handlers {
    Handlers::new().job("sleep", |_, _: serde_json::Value| async move { Ok(()) })
}

/// The killed node led and ran the job: its session expires, another node takes over, and the job is taken back and runs again.
#[tokio::test(flavor = "multi_thread")]
async fn a_job_is_followed_to_its_end_while_its_worker_and_leader_is_killed() {
    let stage = Stage::new("console-killed").await;
    let mut first = node_process(&stage);
    stage.post("/v1/jobs", r#"{"id": "a", "kind": "sleep", "payload": {"millis": 600000}}"#).await.is(201);
    eventually("the job runs", SOON, async || stage.get("/v1/jobs/a").await.json()["state"] == "running")
        .await;
    browse(stage.address(), async |page| {
        page.open("#/").await;
        // A slow machine may lose a session before.
        let epoch = stage.get("/v1/leader").await.is(200).json()["epoch"].clone();
        page.shows(&format!("epoch {epoch},")).await;
        page.run("window.same = true").await;
        first.kill();
        page.shows("has ended, and no other node has taken over yet").await;
        page.shows("of lost workers wait for the leader").await;
        let second = Node::builder(&stage.to).handlers(ends_at_once()).start().await.unwrap();
        page.hides(&format!("epoch {epoch},")).await;
        page.hides("has ended, and no other node").await;
        page.run("location.hash = '#/jobs/a'").await;
        page.shows("Ended as succeeded").await;
        page.shows("was lost with its worker").await;
        assert_eq!(page.run("return window.same").await, true, "the page was not loaded again");
        second.stop().await;
    })
    .await;
}

/// A further event must not put off the refresh after an event.
#[tokio::test(flavor = "multi_thread")]
async fn the_overview_follows_a_cluster_that_has_events_all_the_time() {
    let stage = Stage::new("console-busy").await;
    let busy = async {
        for job in 0.. {
            stage.post("/v1/jobs", &format!(r#"{{"id": "{job}", "kind": "nobody"}}"#)).await.is(201);
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let queued = "return document.querySelector('.card[href=\"#/jobs?state=queued\"] b')?.textContent ?? ''";
    let follows = browse(stage.address(), async |page| {
        page.open("#/").await;
        page.until("the number is shown", async |page| page.run(queued).await != "").await;
        for refresh in 0..3 {
            let before = page.run(queued).await;
            page.until(&format!("refresh {refresh}"), async |page| page.run(queued).await != before).await;
        }
    });
    tokio::select! {
        () = follows => {}
        () = busy => unreachable!("it does not end"),
    }
}

/// The list has no timer: only an event can change it.
#[tokio::test(flavor = "multi_thread")]
async fn the_list_of_jobs_follows_the_events() {
    let stage = Stage::new("console-events").await;
    stage.post("/v1/jobs", r#"{"id": "a", "kind": "nobody"}"#).await.is(201);
    browse(stage.address(), async |page| {
        page.open("#/jobs").await;
        page.shows("1 loaded, that is all").await;
        page.shows("Live").await;
        page.run("window.requests = performance.getEntriesByType('resource').length").await;
        stage.post("/v1/jobs/a/cancel", "").await.is(200);
        let state = "return document.querySelector('tr[data-key=a] .badge')?.textContent ?? ''";
        page.until("the row has the new state", async |page| page.run(state).await == "cancelled").await;
        stage.post("/v1/jobs", r#"{"id": "b", "kind": "nobody"}"#).await.is(201);
        page.shows("Jobs have changed: load again").await;
        let requests = "return performance.getEntriesByType('resource').length - window.requests";
        assert_eq!(page.run(requests).await, 0, "nothing was read again");
        page.click("Jobs have changed: load again").await;
        page.shows("2 loaded, that is all").await;
        page.hides("Jobs have changed").await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_is_followed_to_its_end_while_the_leader_is_replaced() {
    let stage = Stage::new("console-live").await;
    let first = stage.node().await;
    stage.post("/v1/kinds/sum/pause", "").await.is(200);
    stage.post("/v1/jobs", r#"{"id": "a", "kind": "sum", "payload": [1]}"#).await.is(201);
    browse(stage.address(), async |page| {
        page.open("#/").await;
        page.shows("epoch 1").await;
        let second = stage.node().await;
        page.shows("Next to lead").await;
        page.open("#/jobs/a").await;
        page.shows("Why it is not running").await;
        page.run("window.same = true").await;
        first.stop().await;
        stage.post("/v1/kinds/sum/resume", "").await.is(200);
        page.shows("Ended as succeeded").await;
        page.run("location.hash = '#/'").await;
        page.shows("epoch 2").await;
        assert_eq!(page.run("return window.same").await, true, "the page was not loaded again");
        second.stop().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_shows_since_when_it_is_stale() {
    let stage = Stage::new("console-stale").await;
    browse(stage.address(), async |page| {
        page.open("#/jobs").await;
        page.shows("Live").await;
        stage.gateway.stop().await;
        page.shows("Stale since").await;
    })
    .await;
}

/// A browser opens at most six connections to a server, and each visible page follows the events on one. The tabs of Chromium's
/// headless shell are all visible.
#[tokio::test(flavor = "multi_thread")]
async fn many_tabs_are_open_at_the_same_time() {
    let stage = Stage::new("console-tabs").await;
    browse_in_chromium(stage.address(), async |page| {
        for _ in 0..8 {
            let tab = page.client.new_window(true).await.unwrap().handle;
            page.client.switch_to_window(tab).await.unwrap();
            page.open("#/jobs").await;
            page.shows("Live").await;
            page.shows("No jobs yet").await;
        }
    })
    .await;
}
