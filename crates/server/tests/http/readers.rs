//! Readers that ask a gateway in its own process for large pages and do not read them.

use std::net::SocketAddr;

use bellwether::{Client, Job};
use bellwether_gateway::Limits;
use bellwether_testkit::eventually;
use futures::future::join_all;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;

use crate::ask::{Ask, exchange};
use crate::idle_connections::Gateway;
use crate::stage::{SOON, Stage};

/// As many requests as one caller may have.
const READERS: usize = 128;

/// With their payloads, 14 MiB in JSON.
const JOBS: usize = 40;

/// As text each of these bytes has six in JSON.
static PAYLOAD: [u8; 60_000] = [1; 60_000];

/// Limit of the memory that the readers add: a page of 1 MiB for each, one more job where a page is almost full, and what
/// is needed to read eight pages at a time. Measured: see `docs/security.md`.
const MOST_BYTES: u64 = 256 * 1024 * 1024;

/// Sends a request and reads the first byte of the answer.
async fn reader(address: SocketAddr, path: &str) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4_096).unwrap();
    let mut stream = socket.connect(address).await.unwrap();
    stream.write_all(&Ask::get(path).text()).await.unwrap();
    timeout(SOON, stream.read_u8()).await.expect("the answer begins in time").unwrap();
    stream
}

#[tokio::test(flavor = "multi_thread")]
async fn readers_of_large_pages_that_do_not_read_use_bounded_memory() {
    let gateway = Gateway::start("http-readers").await;
    let client = Client::connect(&gateway.to).await.unwrap();
    for n in 0..JOBS {
        let job = Job::raw("nobody", "text/plain", PAYLOAD).id(format!("large-{n}"));
        client.submit(job).await.unwrap();
    }
    let before = gateway.peak();
    for path in ["/v1/jobs?limit=1000", "/v1/jobs?limit=1000&payloads=true"] {
        let readers = join_all((0..READERS).map(|_| reader(gateway.address, path))).await;
        let grown = gateway.peak().saturating_sub(before);
        println!("{path}: {READERS} readers add {} KiB", grown / 1024);
        assert!(grown < MOST_BYTES, "{path}: {grown} bytes for {READERS} readers");
        drop(readers);
        eventually("the permits of the readers are returned", SOON, async || {
            let stream = TcpStream::connect(gateway.address).await.unwrap();
            let answer = exchange(stream, &Ask::get("/v1/jobs/large-0").text()).await.unwrap();
            answer.status == 200
        })
        .await;
    }
    client.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_counts_until_its_answer_has_been_sent() {
    let limits = Limits::default().requests_per_caller(2);
    let stage = Stage::with("http-unread", |builder| builder.limits(limits)).await;
    let client = Client::connect(&stage.to).await.unwrap();
    // More than the system takes from an answer that is not read.
    for n in 0..4 {
        let job = Job::raw("nobody", "text/plain", PAYLOAD).id(format!("large-{n}"));
        client.submit(job).await.unwrap();
    }
    client.close().await;
    let unread = join_all([0; 2].map(|_| reader(stage.address(), "/v1/jobs?payloads=true"))).await;
    stage.get("/v1/jobs/large-0").await.problem(429, "too-many-requests", "at most 2 concurrent requests");
    drop(unread);
    eventually("the permits are returned", SOON, async || stage.get("/v1/jobs/large-0").await.status == 200)
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_has_payloads_only_on_request_and_then_ends_at_a_number_of_bytes() {
    let stage = Stage::new("http-pages").await;
    let client = Client::connect(&stage.to).await.unwrap();
    let mut ids = Vec::new();
    for n in 0..9 {
        let job = Job::raw("nobody", "text/plain", PAYLOAD).id(format!("large-{n}"));
        client.submit(job).await.unwrap();
        ids.push(format!("large-{n}"));
    }
    client.close().await;

    let few = stage.get("/v1/jobs").await.is(200).json();
    let few = few["jobs"].as_array().unwrap();
    assert_eq!(few.len(), ids.len());
    assert!(few.iter().all(|job| job["payload"].is_null() && job["kind"] == "nobody"), "{few:?}");
    let one = stage.get("/v1/jobs/large-0").await.is(200).json();
    assert_eq!(one["payload"].as_str().map(str::len), Some(PAYLOAD.len()));

    let (mut seen, mut after) = (Vec::new(), String::new());
    loop {
        let page = stage.get(&format!("/v1/jobs?limit=1000&payloads=true{after}")).await.is(200);
        assert!(page.body.len() < 1024 * 1024 + 16 * 1024, "{} bytes", page.body.len());
        let page = page.json();
        for job in page["jobs"].as_array().unwrap() {
            assert_eq!(job["payload"].as_str().map(str::len), Some(PAYLOAD.len()));
            seen.push(job["id"].as_str().unwrap().to_owned());
        }
        if page["next"] == json!(null) {
            break;
        }
        after = format!("&after={}", page["next"].as_str().unwrap());
    }
    seen.sort_unstable();
    assert_eq!(seen, ids, "each job is on one page");
}
