//! How many jobs of each kind end, and how long they run, as far as this gateway sees it.
//!
//! The gateway counts the events of jobs. They come by a watch of the whole namespace, which costs ZooKeeper and the gateway about five
//! messages per job. So without a follower of its events, for example an open console, it counts only while the namespace is quiet:
//! see [`is_quiet`]. With a follower the watch exists anyway. Counts are of the last ten minutes, run times of the last
//! hour, of at most 500 jobs of a kind. At most 100 kinds are counted at a time: about 1 MB.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use bellwether::client::{Event, Notification};
use bellwether::{Kind, State};
use tokio::time::{Instant, MissedTickBehavior, interval};

use super::state::App;

/// The time for which counts are kept, and for which alerts consider them.
pub(super) const WINDOW: Duration = Duration::from_secs(600);

/// Counts are forgotten in steps of this length.
const SLOT: Duration = Duration::from_secs(10);

/// Run times older than this are forgotten.
const RUNS_WITHIN: Duration = Duration::from_secs(3_600);

/// Most run times of a kind: the 99th percentile then has five values above it.
const MAX_RUNS: usize = 500;

/// Most kinds: as many as the metric of the queue depth has.
const MAX_KINDS: usize = 100;

/// Submitted or ended jobs per second that are counted without a follower: about 500 small messages per second.
const QUIET: f64 = 100.0;

/// Open jobs with which the gateway counts before it knows a rate. They may all end within a few seconds.
const FEW: usize = 1_000;

/// Whether so few jobs are submitted and end that counting them costs next to nothing. `per_second` are the rates; without one
/// the number of `open` jobs decides.
pub(super) fn is_quiet(mut per_second: impl Iterator<Item = Option<f64>>, open: usize) -> bool {
    per_second.all(|rate| rate.map_or(open <= FEW, |rate| rate <= QUIET))
}

/// Ended jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Ends {
    pub(super) succeeded: u32,
    pub(super) dead: u32,
    pub(super) cancelled: u32,
}

/// Run times of jobs that succeeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RunTime {
    pub(super) p50: Duration,
    pub(super) p99: Duration,
    pub(super) jobs: usize,
}

/// The counts of a kind.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct OfKind {
    pub(super) ends: Ends,
    pub(super) run_time: Option<RunTime>,
}

/// The counts of all kinds.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Report {
    /// For how long events were counted, of the last [`WINDOW`].
    pub(super) observed: Duration,
    /// Whether events were lost or kinds left out in this time.
    pub(super) incomplete: bool,
    pub(super) kinds: BTreeMap<Kind, OfKind>,
}

#[derive(Debug)]
struct Slot {
    from: Instant,
    to: Instant,
    incomplete: bool,
    ends: BTreeMap<Kind, Ends>,
}

#[derive(Debug, Default)]
struct Counts {
    /// Oldest first.
    slots: VecDeque<Slot>,
    /// Oldest first.
    runs: BTreeMap<Kind, VecDeque<(Instant, Duration)>>,
    /// Jobs of all kinds that died, ever since the start.
    dead: u64,
}

impl Counts {
    /// Observes from now on: time since the last slot was not observed.
    fn begin(&mut self, now: Instant) {
        self.forget(now);
        self.slots.push_back(Slot { from: now, to: now, incomplete: false, ends: BTreeMap::new() });
    }

    /// Observed until now.
    fn observed(&mut self, now: Instant) {
        let Some(slot) = self.slots.back_mut() else { return self.begin(now) };
        slot.to = now;
        if now - slot.from >= SLOT {
            self.begin(now);
        }
    }

    fn count(&mut self, now: Instant, notification: &Notification) {
        self.observed(now);
        let Notification::Event(event) = notification else {
            // Some events were lost.
            self.miss();
            return;
        };
        let Event { kind: Some(kind), state, run_time, .. } = &**event else { return };
        if !state.is_terminal() {
            return;
        }
        self.dead += u64::from(*state == State::Dead);
        let known = self.runs.contains_key(kind);
        if !known && self.runs.len() >= MAX_KINDS {
            return self.miss();
        }
        let runs = self.runs.entry(kind.clone()).or_default();
        if let Some(run_time) = run_time {
            if runs.len() >= MAX_RUNS {
                runs.pop_front();
            }
            runs.push_back((now, *run_time));
        }
        let Some(slot) = self.slots.back_mut() else { return };
        let ends = slot.ends.entry(kind.clone()).or_default();
        match state {
            State::Succeeded => ends.succeeded += 1,
            State::Dead => ends.dead += 1,
            State::Cancelled => ends.cancelled += 1,
            State::Queued | State::Delayed | State::Running | State::Quarantined => {}
        }
    }

    fn miss(&mut self) {
        if let Some(slot) = self.slots.back_mut() {
            slot.incomplete = true;
        }
    }

    fn forget(&mut self, now: Instant) {
        while self.slots.front().is_some_and(|slot| now - slot.to > WINDOW) {
            self.slots.pop_front();
        }
        for runs in self.runs.values_mut() {
            while runs.front().is_some_and(|(at, _)| now - *at > RUNS_WITHIN) {
                runs.pop_front();
            }
        }
        let slots = &self.slots;
        self.runs
            .retain(|kind, runs| !runs.is_empty() || slots.iter().any(|slot| slot.ends.contains_key(kind)));
    }

    fn report(&mut self, now: Instant) -> Report {
        self.forget(now);
        let mut kinds = BTreeMap::<Kind, OfKind>::new();
        for (kind, more) in self.slots.iter().flat_map(|slot| &slot.ends) {
            let ends = &mut kinds.entry(kind.clone()).or_default().ends;
            ends.succeeded += more.succeeded;
            ends.dead += more.dead;
            ends.cancelled += more.cancelled;
        }
        for (kind, runs) in &self.runs {
            kinds.entry(kind.clone()).or_default().run_time = run_time(runs.iter().map(|(_, run)| *run));
        }
        Report {
            observed: self.slots.iter().map(|slot| slot.to - slot.from).sum(),
            incomplete: self.slots.iter().any(|slot| slot.incomplete),
            kinds,
        }
    }
}

/// The percentiles: the smallest value that at least 50 or 99 of 100 values do not exceed.
fn run_time(runs: impl Iterator<Item = Duration>) -> Option<RunTime> {
    let mut runs = runs.collect::<Vec<_>>();
    runs.sort_unstable();
    let percentile =
        |percent: usize| runs.get((runs.len() * percent).div_ceil(100).saturating_sub(1)).copied();
    Some(RunTime { p50: percentile(50)?, p99: percentile(99)?, jobs: runs.len() })
}

/// How many jobs died, for a rate between two moments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Deaths {
    /// Since when a task counts without a break.
    pub(super) counted_since: Instant,
    pub(super) jobs: u64,
}

impl Deaths {
    /// Returns the jobs that died since an earlier moment; `None` if they were not counted all the time.
    pub(super) fn since(self, earlier: Self) -> Option<u64> {
        (self.counted_since == earlier.counted_since).then(|| self.jobs.saturating_sub(earlier.jobs))
    }
}

/// The counts, and whether a task counts.
#[derive(Default)]
pub(super) struct KindStatistics(Mutex<Counting>);

#[derive(Debug, Default)]
struct Counting {
    counts: Counts,
    /// Since when a task counts; `None` without one.
    since: Option<Instant>,
    /// Whether it counts without followers.
    is_quiet: bool,
}

impl KindStatistics {
    pub(super) fn report(&self) -> Report {
        self.locked().counts.report(Instant::now())
    }

    /// Returns the kinds of which jobs died, and how many.
    pub(super) fn dead(&self) -> Vec<(Kind, u32)> {
        let kinds = self.report().kinds.into_iter();
        kinds.map(|(kind, of)| (kind, of.ends.dead)).filter(|(_, dead)| *dead > 0).collect()
    }

    /// Returns how many jobs have died; `None` if no task counts.
    pub(super) fn deaths(&self) -> Option<Deaths> {
        let locked = self.locked();
        locked.since.map(|counted_since| Deaths { counted_since, jobs: locked.counts.dead })
    }

    fn locked(&self) -> MutexGuard<'_, Counting> {
        self.0.lock().expect("no code panics while it holds the counts")
    }

    /// Claims the task: returns `false` if there is one.
    fn claim(&self) -> bool {
        let (mut locked, now) = (self.locked(), Instant::now());
        if locked.since.is_some() {
            return false;
        }
        locked.since = Some(now);
        locked.counts.begin(now);
        true
    }

    /// Sets whether events are counted without followers. The task sees it within [`SLOT`].
    pub(super) fn set_quiet(&self, is_quiet: bool) {
        self.locked().is_quiet = is_quiet;
    }

    /// Gives the task up, unless the namespace is quiet or there are followers. Both happen under the lock, so a new follower is not
    /// overlooked.
    fn give_up(&self, has_followers: impl Fn() -> bool) -> bool {
        let mut locked = self.locked();
        locked.counts.observed(Instant::now());
        let ends = !locked.is_quiet && !has_followers();
        if ends {
            locked.since = None;
        }
        ends
    }

    /// The client has ended.
    fn end(&self) {
        let mut locked = self.locked();
        locked.counts.observed(Instant::now());
        locked.since = None;
    }
}

/// Counts events from now on, unless a task does already. The caller has become a follower, or the namespace is quiet.
pub(super) fn start(app: &App) {
    if !app.kind_statistics.claim() {
        return;
    }
    let app = app.clone();
    let mut events = app.client.events();
    tokio::spawn(async move {
        let mut ticks = interval(SLOT);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let statistics = &app.kind_statistics;
        let has_followers = || !app.streams.is_idle();
        loop {
            tokio::select! {
                notification = events.next() => match notification {
                    Some(notification) => statistics.locked().counts.count(Instant::now(), &notification),
                    // The client was closed.
                    None => {
                        statistics.end();
                        return;
                    }
                },
                _ = ticks.tick() => if statistics.give_up(has_followers) {
                    return;
                },
            }
        }
    });
}

#[cfg(test)]
mod tests;
