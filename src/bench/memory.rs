//! What a waiting job costs the node that leads and works: a process of its own, measured from outside.

use std::process::Stdio;
use std::time::Duration;

use bellwether_zk::ConnectString;
use serde::Serialize;
use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep};
use uuid::Uuid;

use super::BenchConfig;
use super::cluster::namespace;
use crate::client::Client;

/// No worker has a handler for it, so its jobs wait.
const KIND: &str = "bench-waits";

const PATIENCE: Duration = Duration::from_secs(60);

/// What waiting jobs cost.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct PendingMemory {
    /// Jobs that waited.
    pub jobs: usize,
    /// Resident bytes of the node per job: after all were known, less before any was submitted.
    pub bytes_per_job: f64,
    /// Resident bytes of the node before.
    pub node_bytes: u64,
}

/// Starts this binary as a node that leads and works, lets jobs wait, and compares its resident memory.
pub(super) async fn measure(config: &BenchConfig, run: Uuid) -> Result<PendingMemory, String> {
    let namespace = namespace(config, run, "memory")?;
    let metrics = free_address()?;
    let node = node(&namespace, &metrics)?;
    let pid = node.id().ok_or("the node ended at once")?;
    let client = Client::connect(&namespace.to_string()).await.map_err(|error| error.to_string())?;
    let by = Instant::now() + PATIENCE;
    while client.leader().await.map_err(|error| error.to_string())?.is_none() {
        wait(by, "the node to lead").await?;
    }
    let before = resident(pid)?;
    let jobs = (0..config.pending).map(|n| crate::Job::new(KIND, &n).map_err(|error| error.to_string()));
    let jobs = jobs.collect::<Result<Vec<_>, _>>()?;
    for accepted in client.submit_many(jobs, |_| {}).await {
        accepted.map_err(|error| error.to_string())?;
    }
    let by = Instant::now() + PATIENCE;
    while depth(&metrics).await? < config.pending {
        wait(by, "the leader to know of every job").await?;
    }
    let after = resident(pid)?;
    client.close().await;
    #[expect(clippy::cast_precision_loss, reason = "no node has 2^53 bytes")]
    let bytes_per_job = after.saturating_sub(before) as f64 / config.pending as f64;
    Ok(PendingMemory { jobs: config.pending, bytes_per_job, node_bytes: before })
}

fn node(namespace: &ConnectString, metrics: &str) -> Result<Child, String> {
    let binary = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut command = Command::new(binary);
    command.args(["--zookeeper", &namespace.to_string(), "-q", "node", "--metrics-addr", metrics]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).kill_on_drop(true);
    command.spawn().map_err(|error| error.to_string())
}

fn free_address() -> Result<String, String> {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").map_err(|error| error.to_string())?;
    listener.local_addr().map(|address| address.to_string()).map_err(|error| error.to_string())
}

/// How many jobs the leader knows to wait, from its own metrics.
async fn depth(metrics: &str) -> Result<usize, String> {
    let text = scrape(metrics).await.map_err(|error| error.to_string())?;
    let line = text.lines().find(|line| line.starts_with(bellwether_core::metric::QUEUE_DEPTH));
    line.and_then(|line| line.rsplit(' ').next()?.parse().ok())
        .ok_or_else(|| "no queue depth in the metrics".into())
}

async fn scrape(address: &str) -> std::io::Result<String> {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let mut stream = tokio::net::TcpStream::connect(address).await?;
    stream.write_all(b"GET /metrics HTTP/1.0\r\n\r\n").await?;
    let mut text = String::new();
    stream.read_to_string(&mut text).await?;
    Ok(text)
}

fn resident(pid: u32) -> Result<u64, String> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).map_err(|error| error.to_string())?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kib.map(|kib| kib * 1024).ok_or_else(|| "no VmRSS in /proc".into())
}

async fn wait(by: Instant, what: &str) -> Result<(), String> {
    if Instant::now() >= by {
        return Err(format!("waited {} s for {what}", PATIENCE.as_secs()));
    }
    sleep(Duration::from_millis(50)).await;
    Ok(())
}
