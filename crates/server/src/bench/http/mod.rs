//! The cost of the HTTP gateway compared with the native client, and the memory of a connected event stream.
//!
//! The gateway runs in its own process, so that its memory can be measured. Both sides submit the same jobs from the
//! same number of callers, each caller one job at a time; each HTTP caller keeps its connection. There is no leader and
//! no worker during the run: only submission is measured.

mod calls;
mod streams;

use std::time::{Duration, Instant};

use bellwether::ConnectString;
use futures::future::try_join_all;
use serde::Serialize;
use uuid::Uuid;

use super::cluster::{KIND, job, named};
use super::idle::percentile;
use super::process::NodeProcess;
use super::{BenchError, count, failed, millis};
use bellwether::client::Client;
use calls::Connection;

/// Default number of event streams.
pub const USUAL_STREAMS: usize = 10_000;

/// The configuration of a run.
#[derive(Debug, Clone)]
pub struct HttpConfig {
    /// The servers, and a chroot under which the namespace is created.
    pub zookeeper: ConnectString,
    /// Jobs that each side submits.
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
    /// The cost of connected event streams.
    pub streams: Streams,
}

/// The results of submissions.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Submissions {
    /// Jobs per second.
    pub jobs_per_second: f64,
    /// Median latency.
    pub p50_ms: f64,
    /// 99th percentile of the latency.
    pub p99_ms: f64,
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

/// The current step, for a progress bar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HttpStep {
    /// Submissions by the native client.
    Native,
    /// Submissions over HTTP.
    Http,
    /// Event streams.
    Streams,
}

/// Rounds of each side. The sides alternate, so that other load on the machine affects both.
const ROUNDS: usize = 4;

/// Runs the benchmark. It creates a namespace under the chroot and does not delete it: use a disposable server.
///
/// # Errors
/// If ZooKeeper cannot be reached, a job is refused, or there are not enough file descriptors.
pub async fn run(config: &HttpConfig, mut progress: impl FnMut(HttpStep)) -> Result<HttpReport, BenchError> {
    streams::raise_descriptors(config.streams).map_err(failed("making room for connections"))?;
    let namespace = named(&config.zookeeper, Uuid::now_v7(), "http").map_err(failed("naming a namespace"))?;
    let client = Client::connect(&namespace.to_string()).await;
    let client = client.map_err(|error| failed("connecting")(error.to_string()))?;
    let gateway = NodeProcess::gateway(&namespace, config.streams + 2 * config.callers).await;
    let gateway = gateway.map_err(failed("starting a gateway"))?;
    let measured = measure(config, &client, &gateway, &mut progress).await;
    client.close().await;
    measured.map_err(failed("measuring"))
}

async fn measure(
    config: &HttpConfig,
    client: &Client,
    gateway: &NodeProcess,
    progress: &mut impl FnMut(HttpStep),
) -> Result<HttpReport, String> {
    let at = gateway.http()?;
    let each = (config.jobs / ROUNDS / config.callers).max(1);
    // Each side runs once before the measurement, so that one-time initialization is not measured.
    native(client, config.callers, 1).await?;
    over_http(at, config.callers, 1).await?;
    let (mut natives, mut https) = (Taken::default(), Taken::default());
    for _ in 0..ROUNDS {
        progress(HttpStep::Native);
        natives.add(native(client, config.callers, each).await?);
        progress(HttpStep::Http);
        https.add(over_http(at, config.callers, each).await?);
    }
    progress(HttpStep::Streams);
    let streams = streams::measure(config.streams, client, gateway, at).await?;
    let (native, http) = (natives.told(), https.told());
    let ratio = http.jobs_per_second / native.jobs_per_second;
    Ok(HttpReport { jobs: natives.each.len(), callers: config.callers, native, http, ratio, streams })
}

/// The duration of each submission, and the total.
#[derive(Default)]
struct Taken {
    each: Vec<Duration>,
    all: Duration,
}

impl Taken {
    fn add(&mut self, Self { each, all }: Self) {
        self.each.extend(each);
        self.all += all;
    }

    fn told(&mut self) -> Submissions {
        self.each.sort();
        Submissions {
            jobs_per_second: count(self.each.len()) / self.all.as_secs_f64(),
            p50_ms: millis(percentile(&self.each, 50)),
            p99_ms: millis(percentile(&self.each, 99)),
        }
    }
}

async fn native(client: &Client, callers: usize, each: usize) -> Result<Taken, String> {
    let caller = async |caller: usize| {
        let mut took = Vec::with_capacity(each);
        for n in 0..each {
            let job = job(caller * each + n)?;
            let started = Instant::now();
            client.submit(job).await.map_err(|error| error.to_string())?;
            took.push(started.elapsed());
        }
        Ok::<_, String>(took)
    };
    taken((0..callers).map(caller)).await
}

async fn over_http(at: std::net::SocketAddr, callers: usize, each: usize) -> Result<Taken, String> {
    let connections = try_join_all((0..callers).map(|_| Connection::open(at))).await?;
    let caller = async |(caller, mut connection): (usize, Connection)| {
        let mut took = Vec::with_capacity(each);
        for n in 0..each {
            let body = format!(r#"{{"kind":"{KIND}","payload":{}}}"#, caller * each + n);
            let started = Instant::now();
            connection.submit(&body).await?;
            took.push(started.elapsed());
        }
        Ok::<_, String>(took)
    };
    taken(connections.into_iter().enumerate().map(caller)).await
}

async fn taken(
    callers: impl Iterator<Item = impl Future<Output = Result<Vec<Duration>, String>>>,
) -> Result<Taken, String> {
    let started = Instant::now();
    let each = try_join_all(callers).await?.concat();
    Ok(Taken { each, all: started.elapsed() })
}
