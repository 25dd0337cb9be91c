//! The metrics' own address, as an attacker on the network uses it. No test needs ZooKeeper.

use std::net::SocketAddr;
use std::process::Command;
use std::time::Duration;

use bellwether_gateway::access::{Issued, Role};
use bellwether_testkit::{Process, binary_or, eventually, eventually_some};
use futures::future::join_all;
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;

use crate::ask::{Answer, Ask, exchange};
use crate::stage::SOON;

/// The maximum number of connections to the metrics' own address.
const MOST: usize = 64;

struct Node {
    process: Process,
    address: SocketAddr,
}

impl Node {
    async fn start(options: &[&str]) -> Self {
        Self::of(&mut node(options)).await
    }

    /// Waits until the node serves metrics.
    async fn of(command: &mut Command) -> Self {
        let process = Process::start("node", command).unwrap();
        let address = eventually_some("the node serves metrics", SOON, async || {
            let said = process.said();
            let (_, rest) = said.split_once("the node serves metrics address=")?;
            rest.split_once('\n')?.0.trim().parse::<SocketAddr>().ok()
        });
        let address = address.await;
        let address = SocketAddr::from(([127, 0, 0, 1], address.port()));
        Self { process, address }
    }

    async fn get(&self, path: &str) -> Answer {
        Ask::get(path).of(self.address).await
    }

    /// The processor time of the process so far, in ticks of 10 ms.
    fn ticks(&self) -> u64 {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.process.id())).unwrap();
        let fields = stat.rsplit_once(") ").unwrap().1.split(' ').collect::<Vec<_>>();
        fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
    }
}

fn node(options: &[&str]) -> Command {
    let mut command = Command::new(binary_or(env!("CARGO_BIN_EXE_bellwether")));
    command.args(["--zookeeper", "127.0.0.1:1/nowhere", "node", "--roles", "candidate"]);
    command.args(options).env_remove("RUST_LOG");
    command
}

#[tokio::test(flavor = "multi_thread")]
async fn metrics_are_not_served_to_other_machines_without_protection() {
    let refused = node(&["--metrics-listen", "0.0.0.0:0"]).output().unwrap();
    let said = String::from_utf8(refused.stderr).unwrap();
    assert_eq!(refused.status.code(), Some(2), "{said}");
    assert!(said.contains("(--http-tokens, --http-tls-cert, --http-tls-key, --metrics-insecure)"), "{said}");
    let open = Node::start(&["--metrics-listen", "0.0.0.0:0", "--metrics-insecure"]).await;
    let metrics = open.get("/metrics").await.is(200);
    assert!(metrics.text().contains("\nbellwether_session_connected 0\n"), "{}", metrics.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn metrics_of_a_node_with_tokens_need_one_that_may_read() {
    let (reads, works) =
        (Issued::new("prometheus", Role::Read).unwrap(), Issued::new("w", Role::Work).unwrap());
    let home = tempfile::tempdir().unwrap();
    let tokens = home.path().join("tokens");
    std::fs::write(&tokens, format!("{}\n{}\n", reads.line, works.line)).unwrap();
    let node =
        Node::start(&["--metrics-listen", "127.0.0.1:0", "--http-tokens", tokens.to_str().unwrap()]).await;
    node.get("/metrics").await.problem(401, "unauthenticated", "exactly one header");
    let with = async |token: &str| Ask::get("/metrics").token(token).of(node.address).await;
    with("guessed").await.problem(401, "unauthenticated", "does not know the token");
    with(&works.secret).await.problem(403, "forbidden", "has the role work: metrics need read");
    with(&reads.secret).await.is(200);
    assert_eq!(node.get("/healthz").await.is(200).text(), "ok\n", "a probe needs no token");
}

#[tokio::test(flavor = "multi_thread")]
async fn metrics_of_this_machine_are_not_for_pages_of_other_sites() {
    let node = Node::start(&["--metrics-listen", "127.0.0.1:0"]).await;
    node.get("/metrics").await.is(200);
    let rebound = Ask::get("/metrics").host("evil.example").of(node.address).await;
    rebound.problem(403, "foreign-origin", "accepts only the hosts localhost");
}

#[tokio::test(flavor = "multi_thread")]
async fn idle_connections_keep_prometheus_out_for_seconds_only() {
    let node = Node::start(&["--metrics-listen", "127.0.0.1:0"]).await;
    let idle = join_all((0..MOST).map(|_| TcpStream::connect(node.address))).await;
    let idle = idle.into_iter().map(Result::unwrap).collect::<Vec<_>>();
    eventually("a further connection is refused", SOON, async || node.get("/metrics").await.status == 503)
        .await;
    for mut stream in idle {
        let mut read = Vec::new();
        let closed = tokio::time::timeout(SOON, stream.read_to_end(&mut read)).await;
        closed.expect("a silent connection is closed").unwrap();
    }
    node.get("/metrics").await.is(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_without_free_descriptors_waits_instead_of_spinning() {
    let program = node(&["--metrics-listen", "127.0.0.1:0"]);
    let mut limited = Command::new("sh");
    limited
        .args(["-c", "ulimit -n 40; exec \"$0\" \"$@\""])
        .arg(program.get_program())
        .args(program.get_args());
    let node = Node::of(limited.env_remove("RUST_LOG")).await;
    // The kernel accepts all of them; the process has descriptors for fewer than half.
    let idle = join_all((0..MOST).map(|_| TcpStream::connect(node.address))).await;
    eventually("the process runs out of descriptors", SOON, async || {
        node.process.said().contains("the gateway cannot accept connections")
    })
    .await;
    let before = node.ticks();
    tokio::time::sleep(Duration::from_secs(2)).await;
    let used = node.ticks() - before;
    assert!(used < 50, "{used} ticks of 10 ms in 2 s");
    drop(idle);
    eventually("metrics are served again", SOON, async || {
        let Ok(stream) = TcpStream::connect(node.address).await else { return false };
        exchange(stream, &Ask::get("/metrics").text()).await.is_some_and(|answer| answer.status == 200)
    })
    .await;
}
