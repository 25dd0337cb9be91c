//! The view of two snapshots and the time between them.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, SystemTime};

use bellwether::WorkerId;
use bellwether::client::{
    Depths, Estimate, KindView, LeaderView, Paused, Snapshot, WorkerView, WrongClock, rfc3339,
};
use clap::ValueEnum;
use serde::Serialize;

use bellwether_gateway::rates::Rates;

/// Sort order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum Sort {
    /// Workers with the most assigned jobs and kinds with the most waiting jobs first.
    #[default]
    Busy,
    /// Workers with the most ended attempts per second and kinds with the most waiting jobs first.
    Rate,
    /// By name.
    Name,
    /// Workers that started last first.
    Age,
}

impl Sort {
    /// Returns the next order; the last is followed by the first.
    pub(crate) fn next(self) -> Self {
        match self {
            Self::Busy => Self::Rate,
            Self::Rate => Self::Name,
            Self::Name => Self::Age,
            Self::Age => Self::Busy,
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Busy => "busy",
            Self::Rate => "rate",
            Self::Name => "name",
            Self::Age => "age",
        }
    }
}

/// A page.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct View {
    pub(crate) at: String,
    pub(crate) leader: Option<Leader>,
    pub(crate) jobs: Jobs,
    pub(crate) per_second: Option<PerSecond>,
    pub(crate) workers: Vec<Worker>,
    pub(crate) kinds: Vec<Kind>,
    /// The hosts whose wall clock is wrong, as text.
    pub(crate) skewed: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Leader {
    pub(crate) node: String,
    pub(crate) epoch: i32,
    /// Whether it is still a candidate. If not, it was the last leader and there is no leader now.
    pub(crate) standing: bool,
    pub(crate) age: Duration,
}

/// Number of jobs by state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Jobs {
    pub(crate) queued: usize,
    pub(crate) delayed: usize,
    /// `false` if there are more delayed jobs, in minutes that were not read.
    pub(crate) delayed_exact: bool,
    pub(crate) running: usize,
    pub(crate) orphaned: usize,
    pub(crate) quarantined: usize,
    /// Ended jobs whose records are kept; `None` unless all open jobs were counted.
    pub(crate) over: Option<usize>,
}

/// Rates per second since the previous snapshot; `None` if a counter was reset.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct PerSecond {
    pub(crate) jobs: Rates,
    /// Ended attempts of the workers that are still live.
    pub(crate) ended: f64,
}

/// A live worker. Fields of its registration are `None` if it cannot be read.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Worker {
    pub(crate) id: String,
    pub(crate) node: Option<String>,
    pub(crate) host: Option<String>,
    pub(crate) state: State,
    pub(crate) assigned: usize,
    pub(crate) slots: Option<u32>,
    pub(crate) ended_per_second: Option<f64>,
    pub(crate) age: Option<Duration>,
    pub(crate) tags: Vec<String>,
    pub(crate) kinds: Vec<String>,
    pub(crate) error: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    Ready,
    Draining,
    /// The leader assigns no jobs to it for a while.
    Shunned,
    Unreadable,
}

impl State {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Ready => "ready",
            Self::Draining => "draining",
            Self::Shunned => "shunned",
            Self::Unreadable => "unreadable",
        }
    }
}

/// A kind that a live worker serves, that is paused, or that waiting jobs have.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Kind {
    pub(crate) kind: String,
    pub(crate) workers: usize,
    pub(crate) assigned: usize,
    pub(crate) slots: usize,
    pub(crate) waiting: Option<Count>,
    pub(crate) running: Option<Count>,
    /// Ended attempts of its workers, if all of them serve only this kind: attempts are not counted by kind.
    pub(crate) ended_per_second: Option<f64>,
    /// The author and the note of the pause.
    pub(crate) paused: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) struct Count {
    pub(crate) count: usize,
    pub(crate) exact: bool,
}

impl From<Estimate> for Count {
    fn from(Estimate { count, exact, .. }: Estimate) -> Self {
        Self { count, exact }
    }
}

impl View {
    /// `before`: the previous snapshot and its age.
    pub(crate) fn new(before: Option<(&Snapshot, Duration)>, now: &Snapshot, sort: Sort) -> Self {
        let before = before.filter(|(_, ago)| !ago.is_zero());
        let ended = before.map(|(before, ago)| ended(before, now, ago)).unwrap_or_default();
        let Depths { stored, queued, delayed, quarantined, .. } = now.depths;
        let mut view = Self {
            at: rfc3339(now.at),
            leader: now.leader.as_ref().map(|leader| self::leader(leader, now)),
            jobs: Jobs {
                queued,
                delayed,
                delayed_exact: now.further_minutes == 0,
                running: now.assigned(),
                orphaned: now.orphaned,
                quarantined,
                over: (now.further_minutes == 0).then(|| stored.saturating_sub(now.open())),
            },
            per_second: before.map(|(before, ago)| PerSecond {
                jobs: Rates::between(before, now, ago),
                ended: ended.values().sum(),
            }),
            workers: now.workers.iter().map(|one| worker(one, now, ended.get(&one.id).copied())).collect(),
            kinds: kinds(now, &ended),
            skewed: WrongClock::by_host(&now.wrong_clocks).into_iter().map(ToString::to_string).collect(),
        };
        view.sort(sort);
        view
    }

    pub(crate) fn sort(&mut self, sort: Sort) {
        // Ids are ordered by time, and the sorts below are stable.
        self.workers.sort_by(|a, b| a.id.cmp(&b.id));
        match sort {
            Sort::Busy => self.workers.sort_by_key(|worker| std::cmp::Reverse(worker.assigned)),
            Sort::Rate => self.workers.sort_by(|a, b| {
                let rate = |worker: &Worker| worker.ended_per_second.unwrap_or_default();
                rate(b).total_cmp(&rate(a))
            }),
            Sort::Name => self.workers.sort_by(|a, b| a.node.cmp(&b.node)),
            Sort::Age => self.workers.reverse(),
        }
        self.kinds.sort_by(|a, b| a.kind.cmp(&b.kind));
        match sort {
            Sort::Busy | Sort::Rate => self.kinds.sort_by_key(|kind| {
                let count = |count: Option<Count>| count.map_or(0, |count| count.count);
                std::cmp::Reverse((count(kind.waiting), count(kind.running)))
            }),
            Sort::Name | Sort::Age => {}
        }
    }

    /// Returns the jobs of live workers and their slots.
    pub(crate) fn slots(&self) -> (usize, usize) {
        let slots = self.workers.iter().filter_map(|worker| worker.slots).map(|slots| slots as usize).sum();
        (self.jobs.running, slots)
    }
}

fn leader(leader: &LeaderView, now: &Snapshot) -> Leader {
    let LeaderView { node, epoch, since, standing, .. } = leader;
    Leader { node: node.to_string(), epoch: *epoch, standing: *standing, age: age(*since, now) }
}

/// Computed from the clocks of two machines; a start in the future counts as age 0.
fn age(since: SystemTime, now: &Snapshot) -> Duration {
    now.at.duration_since(since).unwrap_or_default()
}

fn per_second(count: f64, over: Duration) -> f64 {
    count / over.as_secs_f64()
}

/// Returns the ended attempts per second of each worker: an estimate while there are segments, which leave an inbox under one name. A
/// worker that is new since `before` started at 0.
fn ended(before: &Snapshot, now: &Snapshot, ago: Duration) -> BTreeMap<WorkerId, f64> {
    let before = before.workers.iter().map(|worker| (worker.id, worker.ended)).collect::<BTreeMap<_, _>>();
    let ended = now.workers.iter().filter_map(|worker| {
        let before = before.get(&worker.id).copied().unwrap_or_default();
        let attempts = f64::from(worker.ended.since(before)?) * now.record_totals.jobs_per_record;
        Some((worker.id, per_second(attempts, ago)))
    });
    ended.collect()
}

fn worker(worker: &WorkerView, now: &Snapshot, ended_per_second: Option<f64>) -> Worker {
    let WorkerView { id, info, assigned, shunned_until, .. } = worker;
    let (id, assigned) = (id.to_string(), *assigned);
    match info {
        Ok(info) => Worker {
            id,
            node: Some(info.node.to_string()),
            host: Some(info.host.clone()),
            state: match (info.draining, shunned_until) {
                (true, _) => State::Draining,
                (false, Some(_)) => State::Shunned,
                (false, None) => State::Ready,
            },
            assigned,
            slots: Some(info.slots),
            ended_per_second,
            age: Some(age(info.started_at, now)),
            tags: info.tags.iter().map(ToString::to_string).collect(),
            kinds: info.kinds.iter().map(ToString::to_string).collect(),
            error: None,
        },
        Err(error) => Worker {
            id,
            node: None,
            host: None,
            state: State::Unreadable,
            assigned,
            slots: None,
            ended_per_second,
            age: None,
            tags: Vec::new(),
            kinds: Vec::new(),
            error: Some(error.to_string()),
        },
    }
}

fn kinds(now: &Snapshot, ended: &BTreeMap<WorkerId, f64>) -> Vec<Kind> {
    let only =
        now.workers.iter().filter(|worker| worker.info.as_ref().is_ok_and(|info| info.kinds.len() == 1));
    let only = only.map(|worker| worker.id).collect::<BTreeSet<_>>();
    let served = now.kinds.iter().map(|KindView { kind, workers, slots, assigned, paused, .. }| Kind {
        kind: kind.to_string(),
        workers: workers.len(),
        assigned: *assigned,
        slots: *slots,
        waiting: now.queued.of(kind).map(Count::from),
        running: now.running.of(kind).map(Count::from),
        ended_per_second: (!workers.is_empty() && workers.iter().all(|id| only.contains(id)))
            .then(|| workers.iter().map(|id| ended.get(id)).sum::<Option<f64>>())
            .flatten(),
        paused: paused.as_ref().map(|Paused { by, note, .. }| {
            by.iter().chain(note).map(String::as_str).collect::<Vec<_>>().join(": ")
        }),
    });
    let known = |kind: &bellwether::Kind| now.kinds.iter().any(|view| view.kind == *kind);
    let unserved = now.queued.seen.keys().filter(|kind| !known(kind)).map(|kind| Kind {
        kind: kind.to_string(),
        workers: 0,
        assigned: 0,
        slots: 0,
        waiting: now.queued.of(kind).map(Count::from),
        running: now.running.of(kind).map(Count::from),
        ended_per_second: None,
        paused: None,
    });
    served.chain(unserved).collect()
}
