//! The slots of all workers, and the quota that each worker offers each partition.
//!
//! A leader starts a job on a worker only below its quota there. A worker lowers quotas first and raises others only by slots
//! that are neither used nor offered, so the leaders together never start more jobs than it has slots.

use std::collections::VecDeque;

use super::share::{Demand, portion, split};

/// Spreads the offsets of workers with neighbouring ranks: 2³² divided by the golden ratio.
const GOLDEN: u32 = 2_654_435_769;

pub(super) struct Slots {
    pub(super) workers: usize,
    partitions: usize,
    each: u64,
    /// By worker, then by partition.
    running: Vec<u64>,
    quota: Vec<u64>,
    wanted: Vec<u64>,
    used: Vec<u64>,
    /// Since when slots of a worker are idle. The slot that has been idle longest is used next.
    idle: Vec<VecDeque<(u64, u64)>>,
    /// Most jobs beyond the slots of a worker at any time.
    pub(super) over_committed: u64,
}

impl Slots {
    pub(super) fn new(workers: usize, each: u64, partitions: usize) -> Self {
        let even = (0..workers).flat_map(|_| split(each, &vec![1; partitions], 0)).collect::<Vec<_>>();
        Self {
            workers,
            partitions,
            each,
            running: vec![0; workers * partitions],
            quota: even.clone(),
            wanted: even,
            used: vec![0; workers],
            idle: vec![VecDeque::from([(0, each)]); workers],
            over_committed: 0,
        }
    }

    pub(super) fn total(&self) -> u64 {
        self.workers as u64 * self.each
    }

    pub(super) fn free(&self, worker: usize, partition: usize) -> u64 {
        let at = worker * self.partitions + partition;
        self.quota[at].saturating_sub(self.running[at])
    }

    pub(super) fn start(&mut self, worker: usize, partition: usize, mut jobs: u64) {
        self.running[worker * self.partitions + partition] += jobs;
        self.used[worker] += jobs;
        self.over_committed = self.over_committed.max(self.used[worker].saturating_sub(self.each));
        while let Some((_, idle)) = self.idle[worker].front_mut().filter(|_| jobs > 0) {
            let taken = jobs.min(*idle);
            jobs -= taken;
            *idle -= taken;
            if *idle == 0 {
                self.idle[worker].pop_front();
            }
        }
    }

    pub(super) fn end(&mut self, worker: usize, partition: usize, jobs: u64, now: u64) {
        self.running[worker * self.partitions + partition] -= jobs;
        self.used[worker] -= jobs;
        self.idle[worker].push_back((now, jobs));
    }

    /// Withdraws all quotas for a partition: those of a former leader's term are void.
    pub(super) fn withdraw(&mut self, partition: usize) {
        for worker in 0..self.workers {
            let at = worker * self.partitions + partition;
            self.quota[at] = self.running[at];
            self.wanted[at] = self.running[at];
        }
    }

    /// Each worker computes its quotas from what the partitions published: it keeps what runs, less its part of what a
    /// partition has beyond its target, and offers the rest where slots are missing. Slots that were idle since `before`, the
    /// last time, were offered where they were not needed: the partition that lacks most gets them.
    pub(super) fn rebalance(&mut self, demands: &[Demand], targets: &[u64], turn: u32, before: u64) {
        let lack = |demand: &Demand| (demand.slots[0] + demand.slots[1]).saturating_sub(demand.running);
        let neediest = (0..demands.len()).max_by_key(|at| lack(&demands[*at])).unwrap_or_default();
        let missing =
            demands.iter().zip(targets).map(|(demand, target)| target.saturating_sub(demand.running));
        let mut missing = missing.collect::<Vec<_>>();
        if missing.iter().all(|slots| *slots == 0) {
            missing = demands.iter().map(|demand| u64::from(demand.up)).collect();
        }
        for worker in 0..self.workers {
            let own = worker * self.partitions..(worker + 1) * self.partitions;
            let offset = ((worker as u64) << 32) / self.workers as u64;
            let kept = self.running[own.clone()].iter().zip(demands).zip(targets);
            let kept = kept.map(|((&running, demand), &target)| {
                if target >= demand.running {
                    return running;
                }
                running.min(portion(running, target, demand.running, offset as u32))
            });
            let mut wanted = kept.collect::<Vec<_>>();
            let unused =
                self.idle[worker].iter().filter(|(since, _)| *since <= before).map(|(_, slots)| slots);
            let left = self.each.saturating_sub(wanted.iter().sum());
            let unused = if lack(&demands[neediest]) > 0 { unused.sum::<u64>().min(left) } else { 0 };
            wanted[neediest] += unused;
            let left = left - unused;
            let offset = (worker as u32).wrapping_add(turn).wrapping_mul(GOLDEN);
            for (wanted, more) in wanted.iter_mut().zip(split(left, &missing, offset)) {
                *wanted += more;
            }
            for (quota, wanted) in self.quota[own.clone()].iter_mut().zip(&wanted) {
                *quota = (*quota).min(*wanted);
            }
            self.wanted[own].copy_from_slice(&wanted);
        }
    }

    /// Raises quotas by slots that are neither used nor offered.
    pub(super) fn raise(&mut self, turn: usize) {
        for worker in 0..self.workers {
            let first = worker * self.partitions;
            let offered = self.quota[first..first + self.partitions].iter().sum::<u64>();
            if offered == self.each {
                continue;
            }
            let taken = (first..first + self.partitions).map(|at| self.quota[at].max(self.running[at]));
            let mut spare = self.each.saturating_sub(taken.sum());
            for step in 0..self.partitions {
                let at = first + (worker + turn + step) % self.partitions;
                let more = spare.min(self.wanted[at].saturating_sub(self.quota[at].max(self.running[at])));
                if more > 0 {
                    self.quota[at] = self.quota[at].max(self.running[at]) + more;
                    spare -= more;
                }
            }
        }
    }

    /// Returns the number of idle slots, and since when the longest of them is idle. If no job waits, their time begins now.
    pub(super) fn idle(&mut self, now: u64, waiting: u64) -> (u64, u64) {
        let mut oldest = now;
        let mut sum = 0;
        for (idle, used) in self.idle.iter_mut().zip(&self.used) {
            let free = self.each.saturating_sub(*used);
            sum += free;
            if waiting == 0 {
                idle.clear();
                idle.extend((free > 0).then_some((now, free)));
            }
            oldest = oldest.min(idle.front().map_or(now, |(since, _)| *since));
        }
        (sum, oldest)
    }
}
