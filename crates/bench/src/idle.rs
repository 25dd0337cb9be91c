//! Latency without other load.

use bellwether::error::chain;
use std::time::{Duration, Instant};

use super::cluster::{Cluster, sum_job};
use super::load::{Counts, check};
use super::{BenchConfig, Progress, count, floor, millis};

pub(super) struct Idle {
    pub(super) p50_ms: f64,
    pub(super) p99_ms: f64,
    pub(super) three_writes_p50_ms: f64,
    pub(super) read_p50_ms: f64,
    /// Requests of all processes per job.
    pub(super) requests_per_job: f64,
}

/// Submits one job at a time and waits for its result. For comparison, sends bare writes and reads in sequence.
pub(super) async fn measure(
    config: &BenchConfig,
    cluster: &Cluster,
    counts: &Counts,
    progress: &mut impl FnMut(Progress),
) -> Result<Idle, String> {
    let mut took = Vec::with_capacity(config.idle_jobs);
    let sent = cluster.sent(counts).await?;
    for n in 0..config.idle_jobs {
        let job = sum_job(n);
        let started = Instant::now();
        let handle = cluster.client.submit(job).await.map_err(|error| chain(&error))?;
        let end = handle.wait(Duration::from_secs(30)).await.map_err(|error| chain(&error))?;
        took.push(started.elapsed());
        check(n, &end)?;
        progress(Progress { what: "jobs one at a time".into(), of: config.idle_jobs, done: n + 1 });
    }
    let sent = cluster.sent(counts).await?.plus(sent, -1.0);
    let mut serial = floor::serial(&cluster.namespace, 3 * config.idle_jobs).await?;
    let mut three = serial.writes.chunks_exact(3).map(|three| three.iter().sum()).collect::<Vec<Duration>>();
    took.sort();
    three.sort();
    serial.reads.sort();
    Ok(Idle {
        p50_ms: millis(percentile(&took, 50)),
        p99_ms: millis(percentile(&took, 99)),
        three_writes_p50_ms: millis(percentile(&three, 50)),
        read_p50_ms: millis(percentile(&serial.reads, 50)),
        requests_per_job: sent.requests / count(config.idle_jobs),
    })
}

/// Returns the nearest-rank percentile of sorted values, or zero if there are none.
pub(super) fn percentile(sorted: &[Duration], percent: usize) -> Duration {
    let rank = (sorted.len() * percent).div_ceil(100).max(1);
    sorted.get(rank - 1).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_of_the_nearest_rank() {
        let sorted = (1..=200).map(Duration::from_millis).collect::<Vec<_>>();
        assert_eq!([50, 99, 100].map(|p| percentile(&sorted, p).as_millis()), [100, 198, 200]);
        assert_eq!(percentile(&[], 50), Duration::ZERO);
    }
}
