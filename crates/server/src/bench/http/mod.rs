//! What the HTTP gateway costs beside the native client, and what an event stream that is connected costs it.
//!
//! The gateway is a process of its own, so that its memory is its alone. Both sides submit the same jobs, one after the
//! other from each of as many callers; callers of HTTP have a connection each that they keep. Nobody leads and nobody
//! works meanwhile: what is measured is submission.

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

/// How many event streams, unless said otherwise.
pub const USUAL_STREAMS: usize = 10_000;

/// What to measure.
#[derive(Debug, Clone)]
pub struct HttpConfig {
    /// The servers, and a chroot under which a namespace is made.
    pub zookeeper: ConnectString,
    /// Jobs that each side submits.
    pub jobs: usize,
    /// How many callers submit at a time. The gateway serves 128 requests of one address at a time.
    pub callers: usize,
    /// Event streams that are connected at once.
    pub streams: usize,
}

/// What was measured.
#[derive(Debug, Clone, Serialize)]
pub struct HttpReport {
    /// Jobs that each side submitted.
    pub jobs: usize,
    /// Callers.
    pub callers: usize,
    /// By the native client.
    pub native: Submissions,
    /// Over HTTP.
    pub http: Submissions,
    /// The second's jobs per second over the first's.
    pub ratio: f64,
    /// What connected event streams cost.
    pub streams: Streams,
}

/// How submissions went.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Submissions {
    /// Jobs per second.
    pub jobs_per_second: f64,
    /// Half of them within.
    pub p50_ms: f64,
    /// 99 of 100 within.
    pub p99_ms: f64,
}

/// What connected event streams cost.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Streams {
    /// How many.
    pub streams: usize,
    /// Resident bytes of the gateway before.
    pub bytes_before: u64,
    /// Resident bytes of the gateway once each had its answer's head.
    pub bytes: u64,
    /// What each cost.
    pub bytes_per_stream: f64,
    /// What each cost once it had been sent an event.
    pub bytes_per_stream_after_events: f64,
    /// From a submission to when the last stream had its event.
    pub last_event_ms: f64,
}

/// What the benchmark does now, for a progress bar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HttpStep {
    /// Submissions by the native client.
    Native,
    /// Submissions over HTTP.
    Http,
    /// Event streams.
    Streams,
}

/// Rounds of each side, one after the other: what the machine does beside is shared by both.
const ROUNDS: usize = 4;

/// Measures. Makes a namespace under the chroot and leaves it there: give it a throw-away server.
///
/// # Errors
/// When ZooKeeper cannot be reached, a job is refused, or there are not enough file descriptors.
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
    // Each side once, so that no side pays for what is made at its first use.
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

/// How long each submission took, and all of them.
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
