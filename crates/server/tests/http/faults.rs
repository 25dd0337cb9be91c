//! Answers while ZooKeeper is unreachable, slow, or refuses, and while the gateway is saturated.

use std::time::Duration;

use bellwether::Client;
use bellwether_gateway::{Gateway, Limits};
use bellwether_testkit::{Cut, Proxy, RawClient, eventually, namespace, shared};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::ask::Ask;
use crate::events::Stream;
use crate::stage::{SOON, Stage};

/// A gateway behind a proxy. The deadline of its client is one second.
async fn behind(name: &str, limits: Limits) -> (Stage, Proxy) {
    let to = namespace(name);
    // The namespace is created without the proxy.
    Client::connect(&to).await.unwrap().close().await;
    let proxy = Proxy::to(&to);
    let client =
        Client::builder(proxy.connect_string()).deadline(Duration::from_secs(1)).connect().await.unwrap();
    let builder = Gateway::builder(client).listen("127.0.0.1:0".parse().unwrap()).limits(limits);
    (Stage { gateway: builder.start().await.unwrap(), to }, proxy)
}

#[tokio::test(flavor = "multi_thread")]
async fn without_zookeeper_the_gateway_is_alive_but_not_ready_and_streams_get_a_gap() {
    let (stage, proxy) = behind("http-cut-off", Limits::default()).await;
    let mut events = Stream::open(&stage, "/v1/events").await;
    proxy.refuse();
    proxy.cut(Cut::Reset);
    eventually("the gateway is not ready", SOON, async || stage.get("/readyz").await.status == 503).await;
    stage.get("/readyz").await.problem(503, "unavailable", "ZooKeeper does not serve this gateway now");
    stage.get("/healthz").await.is(200);
    let refused = stage.get("/v1/jobs").await.problem(503, "unavailable", "does not serve this gateway now");
    assert!(!refused.text().contains("127.0.0.1"), "no address of ZooKeeper: {}", refused.text());
    assert_eq!(refused.header("retry-after"), Some("1"));
    proxy.accept();
    assert_eq!(events.next().await.0, "gap");
    eventually("the gateway is ready", SOON, async || stage.get("/readyz").await.status == 200).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_to_a_slow_zookeeper_times_out() {
    let limits = Limits::default().request_time(Duration::from_millis(300));
    let (stage, proxy) = behind("http-late", limits).await;
    proxy.delay(Duration::from_millis(600));
    stage.get("/v1/leader").await.problem(504, "late", "try again");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_of_zookeeper_is_answered_with_502() {
    const ADMIN: i32 = 16;
    let (stage, _proxy) = behind("http-no-auth", Limits::default()).await;
    let (_, chroot) = stage.to.split_once('/').unwrap();
    let mut hand = RawClient::connect(shared().address()).unwrap();
    hand.set_permissions(&format!("/{chroot}/epoch"), ADMIN).unwrap();
    let refused = stage.get("/v1/leader").await.problem(502, "refused", "the gateway's log has the reason");
    assert!(!refused.text().contains("world"), "no user: {}", refused.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_problem_has_what_its_caller_can_do() {
    const ADMIN: i32 = 16;
    let (stage, proxy) = behind("http-remedies", Limits::default()).await;
    stage.get("/v1/jobs/none").await.problem(404, "not-found", "no job none").remedy("fix_input");
    stage.get("/v1/jobs?limit=0").await.problem(400, "invalid", "limit").remedy("fix_input");
    let (_, chroot) = stage.to.split_once('/').unwrap();
    let mut hand = RawClient::connect(shared().address()).unwrap();
    hand.set_permissions(&format!("/{chroot}/epoch"), ADMIN).unwrap();
    stage.get("/v1/leader").await.problem(502, "refused", "").remedy("give_up");

    // With an id, the same submission again is the same job; without one, it would be another job.
    for (job, id, remedy) in
        [("lost-reply", r#""id": "lost-reply", "#, "retry"), ("lost-anonymous", "", "read_back")]
    {
        eventually("the gateway is ready", SOON, async || stage.get("/readyz").await.status == 200).await;
        let lost = proxy.swallow_reply_and_cut(
            move |request: &bellwether_testkit::Request<'_>| request.mentions(job),
            Cut::Reset,
        );
        proxy.refuse();
        let body = format!(r#"{{{id}"kind": "sum", "payload": "{job}"}}"#);
        stage.post("/v1/jobs", &body).await.problem(504, "unknown", "").remedy(remedy);
        lost.fired().await;
        stage.get("/v1/jobs").await.problem(503, "unavailable", "").remedy("retry");
        proxy.accept();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn only_one_purge_runs_at_a_time() {
    let (stage, proxy) = behind("http-purges", Limits::default()).await;
    let purge = r#"{"state": "dead", "older_than": "1d"}"#;
    let held = proxy.hold_reply(|request: &bellwether_testkit::Request<'_>| request.mentions("/jobs/"));
    let first = async {
        let first = stage.post("/v1/purge", purge).await.is(200).json();
        assert_eq!(first["complete"], true, "{first}");
    };
    let second = async {
        held.fired().await;
        stage.post("/v1/purge", purge).await.problem(503, "saturated", "another purge is running");
        held.release();
    };
    tokio::join!(first, second);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_purge_that_reaches_its_time_limit_is_incomplete_and_can_be_continued() {
    let (stage, proxy) = behind("http-long-purge", Limits::default()).await;
    let purge = r#"{"state": "dead", "remove": true}"#;
    // The purge needs 32 round trips, each within the client's deadline, but together above the time limit of a purge.
    proxy.delay(Duration::from_millis(300));
    let stopped = stage.post("/v1/purge", purge).await.is(200).json();
    assert_eq!(stopped["complete"], false, "{stopped}");
    proxy.delay(Duration::ZERO);
    let done = stage.post("/v1/purge", purge).await.is(200).json();
    assert_eq!(done["complete"], true, "{done}");
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_batches_are_limited() {
    let stage = Stage::new("http-batches").await;
    let begun =
        Ask::new("POST", "/v1/batch").header("content-type: application/json").header("content-length: 10");
    let batch = r#"{"jobs": [{"id": "a", "kind": "sum", "payload": 1}]}"#;
    let mut stuck = Vec::new();
    // One more request each time: on a slow machine the first ones time out before the fourth has started.
    eventually("four are under way", SOON, async || {
        let mut stream = TcpStream::connect(stage.address()).await.unwrap();
        stream.write_all(&begun.text()).await.unwrap();
        stuck.push(stream);
        let answer = stage.post("/v1/batch", batch).await;
        if answer.status == 200 {
            return false;
        }
        answer.problem(503, "saturated", "the limit of concurrent batches is reached");
        true
    })
    .await;
    drop(stuck);
    eventually("there is room", SOON, async || stage.post("/v1/batch", batch).await.status == 200).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_without_events_sends_comments() {
    let stage = Stage::new("http-alive").await;
    let mut events = Stream::open(&stage, "/v1/events").await;
    while events.line().await.expect("the stream continues") != ":" {}
}
