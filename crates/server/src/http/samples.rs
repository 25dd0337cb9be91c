//! Samples of the cluster over the last hour, for charts.
//!
//! Each gateway takes its own, one every ten seconds (at most about 34 requests to ZooKeeper, up to 0.4 MB), and keeps them in memory. A
//! failed snapshot leaves a gap.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::time::Duration;

use bellwether::client::{Client, Snapshot, SnapshotOptions, rfc3339};
use serde::Serialize;
use tokio::sync::watch;
use tokio::time::{Instant, MissedTickBehavior, interval};
use utoipa::ToSchema;

use super::limits::MAX_MINUTES;
use super::server::Phase;
use crate::rates::Rates;

/// Time between samples.
pub(super) const EVERY: Duration = Duration::from_secs(10);

/// An hour of samples: 30 KB.
const KEPT: usize = 360;

/// The cluster at a moment.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(super) struct Sample {
    /// When it was taken.
    at: String,
    /// Jobs that wait for a worker.
    queued: usize,
    /// Jobs that wait for their start time, in the 1,000 soonest minutes with such jobs.
    delayed: usize,
    /// Jobs on live workers.
    running: usize,
    /// Live workers.
    workers: usize,
    /// Slots of the live workers.
    slots: u64,
    /// Submitted jobs per second since the previous sample; null in the first one.
    #[schema(required)]
    submitted_per_second: Option<f64>,
    /// Ended jobs per second since the previous sample; null in the first one, and if delayed jobs were not counted exactly.
    #[schema(required)]
    finished_per_second: Option<f64>,
}

/// The job that has waited longest for a worker.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(super) struct OldestQueued {
    /// Its id.
    id: String,
    /// Since when it could run: its submission, or the end of its delay.
    since: String,
    /// Whether all queued jobs were read. If not, it is the oldest of 200 sampled jobs, and another may have waited longer.
    exact: bool,
}

impl Sample {
    fn new(before: Option<(&Snapshot, Duration)>, now: &Snapshot) -> Self {
        let rates = before.map(|(before, elapsed)| Rates::between(before, now, elapsed));
        let slots = now.workers.iter().filter_map(|worker| worker.info.as_ref().ok());
        Self {
            at: rfc3339(now.at),
            queued: now.depths.queued,
            delayed: now.depths.delayed,
            running: now.assigned(),
            workers: now.workers.len(),
            slots: slots.map(|info| u64::from(info.slots)).sum(),
            submitted_per_second: rates.and_then(|rates| rates.submitted).map(tenths),
            finished_per_second: rates.and_then(|rates| rates.finished).map(tenths),
        }
    }
}

fn tenths(rate: f64) -> f64 {
    (rate * 10.0).round() / 10.0
}

/// The samples of the last hour.
#[derive(Default)]
pub(super) struct Samples(Mutex<Kept>);

#[derive(Default)]
struct Kept {
    /// Oldest first.
    samples: VecDeque<Sample>,
    /// From the last sample.
    oldest_queued: Option<OldestQueued>,
}

impl Samples {
    pub(super) fn list(&self) -> Vec<Sample> {
        self.kept().samples.iter().cloned().collect()
    }

    /// Returns the job that had waited longest when the last sample was taken.
    pub(super) fn oldest_queued(&self) -> Option<OldestQueued> {
        self.kept().oldest_queued.clone()
    }

    fn push(&self, sample: Sample, oldest_queued: Option<OldestQueued>) {
        let mut kept = self.kept();
        if kept.samples.len() == KEPT {
            kept.samples.pop_front();
        }
        kept.samples.push_back(sample);
        kept.oldest_queued = oldest_queued;
    }

    fn kept(&self) -> std::sync::MutexGuard<'_, Kept> {
        self.0.lock().expect("no code panics while it holds the samples")
    }

    /// Takes samples until the gateway stops.
    pub(super) async fn collect(&self, client: &Client, mut phase: watch::Receiver<Phase>) {
        let mut ticks = interval(EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut before: Option<(Snapshot, Instant)> = None;
        for turn in 0.. {
            tokio::select! {
                _ = ticks.tick() => {}
                _ = phase.wait_for(|phase| *phase > Phase::Serving) => return,
            }
            let taken = client.snapshot(SnapshotOptions::default().minutes(MAX_MINUTES).sample(turn)).await;
            let at = Instant::now();
            match taken {
                Ok(now) => {
                    let since = before.as_ref().map(|(before, then)| (before, at - *then));
                    let oldest = now.oldest_queued.as_ref().map(|oldest| OldestQueued {
                        id: oldest.id.to_string(),
                        since: rfc3339(oldest.since),
                        exact: oldest.exact,
                    });
                    self.push(Sample::new(since, &now), oldest);
                    before = Some((now, at));
                }
                Err(error) => tracing::debug!(%error, "no sample for the charts"),
            }
        }
    }
}
