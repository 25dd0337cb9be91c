//! Submissions over HTTP compared with the native client.
//!
//! Both sides submit the same jobs from the same number of callers, each caller one job at a time; each HTTP caller keeps its
//! connection. There is no leader and no worker: only submission is measured.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use bellwether::client::Client;
use bellwether::error::chain;
use futures::future::try_join_all;
use serde::Serialize;

use super::calls::Connection;
use super::{HttpConfig, ROUNDS};
use crate::cluster::{KIND, job};
use crate::idle::percentile;
use crate::{Progress, count, millis};

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

/// Returns the jobs of each caller in a round.
pub(super) fn each(config: &HttpConfig) -> usize {
    (config.jobs / ROUNDS / config.callers).max(1)
}

/// Measures both sides: native, then HTTP.
pub(super) async fn measure(
    config: &HttpConfig,
    client: &Client,
    at: SocketAddr,
    progress: &mut impl FnMut(Progress),
) -> Result<[Submissions; 2], String> {
    let (callers, each) = (config.callers, each(config));
    // Each side runs once before the measurement, so that one-time initialization is not measured.
    native(client, callers, 1).await?;
    over_http(at, callers, 1).await?;
    let (mut natives, mut https) = (Taken::default(), Taken::default());
    for round in 0..ROUNDS {
        let mut show = |what: &str| {
            progress(Progress {
                what: what.into(),
                of: ROUNDS * callers * each,
                done: round * callers * each,
            });
        };
        show("submitting natively");
        natives.add(native(client, callers, each).await?);
        show("submitting over HTTP");
        https.add(over_http(at, callers, each).await?);
    }
    Ok([natives.told(), https.told()])
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
            let job = job(caller * each + n);
            let started = Instant::now();
            client.submit(job).await.map_err(|error| chain(&error))?;
            took.push(started.elapsed());
        }
        Ok::<_, String>(took)
    };
    taken((0..callers).map(caller)).await
}

async fn over_http(at: SocketAddr, callers: usize, each: usize) -> Result<Taken, String> {
    let connections = try_join_all((0..callers).map(|_| Connection::open(at))).await?;
    let caller = async |(caller, mut connection): (usize, Connection)| {
        let mut took = Vec::with_capacity(each);
        for n in 0..each {
            let body = format!(r#"{{"kind":"{KIND}","payload":{}}}"#, caller * each + n);
            let started = Instant::now();
            connection.call("POST", "/v1/jobs", &body, 201).await?;
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
