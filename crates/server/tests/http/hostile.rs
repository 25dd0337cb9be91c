//! Malicious requests. Each gets a 4xx or is disconnected in time, and the gateway keeps serving.

use std::time::{Duration, Instant};

use bellwether_gateway::Limits;
use futures::future::join_all;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::{sleep, timeout};

use crate::ask::{Ask, exchange};
use crate::stage::{SOON, Stage};

const SHORT: Duration = Duration::from_millis(500);

async fn raw(stage: &Stage, bytes: &[u8]) -> Option<u16> {
    let stream = TcpStream::connect(stage.address()).await.unwrap();
    exchange(stream, bytes).await.map(|answer| answer.status)
}

#[tokio::test(flavor = "multi_thread")]
async fn input_that_is_not_http_is_refused_and_its_connection_closed() {
    let stage = Stage::with("http-odd", |builder| builder.limits(Limits::default().header_time(SHORT))).await;
    let long = "x".repeat(20_000);
    for (request, status) in [
        ("\r\n\r\n\r\n".to_owned(), None),
        ("nonsense\r\n\r\n".to_owned(), Some(400)),
        ("GET / HTTP/9.9\r\n\r\n".to_owned(), Some(400)),
        ("GET /v1/jobs HTTP/1.1\r\nhost localhost\r\n\r\n".to_owned(), Some(400)),
        ("GET /v1/jobs HTTP/1.1\r\nhost: localhost\r\nx: a\0b\r\n\r\n".to_owned(), Some(400)),
        (format!("GET /{long} HTTP/1.1\r\nhost: localhost\r\n\r\n"), Some(431)),
        (format!("GET /v1/jobs HTTP/1.1\r\nhost: localhost\r\nx: {long}\r\n\r\n"), Some(431)),
        (format!("GET /v1/jobs HTTP/1.1\r\nhost: localhost\r\n{}\r\n", "x: y\r\n".repeat(100)), Some(431)),
        (
            "GET /v1/jobs HTTP/1.1\r\nhost: localhost\r\nhost: a\r\nconnection: close\r\n\r\n".to_owned(),
            Some(400),
        ),
        ("POST /v1/jobs HTTP/1.1\r\nhost: localhost\r\ncontent-length: -1\r\n\r\n".to_owned(), Some(400)),
        (
            "POST /v1/jobs HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab"
                .to_owned(),
            Some(400),
        ),
        (
            "POST /v1/jobs HTTP/1.1\r\nhost: localhost\r\ncontent-length: 99999999999999999999\r\n\r\n"
                .to_owned(),
            Some(400),
        ),
        (
            "POST /v1/jobs HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked, identity\r\n\r\n"
                .to_owned(),
            Some(400),
        ),
    ] {
        assert_eq!(raw(&stage, request.as_bytes()).await, status, "{}", &request[..request.len().min(90)]);
    }
    let mut bad = Ask::get("/v1/jobs").text();
    bad.splice(5..5, *b"\xff\xfe");
    assert_eq!(raw(&stage, &bad).await, Some(400), "a path that is not ASCII");
    stage.get("/healthz").await.is(200);
}

/// A request inside the body of another request.
#[tokio::test(flavor = "multi_thread")]
async fn a_second_request_cannot_be_smuggled_in_a_body() {
    let stage = Stage::new("http-smuggle").await;
    let hidden = "POST /v1/jobs HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
                  content-length: 14\r\n\r\n{\"kind\":\"sum\"}";
    for (one, other) in [
        ("transfer-encoding: chunked", format!("content-length: {}", hidden.len() + 5)),
        ("content-length: 5", "transfer-encoding: chunked".to_owned()),
        ("content-length: 5", "transfer-encoding: Chunked".to_owned()),
        ("content-length: 5", "transfer-encoding : chunked".to_owned()),
        ("content-length: 5", "transfer-encoding: x".to_owned()),
    ] {
        let request = format!(
            "POST /v1/jobs HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n{one}\r\n{other}\r\n\r\n\
             0\r\n\r\n{hidden}"
        );
        let stream = TcpStream::connect(stage.address()).await.unwrap();
        let answer = exchange(stream, request.as_bytes()).await.expect("an answer");
        assert!([400, 411].contains(&answer.status), "{one}, {other}: {answer:?}");
        assert!(!answer.text().contains("HTTP/1.1"), "one answer: {answer:?}");
    }
    assert_eq!(stage.get("/v1/jobs").await.is(200).json()["jobs"], serde_json::json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_that_are_too_large_too_deep_or_not_utf8_are_refused() {
    let stage = Stage::new("http-bodies").await;
    let sized = |bytes: usize| format!(r#"{{"kind": "sum", "payload": "{}"}}"#, "x".repeat(bytes));
    stage.post("/v1/jobs", &sized(65_000)).await.is(201);
    stage.post("/v1/jobs", &sized(66_000)).await.problem(400, "invalid", "payload has");
    stage.post("/v1/jobs", &sized(300_000)).await.problem(413, "too-large", "at most 262144 bytes");
    stage.post("/v1/batch", &sized(5_000_000)).await.problem(413, "too-large", "at most 4194304 bytes");
    // The announced body is never sent: it is refused before anything is read.
    let announced = Ask::new("POST", "/v1/jobs").header("content-type: application/json");
    let announced = announced.header("content-length: 9000000000000").of(stage.address()).await;
    announced.problem(413, "too-large", "at most 262144 bytes");

    let deep =
        |depth: usize| format!(r#"{{"kind": "sum", "payload": {}{}}}"#, "[".repeat(depth), "]".repeat(depth));
    stage.post("/v1/jobs", &deep(100)).await.is(201);
    stage.post("/v1/jobs", &deep(30_000)).await.problem(400, "invalid", "payload nests deeper than 100");
    stage.post("/v1/jobs", &"[".repeat(200_000)).await.problem(400, "invalid", "the body is not valid");
    let broken = Ask::new("POST", "/v1/jobs").header("content-type: application/json");
    let broken = broken.body(b"{\"kind\": \"sum\", \"payload\": \"\xff\xfe\"}").of(stage.address()).await;
    broken.problem(400, "invalid", "the body is not valid");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_problem_quotes_little_of_a_long_body() {
    let stage = Stage::new("http-quoted").await;
    // Each of these bytes has seven when an error quotes it as text of JSON.
    let text = "\u{7f}".repeat(1_000_000);
    let answer = stage.post("/v1/batch", &format!(r#"{{"jobs": "{text}"}}"#)).await;
    assert!(answer.body.len() < 10_000, "{} bytes", answer.body.len());
    answer.problem(400, "invalid", "jobs: invalid type");
    // As many jobs as a body can have.
    let jobs = vec![r#"{"kind":""}"#; 300_000].join(",");
    let crowd = stage.post("/v1/batch", &format!(r#"{{"jobs": [{jobs}]}}"#)).await;
    crowd.problem(400, "invalid", "give 1 to 1000 jobs, not 300000");
}

#[tokio::test(flavor = "multi_thread")]
async fn slow_headers_slow_bodies_and_idle_connections_are_cut_off() {
    let limits = Limits::default().header_time(SHORT).request_time(2 * SHORT);
    let stage = Stage::with("http-slow", |builder| builder.limits(limits)).await;

    // A header that is sent byte by byte.
    let slow = async {
        let mut stream = TcpStream::connect(stage.address()).await.unwrap();
        let started = Instant::now();
        for byte in Ask::get("/v1/jobs").text() {
            if stream.write_all(&[byte]).await.is_err() {
                break;
            }
            sleep(Duration::from_millis(50)).await;
        }
        started.elapsed()
    };
    // A body that is never sent.
    let stuck = async {
        let request = Ask::new("POST", "/v1/jobs")
            .header("content-type: application/json")
            .header("content-length: 10");
        request.of(stage.address()).await.problem(504, "unknown", "read the state before you repeat it");
    };
    // An idle connection.
    let idle = async {
        let mut stream = TcpStream::connect(stage.address()).await.unwrap();
        stream.write_all(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
        let mut read = Vec::new();
        timeout(SOON, stream.read_to_end(&mut read)).await.unwrap().unwrap();
        assert!(String::from_utf8(read).unwrap().ends_with("ok"));
    };
    let (slow, (), ()) = tokio::join!(slow, stuck, idle);
    assert!(slow < Duration::from_secs(5), "{slow:?}");
    stage.get("/healthz").await.is(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_above_the_limit_get_503_until_idle_ones_are_closed() {
    let limits = Limits::default().connections(50).header_time(2 * SHORT);
    let stage = Stage::with("http-crowd", |builder| builder.limits(limits)).await;
    let crowd = join_all((0..50).map(|_| TcpStream::connect(stage.address()))).await;
    let crowd = crowd.into_iter().map(Result::unwrap).collect::<Vec<_>>();
    let beyond = timeout(SOON, async {
        loop {
            // The gateway may not have accepted all earlier connections yet.
            let answer = stage.get("/healthz").await;
            if answer.status == 503 {
                break answer;
            }
        }
    });
    let beyond = beyond.await.unwrap();
    assert_eq!(beyond.header("retry-after"), Some("1"));
    assert_eq!(beyond.json()["type"], "urn:bellwether:problem:saturated");
    let room = timeout(SOON, async {
        while stage.get("/healthz").await.status != 200 {
            sleep(Duration::from_millis(20)).await;
        }
    });
    room.await.expect("idle connections are closed");
    drop(crowd);
}

/// The addresses of the loopback interface stand for machines.
#[tokio::test(flavor = "multi_thread")]
async fn one_address_cannot_take_the_connections_of_others() {
    let limits = Limits::default().connections_per_address(10);
    let stage = Stage::with("http-greedy", |builder| builder.limits(limits)).await;
    let from = async |address: &str| {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind(format!("{address}:0").parse().unwrap()).unwrap();
        socket.connect(stage.address()).await.unwrap()
    };
    let ask = Ask::get("/healthz").text();
    let mut greedy = Vec::new();
    for _ in 0..10 {
        greedy.push(from("127.0.0.2").await);
    }
    let refused = timeout(SOON, async {
        loop {
            // The gateway may not have accepted all earlier connections yet.
            let answer = exchange(from("127.0.0.2").await, &ask).await.unwrap();
            if answer.status == 503 {
                break answer;
            }
        }
    });
    assert_eq!(refused.await.unwrap().json()["type"], "urn:bellwether:problem:saturated");
    assert_eq!(exchange(from("127.0.0.3").await, &ask).await.unwrap().status, 200);
    drop(greedy);
}

const CONTINUE: &[u8; 25] = b"HTTP/1.1 100 Continue\r\n\r\n";

#[tokio::test(flavor = "multi_thread")]
async fn a_saturated_gateway_sends_retry_after_and_limits_each_caller() {
    let limits = Limits::default()
        .requests(4)
        .requests_per_caller(2)
        .remote_workers(1)
        .waits(1)
        .request_time(2 * SOON);
    let stage = Stage::with("http-full", |builder| builder.limits(limits)).await;
    stage.post("/v1/jobs", r#"{"id": "a", "kind": "nobody"}"#).await.is(201);
    // Two requests whose bodies are never sent. `100 Continue` shows that a request was admitted.
    let head = "POST /v1/jobs HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 9\r\n\
        expect: 100-continue\r\n\r\n";
    let mut held = Vec::new();
    for _ in 0..2 {
        let mut stream = TcpStream::connect(stage.address()).await.unwrap();
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut asked = [0; CONTINUE.len()];
        timeout(SOON, stream.read_exact(&mut asked)).await.unwrap().unwrap();
        assert_eq!(asked, *CONTINUE);
        held.push(stream);
    }
    let full = stage.get("/v1/jobs/a").await.problem(
        429,
        "too-many-requests",
        "at most 2 concurrent requests per caller",
    );
    assert_eq!(full.header("retry-after"), Some("1"));
    // Health checks are answered.
    stage.get("/healthz").await.is(200);
    drop(held);

    // One of two waits is admitted, and the other is refused immediately.
    let path = "/v1/jobs/a/wait?timeout=20s";
    let second = async {
        tokio::select! { answer = stage.get(path) => answer, answer = stage.get(path) => answer }
    };
    let second = timeout(SOON / 2, second).await.unwrap();
    let second = second.problem(503, "saturated", "the limit of concurrent waits is reached");
    assert_eq!(second.header("retry-after"), Some("1"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_ends_long_polls_and_closes_the_port() {
    let stage = Stage::new("http-stop").await;
    stage.post("/v1/jobs", r#"{"id": "a", "kind": "nobody"}"#).await.is(201);
    let mut waiting = TcpStream::connect(stage.address()).await.unwrap();
    waiting.write_all(&Ask::get("/v1/jobs/a/wait").text()).await.unwrap();
    // The wait has started once a request on a later connection was answered.
    stage.get("/healthz").await.is(200);
    sleep(Duration::from_millis(100)).await;
    let started = Instant::now();
    stage.gateway.stop().await;
    let mut read = Vec::new();
    timeout(SOON, waiting.read_to_end(&mut read)).await.unwrap().unwrap();
    assert!(String::from_utf8(read).unwrap().starts_with("HTTP/1.1 503"));
    assert!(started.elapsed() < Duration::from_secs(4), "{:?}", started.elapsed());
    stage.gateway.ended().await.unwrap();
    assert!(TcpStream::connect(stage.address()).await.is_err());
}
