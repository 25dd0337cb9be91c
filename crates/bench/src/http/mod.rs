//! The cost of the HTTP gateway: submissions compared with the native client, remote workers compared with workers in this
//! process, and the memory of a connected event stream.
//!
//! A gateway runs in its own process, so that its memory and its processor time can be measured.

mod calls;
mod remote;
mod streams;
mod submissions;

use bellwether::ConnectString;
use serde::Serialize;
use uuid::Uuid;

use super::cluster::named;
use super::process::NodeProcess;
use super::{BenchError, Progress, failed};
use bellwether::client::Client;
pub use remote::{RemoteReport, RemoteShape, Throughput};
pub use submissions::Submissions;

/// Default number of event streams.
pub const USUAL_STREAMS: usize = 10_000;

/// The configuration of a run.
#[derive(Debug, Clone)]
pub struct HttpConfig {
    /// The servers, and a chroot under which the namespace is created.
    pub zookeeper: ConnectString,
    /// Jobs that each side submits, and jobs that each side of the remote workers runs.
    pub jobs: usize,
    /// Number of concurrent callers. The gateway serves 128 concurrent requests per address.
    pub callers: usize,
    /// Number of connected event streams.
    pub streams: usize,
}

/// The results of a run.
#[derive(Debug, Clone, Serialize)]
pub struct HttpReport {
    /// Jobs that each side submitted.
    pub jobs: usize,
    /// Number of callers.
    pub callers: usize,
    /// Submissions with the native client.
    pub native: Submissions,
    /// Submissions over HTTP.
    pub http: Submissions,
    /// Jobs per second of `http` divided by those of `native`.
    pub ratio: f64,
    /// Jobs through remote workers.
    pub remote: RemoteReport,
    /// The cost of connected event streams.
    pub streams: Streams,
}

/// The cost of connected event streams.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Streams {
    /// Number of streams.
    pub streams: usize,
    /// Resident bytes of the gateway before.
    pub bytes_before: u64,
    /// Resident bytes of the gateway once each stream has the head of its answer.
    pub bytes: u64,
    /// Additional bytes per stream.
    pub bytes_per_stream: f64,
    /// Additional bytes per stream after each was sent an event.
    pub bytes_per_stream_after_events: f64,
    /// Time from a submission until the last stream has its event.
    pub last_event_ms: f64,
}

/// Rounds of each side. The sides alternate, so that other load on the machine affects both.
const ROUNDS: usize = 4;

/// Runs the benchmark. It creates namespaces under the chroot and does not delete them: use a disposable server.
///
/// # Errors
/// If ZooKeeper cannot be reached, a job is refused or does not succeed, or there are not enough file descriptors.
pub async fn run(config: &HttpConfig, mut progress: impl FnMut(Progress)) -> Result<HttpReport, BenchError> {
    streams::raise_descriptors(config.streams).map_err(failed("making room for connections"))?;
    let run = Uuid::now_v7();
    let namespace = named(&config.zookeeper, run, "http").map_err(failed("naming a namespace"))?;
    let client = Client::connect(&namespace.to_string()).await;
    let client = client.map_err(|error| failed("connecting")(error.to_string()))?;
    let gateway = NodeProcess::gateway(&namespace, config.streams + 2 * config.callers).await;
    let gateway = gateway.map_err(failed("starting a gateway"))?;
    let at = gateway.http().map_err(failed("starting a gateway"))?;
    let submitted = submissions::measure(config, &client, at, &mut progress).await;
    let [native, http] = submitted.map_err(failed("measuring submissions"))?;
    progress(Progress { what: "event streams".into(), of: config.streams, done: 0 });
    let streams = streams::measure(config.streams, &client, &gateway, at).await;
    let streams = streams.map_err(failed("measuring event streams"))?;
    client.close().await;
    drop(gateway);
    let remote = remote::measure(config, run, &mut progress).await;
    let remote = remote.map_err(failed("measuring remote workers"))?;
    let ratio = http.jobs_per_second / native.jobs_per_second;
    let jobs = submissions::each(config) * ROUNDS * config.callers;
    Ok(HttpReport { jobs, callers: config.callers, native, http, ratio, remote, streams })
}
