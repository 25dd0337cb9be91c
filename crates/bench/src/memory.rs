//! Memory per waiting job of a node that is leader and worker, in its own process.

use serde::Serialize;
use uuid::Uuid;

use super::cluster::named;
use super::process::NodeProcess;
use super::{BenchConfig, count};
use bellwether::client::Client;
use bellwether::error::chain;

/// No worker has a handler for this kind, so its jobs wait.
const KIND: &str = "bench-waits";

/// The memory of waiting jobs.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct PendingMemory {
    /// Number of waiting jobs.
    pub jobs: usize,
    /// Resident bytes per job: the node's memory after it knew all jobs, minus that before the first submission.
    pub bytes_per_job: f64,
    /// Resident bytes of the node before the first submission.
    pub node_bytes: u64,
}

/// Starts this binary as leader and worker, submits jobs that wait, and compares its resident memory.
pub(super) async fn measure(config: &BenchConfig, run: Uuid) -> Result<PendingMemory, String> {
    let namespace = named(&config.zookeeper, run, "memory")?;
    let client = Client::connect(&namespace.to_string()).await.map_err(|error| chain(&error))?;
    let node = NodeProcess::lead(&namespace, "candidate,worker", &client).await?;
    let before = node.bytes()?;
    let jobs = (0..config.pending).map(|n| bellwether::Job::new(KIND, &n));
    for accepted in client.submit_many(jobs, |_| {}).await {
        accepted.map_err(|error| chain(&error))?;
    }
    node.knows(config.pending).await?;
    let after = node.bytes()?;
    client.close().await;
    #[expect(clippy::cast_precision_loss, reason = "no node has 2^53 bytes")]
    let bytes_per_job = after.saturating_sub(before) as f64 / count(config.pending);
    Ok(PendingMemory { jobs: config.pending, bytes_per_job, node_bytes: before })
}
