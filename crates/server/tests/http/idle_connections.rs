//! Ten thousand idle connections to a gateway in its own process, so that its memory can be measured.

use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};

use bellwether_gateway::Limits;
use bellwether_testkit::{binary_or, eventually, namespace, unused_address};
use futures::future::join_all;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::ask::{Ask, exchange};
use crate::stage::SOON;

const CROWD: usize = 10_000;

/// Limit for a connection that has sent nothing: hyper's first buffer of 8 KiB, and tasks of the size that a build
/// without optimisation has.
const MOST_BYTES_EACH: u64 = 24 * 1024;

/// The test holds one end of every connection, and the gateway the other end of those that it keeps.
fn raise_descriptors() {
    let wanted = CROWD as u64 + 1_000;
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
    assert!(hard >= wanted, "raise `ulimit -Hn` to {wanted}: it is {hard}");
    setrlimit(Resource::RLIMIT_NOFILE, soft.max(wanted), hard).unwrap();
}

/// A gateway in its own process, so that its memory can be measured.
pub(crate) struct Gateway {
    child: Child,
    pub(crate) address: SocketAddr,
    pub(crate) to: String,
}

impl Drop for Gateway {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Gateway {
    pub(crate) async fn start(name: &str) -> Self {
        Self::with(name, &[]).await
    }

    pub(crate) async fn with(name: &str, options: &[&str]) -> Self {
        let to = namespace(name);
        let address = unused_address().unwrap();
        let mut command = Command::new(binary_or(env!("CARGO_BIN_EXE_bellwether")));
        command.args(["--zookeeper", &to, "-q", "node", "--roles", "gateway"]);
        command.args(["--http-listen", &address.to_string()]).args(options);
        let child = command.stdin(Stdio::null()).spawn().unwrap();
        let gateway = Self { child, address, to };
        gateway.serves().await;
        gateway
    }

    async fn serves(&self) {
        eventually("the gateway serves", SOON, async || {
            let Ok(stream) = TcpStream::connect(self.address).await else { return false };
            exchange(stream, &Ask::get("/readyz").text()).await.is_some_and(|answer| answer.status == 200)
        })
        .await;
    }

    fn resident(&self) -> u64 {
        self.memory("VmRSS:")
    }

    /// The most memory that it has had.
    pub(crate) fn peak(&self) -> u64 {
        self.memory("VmHWM:")
    }

    fn memory(&self, field: &str) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix(field)).unwrap();
        line.split_whitespace().next().unwrap().parse::<u64>().unwrap() * 1024
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_thousand_idle_connections_are_bounded_in_number_memory_and_time() {
    raise_descriptors();
    let gateway = Gateway::start("http-crowd").await;
    let most = Limits::default().connections as u64;
    let before = gateway.resident();
    let mut crowd = Vec::with_capacity(CROWD);
    while crowd.len() < CROWD {
        // The listen queue of the socket holds 1,024 connections.
        let few = join_all((0..250).map(|_| TcpStream::connect(gateway.address))).await;
        crowd.extend(few.into_iter().map(Result::unwrap));
    }
    let grown = gateway.resident().saturating_sub(before);
    assert!(grown < most * MOST_BYTES_EACH, "{grown} bytes for at most {most} connections of {CROWD}");

    // Each connection gets 503, or is closed without an answer: immediately, or after its idle time.
    let ends = crowd.into_iter().map(async |mut stream: TcpStream| {
        let mut heard = Vec::new();
        let mut ended = timeout(SOON, stream.read_to_end(&mut heard)).await;
        if ended.is_err() {
            // If the listen queue overflowed, the gateway's kernel does not know a connection that this end considers
            // open. Sending a byte establishes or resets it.
            drop(stream.write_all(b"G").await);
            ended = timeout(SOON, stream.read_to_end(&mut heard)).await;
        }
        ended.expect("an idle connection is closed").is_ok() && heard.starts_with(b"HTTP/1.1 503 ")
    });
    let turned_away = join_all(ends).await.into_iter().filter(|away| *away).count();
    assert!(turned_away >= 1, "some connections get 503");
    gateway.serves().await;
    let left = gateway.resident().saturating_sub(before);
    assert!(left < most * MOST_BYTES_EACH, "{left} bytes are left");
}
