//! What a waiting job costs the node that leads and works: a process of its own, measured from outside.

use serde::Serialize;
use uuid::Uuid;

use super::cluster::namespace;
use super::process::NodeProcess;
use super::{BenchConfig, count};
use bellwether::client::Client;

/// No worker has a handler for it, so its jobs wait.
const KIND: &str = "bench-waits";

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
    let client = Client::connect(&namespace.to_string()).await.map_err(|error| error.to_string())?;
    let node = NodeProcess::lead(&namespace, "candidate,worker", &client).await?;
    let before = node.bytes()?;
    let jobs = (0..config.pending).map(|n| bellwether::Job::new(KIND, &n).map_err(|error| error.to_string()));
    let jobs = jobs.collect::<Result<Vec<_>, _>>()?;
    for accepted in client.submit_many(jobs, |_| {}).await {
        accepted.map_err(|error| error.to_string())?;
    }
    node.knows(config.pending).await?;
    let after = node.bytes()?;
    client.close().await;
    #[expect(clippy::cast_precision_loss, reason = "no node has 2^53 bytes")]
    let bytes_per_job = after.saturating_sub(before) as f64 / count(config.pending);
    Ok(PendingMemory { jobs: config.pending, bytes_per_job, node_bytes: before })
}
