//! Pages follow the cluster without being loaded again.

use crate::browser::browse;
use crate::stage::Stage;

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

/// A browser opens at most six connections to a server, and each visible page follows the events on one.
#[tokio::test(flavor = "multi_thread")]
async fn many_tabs_are_open_at_the_same_time() {
    let stage = Stage::new("console-tabs").await;
    browse(stage.address(), async |page| {
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
