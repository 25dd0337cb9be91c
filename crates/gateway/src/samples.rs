//! Samples of the cluster over the last hour, for charts.
//!
//! Each gateway takes its own, one every ten seconds (at most about 25 requests to ZooKeeper, up to 0.2 MB), and keeps them in memory. A
//! failed snapshot leaves a gap. The alerts are evaluated at each sample.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::time::{Duration, SystemTime};

use bellwether::InstantText;
use bellwether::client::{Snapshot, SnapshotOptions};
use serde::Serialize;
use tokio::time::{Instant, MissedTickBehavior, interval};
use utoipa::ToSchema;

use super::alerts::{Alert, Alerts, Facts, cut_off};
use super::kind_statistics::{self, Deaths, WINDOW, is_quiet};
use super::limits::MAX_MINUTES;
use super::server::Phase;
use super::state::App;
use crate::rates::Rates;

/// Time between samples.
pub(super) const EVERY: Duration = Duration::from_secs(10);

/// An hour of samples: 30 KB.
const KEPT: usize = 360;

/// The access lists are read in every 30th sample: every five minutes, two dozen small requests.
const ACCESS_EVERY: usize = 30;

/// ZooKeeper does not serve a gateway whose last sample is older: as in the alert of a node.
const CUT_OFF: Duration = Duration::from_secs(60);

/// The cluster at a moment.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(super) struct Sample {
    /// When it was taken.
    at: InstantText,
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
    /// Jobs that died per second since the previous sample; null unless this gateway has counted all the time: it does while
    /// few jobs end, or it sends events to at least one follower.
    #[schema(required)]
    dead_per_second: Option<f64>,
}

/// The job that has waited longest for a worker.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(super) struct OldestQueued {
    /// Its id.
    id: String,
    /// Since when it could run: its submission, or the end of its delay.
    since: InstantText,
    /// Whether all queued jobs were read. If not, it is the oldest of the most urgent jobs, and another may have waited longer.
    exact: bool,
}

/// What a sample is compared with.
struct Earlier {
    snapshot: Snapshot,
    deaths: Option<Deaths>,
    at: Instant,
}

impl Sample {
    fn new(earlier: Option<&Earlier>, now: &Snapshot, deaths: Option<Deaths>, at: Instant) -> Self {
        let elapsed = earlier.map(|earlier| at - earlier.at).unwrap_or_default();
        let rates = earlier.map(|earlier| Rates::between(&earlier.snapshot, now, elapsed));
        let dead = earlier.and_then(|earlier| deaths?.since(earlier.deaths?));
        let slots = now.workers.iter().filter_map(|worker| worker.info.as_ref().ok());
        Self {
            at: InstantText(now.at),
            queued: now.depths.queued,
            delayed: now.depths.delayed,
            running: now.assigned(),
            workers: now.workers.len(),
            slots: slots.map(|info| u64::from(info.slots)).sum(),
            submitted_per_second: rates.and_then(|rates| rates.submitted).map(tenths),
            finished_per_second: rates.and_then(|rates| rates.finished).map(tenths),
            dead_per_second: dead.map(|jobs| per_second(jobs, elapsed)),
        }
    }

    /// Whether the events of jobs are counted without a follower.
    fn is_quiet(&self, open: usize) -> bool {
        is_quiet([self.submitted_per_second, self.finished_per_second].into_iter(), open)
    }
}

/// A rate that does not round one job to zero.
fn per_second(jobs: u64, elapsed: Duration) -> f64 {
    let jobs = u32::try_from(jobs).unwrap_or(u32::MAX);
    let rate = f64::from(jobs) / elapsed.as_secs_f64().max(0.001);
    (rate * 1_000.0).round() / 1_000.0
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
    /// From the last sample.
    alerts: Vec<Alert>,
    /// When the last sample was taken, by ZooKeeper's clock and by the monotonic one.
    taken: Option<(SystemTime, Instant)>,
}

impl Samples {
    pub(super) fn list(&self) -> Vec<Sample> {
        self.kept().samples.iter().cloned().collect()
    }

    /// Returns the job that had waited longest when the last sample was taken.
    pub(super) fn oldest_queued(&self) -> Option<OldestQueued> {
        self.kept().oldest_queued.clone()
    }

    /// Returns when the alerts were evaluated, and those that fire.
    pub(super) fn alerts(&self, now: Instant) -> (Option<SystemTime>, Vec<Alert>) {
        let kept = self.kept();
        let Some((at, taken)) = kept.taken else { return (None, Vec::new()) };
        let cut_off = (now.saturating_duration_since(taken) > CUT_OFF).then(|| cut_off(at));
        (Some(at), cut_off.into_iter().chain(kept.alerts.iter().cloned()).collect())
    }

    /// The jobs that were queued at the beginning of the time that the alerts consider.
    fn queued_before(&self) -> Option<usize> {
        let back = WINDOW.as_secs() / EVERY.as_secs();
        let kept = self.kept();
        let at = kept.samples.len().checked_sub(usize::try_from(back).ok()?)?;
        kept.samples.get(at).map(|sample| sample.queued)
    }

    fn push(&self, sample: Sample, now: &Snapshot, alerts: Vec<Alert>) {
        let oldest_queued = now.oldest_queued.as_ref().map(|oldest| OldestQueued {
            id: oldest.id.to_string(),
            since: InstantText(oldest.since),
            exact: oldest.exact,
        });
        let mut kept = self.kept();
        (kept.alerts, kept.taken) = (alerts, Some((now.at, Instant::now())));
        if kept.samples.len() == KEPT {
            kept.samples.pop_front();
        }
        kept.samples.push_back(sample);
        kept.oldest_queued = oldest_queued;
    }

    fn kept(&self) -> std::sync::MutexGuard<'_, Kept> {
        self.0.lock().expect("no code panics while it holds the samples")
    }

    /// Takes samples until the gateway stops. `warn_of_open` says whether an open namespace is worth an alert.
    pub(super) async fn collect(app: &App, warn_of_open: bool) {
        let (client, statistics, mut phase) = (&app.client, &app.kind_statistics, app.phase.clone());
        let mut ticks = interval(EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut earlier: Option<Earlier> = None;
        let (mut alerts, mut open_znodes) = (Alerts::default(), Vec::new());
        for turn in 0.. {
            tokio::select! {
                _ = ticks.tick() => {}
                _ = phase.wait_for(|phase| *phase > Phase::Serving) => {
                    statistics.set_quiet(false);
                    return;
                }
            }
            let options = SnapshotOptions::default().minutes(MAX_MINUTES).sample(turn).waiting_only(true);
            let taken = client.snapshot(options).await;
            let at = Instant::now();
            match taken {
                Ok(now) => {
                    if warn_of_open && turn % ACCESS_EVERY == 0 {
                        open_znodes = client.open_znodes().await.unwrap_or(open_znodes);
                        // Anyone may create a namespace in an open root. That is a weakness of ZooKeeper's setup: nodes log it.
                        open_znodes.retain(|path| path != "/");
                    }
                    let facts = Facts {
                        snapshot: &now,
                        queued_before: app.samples.queued_before(),
                        open_znodes: &open_znodes,
                        dead: statistics.dead(),
                    };
                    let firing = alerts.evaluate(&facts);
                    let deaths = statistics.deaths();
                    let sample = Sample::new(earlier.as_ref(), &now, deaths, at);
                    let quiet = sample.is_quiet(now.open());
                    statistics.set_quiet(quiet);
                    if quiet {
                        kind_statistics::start(app);
                    }
                    app.samples.push(sample, &now, firing);
                    earlier = Some(Earlier { snapshot: now, deaths, at });
                }
                Err(error) => {
                    tracing::debug!(%error, "the gateway cannot read the cluster: the charts miss a sample")
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use bellwether::testing::views;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn first(snapshot: &Snapshot) -> Sample {
        Sample::new(None, snapshot, None, Instant::now())
    }

    #[test]
    fn rates_are_those_since_the_previous_sample() {
        let (at, snapshot) = (Instant::now(), views::snapshot(SystemTime::UNIX_EPOCH));
        let deaths = |counted_since, jobs| Some(Deaths { counted_since, jobs });
        let earlier = |deaths| Earlier { snapshot: snapshot.clone(), deaths, at };
        let dead = |before, now| {
            let sample = Sample::new(Some(&earlier(before)), &snapshot, now, at + 10 * SECOND);
            assert_eq!(sample.submitted_per_second, Some(0.0));
            sample.dead_per_second
        };
        assert_eq!(dead(deaths(at, 3), deaths(at, 4)), Some(0.1));
        assert_eq!(dead(deaths(at, 3), deaths(at, 3)), Some(0.0));
        assert_eq!(dead(deaths(at, 3), deaths(at + SECOND, 3)), None, "there was no follower in between");
        assert_eq!((dead(None, deaths(at, 3)), dead(deaths(at, 3), None)), (None, None));
        let sample = first(&snapshot);
        assert_eq!((sample.submitted_per_second, sample.dead_per_second), (None, None));
    }

    #[test]
    fn samples_of_an_hour_are_kept() {
        let samples = Samples::default();
        for queued in 0..KEPT + 5 {
            let mut snapshot = views::snapshot(SystemTime::UNIX_EPOCH);
            snapshot.depths.queued = queued;
            samples.push(first(&snapshot), &snapshot, Vec::new());
        }
        let kept = samples.list();
        assert_eq!((kept.len(), kept[0].queued, kept[KEPT - 1].queued), (360, 5, KEPT + 4));
        assert_eq!(EVERY * 360, Duration::from_secs(3_600));
    }

    #[test]
    fn a_gateway_without_new_samples_reports_that_it_is_cut_off() {
        let samples = Samples::default();
        assert_eq!(samples.alerts(Instant::now()), (None, Vec::new()));
        let snapshot = views::snapshot(SystemTime::UNIX_EPOCH + 100 * SECOND);
        let before = Instant::now();
        samples.push(first(&snapshot), &snapshot, Vec::new());
        assert_eq!(samples.alerts(before + CUT_OFF).1, Vec::new());
        let (at, alerts) = samples.alerts(Instant::now() + CUT_OFF + SECOND);
        assert_eq!(at, Some(snapshot.at));
        assert_eq!(alerts.iter().map(|alert| alert.name).collect::<Vec<_>>(), ["BellwetherCutOff"]);
    }

    #[test]
    fn the_queue_is_compared_with_that_of_ten_minutes_ago() {
        let samples = Samples::default();
        for queued in 0..61 {
            assert_eq!(samples.queued_before(), (queued == 60).then_some(0), "after {queued} samples");
            let mut snapshot = views::snapshot(SystemTime::UNIX_EPOCH);
            snapshot.depths.queued = queued;
            samples.push(first(&snapshot), &snapshot, Vec::new());
        }
        assert_eq!(samples.queued_before(), Some(1));
    }
}
