//! One partition: its waiting jobs, the capacity of its ensemble, and the demand that its leader publishes.

use std::collections::{BTreeMap, VecDeque};

use super::figures::{PLAIN_NS, RECORD_NS};
use super::share::Demand;

/// Classes of jobs, in the order in which a leader starts them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    /// A job with a generated id, of high priority.
    Single,
    /// A job with a lane.
    Laned,
    /// A member of a group.
    Member,
    /// One of the billion jobs of low priority.
    Backlog,
}

impl Class {
    const ALL: [Self; 4] = [Self::Single, Self::Laned, Self::Member, Self::Backlog];

    fn service_ns(self) -> u64 {
        match self {
            Self::Single | Self::Backlog => PLAIN_NS,
            Self::Laned | Self::Member => RECORD_NS,
        }
    }

    /// Index into the two levels of a demand.
    pub(super) fn level(self) -> usize {
        usize::from(self == Self::Backlog)
    }
}

/// Waiting jobs by the time of their submission.
#[derive(Debug, Default)]
pub(super) struct Cohorts {
    of: VecDeque<(u64, u64)>,
    pub(super) jobs: u64,
}

impl Cohorts {
    pub(super) fn add(&mut self, now: u64, jobs: u64) {
        self.jobs += jobs;
        self.of.push_back((now, jobs));
    }

    fn take(&mut self, mut jobs: u64, now: u64, waits: &mut Waits) {
        self.jobs -= jobs;
        while jobs > 0 {
            let (since, first) = self.of.front_mut().expect("the sum of the cohorts is `jobs`");
            let taken = jobs.min(*first);
            waits.add(now - *since, taken);
            jobs -= taken;
            *first -= taken;
            if *first == 0 {
                self.of.pop_front();
            }
        }
    }
}

/// How long jobs waited, in ticks.
#[derive(Debug, Default)]
pub(super) struct Waits(BTreeMap<u64, u64>);

impl Waits {
    pub(super) fn add(&mut self, ticks: u64, jobs: u64) {
        *self.0.entry(ticks).or_default() += jobs;
    }

    /// Returns the time within which this part of the jobs, in hundredths, started.
    pub(super) fn percentile(&self, hundredths: u64) -> Option<u64> {
        let rank = (self.0.values().sum::<u64>() * hundredths).div_ceil(100);
        let mut sum = 0;
        self.0.iter().find_map(|(ticks, jobs)| {
            sum += jobs;
            (sum >= rank).then_some(*ticks)
        })
    }
}

#[derive(Debug, Default)]
pub(super) struct Partition {
    /// A leader assigns jobs.
    pub(super) up: bool,
    pub(super) backlog: u64,
    pub(super) single: Cohorts,
    pub(super) members: Cohorts,
    /// Lanes whose next job may start.
    pub(super) lanes: VecDeque<usize>,
    /// Running jobs of both levels.
    pub(super) running: [u64; 2],
    /// Waits of single jobs, of jobs with a lane, and of members of groups.
    pub(super) waits: [Waits; 3],
    budget_ns: u64,
}

/// Jobs to start on one worker.
pub(super) struct Batch {
    pub(super) class: Class,
    pub(super) jobs: u64,
    pub(super) lane: Option<usize>,
}

impl Partition {
    pub(super) fn new() -> Self {
        Self { up: true, ..Self::default() }
    }

    /// The ensemble works for one more tick. Time that it does not use is lost, except for a tick.
    pub(super) fn serve(&mut self, tick_ns: u64) {
        self.budget_ns = self.budget_ns.min(tick_ns) + tick_ns;
    }

    /// Takes waiting jobs of one class, at most `free`, within the time of the ensemble.
    pub(super) fn take(&mut self, free: u64, now: u64) -> Option<Batch> {
        let class = Class::ALL.into_iter().find(|class| self.startable(*class) > 0)?;
        let most = if class == Class::Laned { free.min(1) } else { free };
        let jobs = most.min(self.startable(class)).min(self.budget_ns / class.service_ns());
        if jobs == 0 {
            return None;
        }
        self.budget_ns -= jobs * class.service_ns();
        self.running[class.level()] += jobs;
        let [single, _, members] = &mut self.waits;
        let mut lane = None;
        match class {
            Class::Single => self.single.take(jobs, now, single),
            Class::Laned => lane = self.lanes.pop_front(),
            Class::Member => self.members.take(jobs, now, members),
            Class::Backlog => self.backlog -= jobs,
        }
        Some(Batch { class, jobs, lane })
    }

    fn startable(&self, class: Class) -> u64 {
        match class {
            Class::Single => self.single.jobs,
            Class::Laned => self.lanes.len() as u64,
            Class::Member => self.members.jobs,
            Class::Backlog => self.backlog,
        }
    }

    /// Returns how many jobs wait only for a slot: not for their lane, and not for the ensemble.
    pub(super) fn waits_for_slots(&self) -> u64 {
        let next = Class::ALL.into_iter().find(|class| self.startable(*class) > 0);
        if !self.up || next.is_none_or(|class| self.budget_ns < class.service_ns()) {
            return 0;
        }
        Class::ALL.into_iter().map(|class| self.startable(class)).sum()
    }

    /// Returns the demand that the leader publishes: the slots that it can use, at most as many as its ensemble can keep busy.
    pub(super) fn demand(&self, run_ns: u64) -> Demand {
        let running = self.running.iter().sum();
        if !self.up {
            return Demand { up: false, slots: [0; 2], running };
        }
        let mut slots = self.running;
        let (mut left_ns, mut rate) = (1_000_000_000, 0);
        for class in Class::ALL {
            let startable = self.startable(class);
            slots[class.level()] += startable;
            let started = startable.min(left_ns / class.service_ns());
            rate += started;
            left_ns -= started * class.service_ns();
        }
        // If the jobs that wait do not take a second, the rate follows from the part of it that they take.
        let rate = if rate == 0 { u64::MAX } else { rate * 1_000_000_000 / (1_000_000_000 - left_ns) };
        // A tenth more, because runs have different lengths.
        let most = u128::from(rate) * u128::from(run_ns) * 11 / 10_000_000_000;
        let most = u64::try_from(most).unwrap_or(u64::MAX).max(1);
        let urgent = slots[0].min(most);
        Demand { up: true, slots: [urgent, slots[1].min(most - urgent)], running }
    }
}
