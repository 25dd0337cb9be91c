//! Event streams.

use std::time::Duration;

use bellwether::{Client, Job};
use bellwether_gateway::Limits;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::time::timeout;

use crate::ask::Ask;
use crate::stage::{SOON, Stage};

pub(crate) struct Stream {
    lines: Lines<BufReader<OwnedReadHalf>>,
    _open: OwnedWriteHalf,
}

impl Stream {
    pub(crate) async fn open(stage: &Stage, path: &str) -> Self {
        let stream = TcpStream::connect(stage.address()).await.unwrap();
        let (read, mut write) = stream.into_split();
        write.write_all(&Ask::get(path).text()).await.unwrap();
        let mut stream = Self { lines: BufReader::new(read).lines(), _open: write };
        let status = stream.line().await.unwrap();
        assert!(status.starts_with("HTTP/1.1 200"), "{status}");
        while stream.line().await.unwrap() != "retry: 2000" {}
        stream
    }

    pub(crate) async fn line(&mut self) -> Option<String> {
        timeout(SOON, self.lines.next_line()).await.expect("a line in time").unwrap()
    }

    /// Returns the next event's name and data.
    pub(crate) async fn next(&mut self) -> (String, Value) {
        loop {
            let line = self.line().await.expect("the stream continues");
            if let Some(name) = line.strip_prefix("event: ") {
                let data = self.line().await.unwrap();
                let data = serde_json::from_str(data.strip_prefix("data: ").unwrap()).unwrap();
                return (name.to_owned(), data);
            }
        }
    }

    /// Returns the states of a job up to a given one.
    async fn states(&mut self, job: &str, last: &str) -> Vec<String> {
        let mut states = Vec::new();
        while states.last().is_none_or(|state| state != last) {
            let (name, event) = self.next().await;
            assert_eq!(name, "job");
            if event["job"] == job {
                states.push(event["state"].as_str().unwrap().to_owned());
            }
        }
        states
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_is_followed_from_its_submission_to_its_end() {
    let stage = Stage::new("http-events").await;
    let (mut all, mut of_kind) =
        (Stream::open(&stage, "/v1/events").await, Stream::open(&stage, "/v1/events?kind=sleep").await);
    stage.post("/v1/jobs", r#"{"id": "a", "kind": "sum", "payload": [1, 2]}"#).await.is(201);
    assert_eq!(all.states("a", "queued").await, ["queued"]);
    let node = stage.node().await;
    // Short-lived states may be omitted; the last one is always sent.
    let states = all.states("a", "succeeded").await;
    assert!(states == ["running", "succeeded"] || states == ["succeeded"], "{states:?}");

    stage.post("/v1/jobs", r#"{"id": "b", "kind": "sleep", "payload": {"millis": 600}}"#).await.is(201);
    let mut states = of_kind.states("b", "succeeded").await;
    states.retain(|state| state != "queued");
    assert_eq!(states, ["running", "succeeded"]);
    stage.post("/v1/jobs", r#"{"id": "c", "kind": "sleep", "delay": "1h"}"#).await.is(201);
    assert_eq!(of_kind.states("c", "delayed").await, ["delayed"]);
    stage.post("/v1/jobs/c/cancel", "").await.is(200);
    assert_eq!(of_kind.states("c", "cancelled").await, ["cancelled"]);
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn streams_are_bounded_and_end_with_the_gateway() {
    let limits = Limits::default().streams(1);
    let stage = Stage::with("http-streams", |builder| builder.limits(limits)).await;
    stage.get("/v1/events?job=a%2Fb").await.problem(400, "invalid", "job id has '/'");
    let mut only = Stream::open(&stage, "/v1/events?job=a").await;
    let second = stage.get("/v1/events").await.problem(503, "saturated", "event streams");
    assert_eq!(second.header("retry-after"), Some("1"));
    stage.gateway.stop().await;
    let ended = async { while only.line().await.is_some() {} };
    timeout(Duration::from_secs(10), ended).await.expect("the stream ends");
}

/// Runs a job of the kind `sum` to its end.
async fn run_to_end(stage: &Stage, id: &str, payload: &str) {
    let job = format!(r#"{{"id": "{id}", "kind": "sum", "payload": {payload}}}"#);
    stage.post("/v1/jobs", &job).await.is(201);
    stage.get(&format!("/v1/jobs/{id}/wait?timeout=20s")).await.is(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn kinds_have_rates_and_run_times_of_jobs_that_end_in_a_quiet_namespace_without_a_follower() {
    let stage = Stage::new("http-statistics").await;
    let node = stage.node().await;
    let mut ids = 0..;
    // The gateway counts from its first sample.
    bellwether_testkit::eventually("both ends are counted", SOON, async || {
        let number = ids.next().unwrap();
        run_to_end(&stage, &format!("a-{number}"), "[1]").await;
        run_to_end(&stage, &format!("dead-{number}"), r#""text""#).await;
        let found = stage.get("/v1/kinds/statistics").await.is(200).json();
        let kind = &found["kinds"][0];
        kind["dead_per_second"].as_f64() > Some(0.0) && kind["run_time"]["jobs"].as_u64() >= Some(1)
    })
    .await;
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_that_starts_with_a_thousand_open_jobs_counts_while_it_has_a_follower() {
    let to = bellwether_testkit::namespace("http-statistics-busy");
    let client = Client::connect(&to).await.unwrap();
    let later = || Job::new("sum", &[1]).delay(Duration::from_secs(3_600));
    futures::future::try_join_all((0..1_001).map(|_| client.submit(later()))).await.unwrap();
    let stage = Stage::at(to, |builder| builder).await;
    let node = stage.node().await;
    let statistics = async || stage.get("/v1/kinds/statistics").await.is(200).json();
    let sampled = async || stage.get("/v1/samples").await.is(200).json()["samples"][0].is_object();
    bellwether_testkit::eventually("the first sample", SOON, sampled).await;
    // Until the second sample, ten seconds later, the rates are not known.
    assert_eq!(statistics().await["observed"], "0s");
    let mut stream = Stream::open(&stage, "/v1/events").await;
    run_to_end(&stage, "a", "[1]").await;
    run_to_end(&stage, "dead", r#""text""#).await;
    while stream.next().await.1["state"] != "dead" {}
    let counted = async || {
        let found = statistics().await;
        let kind = &found["kinds"][0];
        kind["succeeded_per_second"].as_f64() > Some(0.0) && kind["dead_per_second"].as_f64() > Some(0.0)
    };
    bellwether_testkit::eventually("both ends are counted", SOON, counted).await;
    let found = statistics().await;
    assert_eq!((&found["kinds"][0]["kind"], &found["incomplete"]), (&"sum".into(), &false.into()));
    assert_eq!(found["kinds"][0]["run_time"]["jobs"], 1, "{found}");
    node.stop().await;
}
