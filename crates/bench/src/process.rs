//! A node in its own process, measured from outside.

use std::process::Stdio;
use std::time::Duration;

use bellwether::ConnectString;
use bellwether::error::chain;
use bellwether::metrics as metric;
use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep};
use uuid::Uuid;

use super::count;
use bellwether::client::Client;

const PATIENCE: Duration = Duration::from_secs(60);

/// This binary as a node; killed when dropped.
pub(super) struct NodeProcess {
    child: Child,
    metrics: String,
    http: String,
}

/// The requests that a process has sent to ZooKeeper so far.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Sent {
    pub(super) requests: f64,
    /// Those of the requests that are write transactions.
    pub(super) transactions: f64,
    /// Znode reads and writes in the requests.
    pub(super) operations: f64,
}

impl Sent {
    /// Reads the counts from a page of metrics.
    pub(super) fn from_metrics(text: &str) -> Self {
        Self {
            requests: sum(text, metric::ZOOKEEPER_REQUESTS, ""),
            transactions: sum(text, metric::ZOOKEEPER_REQUESTS, "write"),
            operations: sum(text, metric::ZOOKEEPER_OPERATIONS, ""),
        }
    }

    /// Adds, or with -1 subtracts, another count.
    pub(super) fn plus(self, other: Self, times: f64) -> Self {
        Self {
            requests: self.requests + times * other.requests,
            transactions: self.transactions + times * other.transactions,
            operations: self.operations + times * other.operations,
        }
    }
}

impl NodeProcess {
    /// Starts a node and waits until it is the leader.
    pub(super) async fn lead(
        namespace: &ConnectString,
        roles: &str,
        client: &Client,
    ) -> Result<Self, String> {
        let before = claim(client).await?;
        let node = Self::start(namespace, roles, &[])?;
        let by = Instant::now() + PATIENCE;
        while claim(client).await? == before {
            wait(by, "the node to lead").await?;
        }
        Ok(node)
    }

    /// Starts a worker, which registers soon.
    pub(super) fn work(namespace: &ConnectString, slots: u32) -> Result<Self, String> {
        Self::start(namespace, "worker", &["--slots", &slots.to_string()])
    }

    /// Starts a gateway for that many connections and waits until it serves.
    pub(super) async fn gateway(namespace: &ConnectString, connections: usize) -> Result<Self, String> {
        let most = connections.to_string();
        let node =
            Self::start(namespace, "gateway", &["--http-connections", &most, "--http-streams", &most])?;
        let by = Instant::now() + PATIENCE;
        while !get(&node.http, "/readyz").await.is_ok_and(|answer| answer.contains(" 200 ")) {
            wait(by, "the gateway to serve").await?;
        }
        Ok(node)
    }

    fn start(namespace: &ConnectString, roles: &str, more: &[&str]) -> Result<Self, String> {
        let metrics = free_address()?;
        let binary = std::env::current_exe().map_err(|error| chain(&error))?;
        let mut command = Command::new(binary);
        command.args(["--zookeeper", &namespace.to_string(), "-q", "node", "--roles", roles]);
        command.args(["--metrics-listen", &metrics]).args(more);
        let http = free_address()?;
        command.args(["--http-listen", &http]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).kill_on_drop(true);
        let child = command.spawn().map_err(|error| chain(&error))?;
        Ok(Self { child, metrics, http })
    }

    /// Returns the address of its gateway.
    pub(super) fn http(&self) -> Result<std::net::SocketAddr, String> {
        self.http.parse().map_err(|error| format!("{error}"))
    }

    /// Kills the node and waits for its end.
    pub(super) async fn kill(&mut self) -> Result<(), String> {
        self.child.kill().await.map_err(|error| chain(&error))
    }

    /// Waits until the leader knows that many waiting jobs.
    pub(super) async fn knows(&self, jobs: usize) -> Result<(), String> {
        let by = Instant::now() + PATIENCE;
        while self.metric(metric::QUEUE_DEPTH).await? < count(jobs) {
            wait(by, "the leader to know of every job").await?;
        }
        Ok(())
    }

    /// Returns the sum of a metric's series.
    pub(super) async fn metric(&self, name: &str) -> Result<f64, String> {
        let text = get(&self.metrics, "/metrics").await.map_err(|error| chain(&error))?;
        Ok(sum(&text, name, ""))
    }

    pub(super) async fn sent(&self) -> Result<Sent, String> {
        let text = get(&self.metrics, "/metrics").await.map_err(|error| chain(&error))?;
        Ok(Sent::from_metrics(&text))
    }

    /// Returns the processor time that it has used.
    pub(super) fn cpu(&self) -> Result<Duration, String> {
        let pid = self.child.id().ok_or("the node has ended")?;
        cpu(&pid.to_string())
    }

    /// Returns its resident memory.
    pub(super) fn bytes(&self) -> Result<u64, String> {
        let pid = self.child.id().ok_or("the node has ended")?;
        bytes(&pid.to_string())
    }
}

/// Returns the resident memory of a process: its id, or `self`.
pub(super) fn bytes(pid: &str) -> Result<u64, String> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).map_err(|error| chain(&error))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kib.map(|kib| kib * 1024).ok_or_else(|| "no VmRSS in /proc".into())
}

/// Returns the processor time that this process has used.
pub(super) fn cpu_of_this_process() -> Result<Duration, String> {
    cpu("self")
}

/// The unit of times in `/proc/*/stat` is 10 ms on every Linux (`USER_HZ`).
const TICK: Duration = Duration::from_millis(10);

/// Returns the processor time that a process has used: its id, or `self`.
pub(super) fn cpu(pid: &str) -> Result<Duration, String> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).map_err(|error| chain(&error))?;
    // User and system time are fields 14 and 15. The name in field 2 may contain spaces.
    let fields = stat.rsplit_once(')').map(|(_, fields)| fields).unwrap_or_default();
    let ticks = fields.split_whitespace().skip(11).take(2).map(str::parse::<u32>);
    let ticks = ticks.sum::<Result<u32, _>>().map_err(|error| format!("/proc/{pid}/stat: {error}"))?;
    Ok(TICK * ticks)
}

/// Returns the epoch of the last claim.
async fn claim(client: &Client) -> Result<Option<i32>, String> {
    let leader = client.leader().await.map_err(|error| chain(&error))?;
    Ok(leader.map(|leader| leader.epoch))
}

/// Returns the sum of a metric's series whose text contains `labelled`.
pub(super) fn sum(text: &str, name: &str, labelled: &str) -> f64 {
    let lines = text.lines().filter(|line| line.starts_with(name) && line.contains(labelled));
    lines.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum()
}

/// The ports of the processes. They are below those that the kernel gives to outgoing connections, which could take a free port
/// before the process listens on it.
const PORTS: std::ops::Range<u16> = 20_000..32_000;

/// Returns an address on which nothing listens.
fn free_address() -> Result<String, String> {
    let any = || {
        let offset = Uuid::now_v7().as_u128() % u128::from(PORTS.end - PORTS.start);
        PORTS.start + u16::try_from(offset).expect("an offset is below the number of ports")
    };
    let listens = |port: &u16| std::net::TcpListener::bind((std::net::Ipv4Addr::LOCALHOST, *port)).is_ok();
    let port = std::iter::repeat_with(any).take(100).find(listens);
    port.map(|port| format!("127.0.0.1:{port}")).ok_or_else(|| format!("no free port in {PORTS:?}"))
}

async fn get(address: &str, path: &str) -> std::io::Result<String> {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let mut stream = tokio::net::TcpStream::connect(address).await?;
    stream.write_all(format!("GET {path} HTTP/1.0\r\n\r\n").as_bytes()).await?;
    let mut text = String::new();
    stream.read_to_string(&mut text).await?;
    Ok(text)
}

async fn wait(by: Instant, what: &str) -> Result<(), String> {
    if Instant::now() >= by {
        return Err(format!("waited {} s for {what}", PATIENCE.as_secs()));
    }
    sleep(Duration::from_millis(50)).await;
    Ok(())
}
