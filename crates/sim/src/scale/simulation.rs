//! The run: ticks of 10 ms. A period has a second: the leaders publish their demands, and 100 ms later each worker changes its
//! quotas.

use std::collections::VecDeque;

use fastrand::Rng;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::figures;
use super::outcome::{Burst, Loss, Outcome, Wait};
use super::partition::{Class, Partition};
use super::setup::{BACKLOG, GROUP, LANES, PARKED, SECONDS, SKEW, Setup, WARM_UP};
use super::share::{Demand, split, targets};
use super::slots::Slots;

pub(super) const TICK_MS: u64 = 10;
/// Ticks of a second, which is the period of the quotas.
const PERIOD: u64 = 1_000 / TICK_MS;
/// Ticks from a publication to the new quotas.
const NOTICE: u64 = 10;

/// Runs that end together.
struct End {
    worker: usize,
    partition: usize,
    class: Class,
    jobs: u64,
    lane: Option<usize>,
}

#[derive(Default)]
struct Lane {
    partition: usize,
    /// When its waiting jobs were submitted.
    waiting: VecDeque<u64>,
    running: bool,
}

pub(super) struct Simulation {
    setup: Setup,
    /// Draws what arrives, which is the same for every number of partitions.
    arrivals: Rng,
    /// Draws the rest.
    rng: Rng,
    now: u64,
    partitions: Vec<Partition>,
    parked: Vec<u64>,
    slots: Slots,
    published: Vec<Demand>,
    targets: Vec<u64>,
    lanes: Vec<Lane>,
    /// The sums of the weights of the lanes up to each.
    popularity: Vec<f64>,
    /// Arrivals that are due: single jobs, jobs with a lane.
    due: [f64; 2],
    arrived: u64,
    ends: Vec<Vec<End>>,
    /// Jobs whose results are stored, by second and partition.
    finished: Vec<Vec<u64>>,
    /// Results of the lost partition that its workers keep.
    unreported: u64,
    idle_slots: u64,
    longest_idle: u64,
    server_bytes: u64,
    leader_bytes: u64,
    burst: Option<Burst>,
    back: Option<u64>,
    resumed: Option<u64>,
}

impl Simulation {
    pub(super) fn new(setup: Setup) -> Self {
        let count = setup.partitions;
        let mut partitions = (0..count).map(|_| Partition::new()).collect::<Vec<_>>();
        let backlogged = setup.backlogged();
        for (at, jobs) in backlogged.iter().zip(split(BACKLOG, &vec![1; backlogged.len()], 0)) {
            partitions[*at].backlog = jobs;
        }
        let hashed = |lane| Lane { partition: place(lane, setup.seed, count), ..Lane::default() };
        let mut sum = 0.0;
        let popularity = (1..=LANES).map(|rank| {
            sum += (rank as f64).powf(-SKEW);
            sum
        });
        Self {
            arrivals: Rng::with_seed(setup.seed),
            rng: Rng::with_seed(!setup.seed),
            now: 0,
            partitions,
            parked: split(PARKED, &vec![1; count], 0),
            slots: Slots::new(setup.workers, setup.slots, count),
            published: vec![Demand::default(); count],
            targets: vec![0; count],
            lanes: (0..LANES as u64).map(hashed).collect(),
            popularity: popularity.collect(),
            due: [0.0; 2],
            arrived: 0,
            ends: (0..=setup.run_ms * 3 / 2 / TICK_MS + 1).map(|_| Vec::new()).collect(),
            finished: vec![vec![0; count]; SECONDS as usize],
            unreported: 0,
            idle_slots: 0,
            longest_idle: 0,
            server_bytes: 0,
            leader_bytes: 0,
            burst: None,
            back: None,
            resumed: None,
            setup,
        }
    }

    pub(super) fn run(mut self) -> Outcome {
        while self.now < SECONDS * PERIOD {
            self.end_runs();
            self.lose_and_return();
            self.submit();
            if self.now.is_multiple_of(PERIOD) {
                self.publish();
            }
            if self.now % PERIOD == NOTICE {
                let turn = (self.now / PERIOD) as u32;
                let before = self.now.saturating_sub(PERIOD);
                self.slots.rebalance(&self.published, &self.targets, turn, before);
            }
            self.slots.raise(self.now as usize);
            (0..self.partitions.len()).for_each(|at| self.assign(at));
            self.measure();
            self.now += 1;
        }
        self.outcome()
    }

    fn end_runs(&mut self) {
        let at = self.now as usize % self.ends.len();
        for end in std::mem::take(&mut self.ends[at]) {
            self.slots.end(end.worker, end.partition, end.jobs, self.now);
            let partition = &mut self.partitions[end.partition];
            partition.running[end.class.level()] -= end.jobs;
            if partition.up {
                self.finished[(self.now / PERIOD) as usize][end.partition] += end.jobs;
            } else {
                self.unreported += end.jobs;
            }
            if let Some(lane) = end.lane {
                self.lanes[lane].running = false;
                if !self.lanes[lane].waiting.is_empty() {
                    partition.lanes.push_back(lane);
                }
            }
        }
    }

    fn lose_and_return(&mut self) {
        let Some((from, to)) = self.setup.lost else { return };
        if self.now == from * PERIOD {
            self.partitions[0].up = false;
        }
        if self.now == to * PERIOD {
            // The servers answer: results are stored, and the next leader is elected and reads the state.
            self.finished[to as usize][0] += std::mem::take(&mut self.unreported);
            self.back = Some(self.now + figures::takeover_ms(self.parked[0]) / TICK_MS);
        }
        if self.back == Some(self.now) {
            self.partitions[0].up = true;
            self.slots.withdraw(0);
        }
    }

    fn submit(&mut self) {
        let rates = [self.setup.single, self.setup.laned];
        self.due.iter_mut().zip(rates).for_each(|(due, rate)| *due += rate / PERIOD as f64);
        while self.due[0] >= 1.0 {
            self.due[0] -= 1.0;
            self.arrived += 1;
            self.single();
        }
        while self.due[1] >= 1.0 {
            self.due[1] -= 1.0;
            let drawn = self.arrivals.f64() * self.popularity[LANES - 1];
            let at = self.popularity.partition_point(|sum| *sum <= drawn).min(LANES - 1);
            let lane = &mut self.lanes[at];
            lane.waiting.push_back(self.now);
            if !lane.running && lane.waiting.len() == 1 {
                self.partitions[lane.partition].lanes.push_back(at);
            }
        }
        if self.arrivals.f64() < self.setup.groups / PERIOD as f64 {
            let size = 10_f64.powf(GROUP.0 + (GROUP.1 - GROUP.0) * self.arrivals.f64());
            let at = place(self.arrivals.u64(..), self.setup.seed, self.partitions.len());
            self.partitions[at].members.add(self.now, size as u64);
        }
        if let Some((second, members)) = self.setup.burst.filter(|(second, _)| self.now == second * PERIOD) {
            let last = self.partitions.len() - 1;
            self.partitions[last].members.add(self.now, members);
            self.burst = Some(Burst { members, at: second * PERIOD, ..Burst::default() });
        }
    }

    /// A client chooses the partition of a job with a generated id. It avoids one that has not answered for a second.
    fn single(&mut self) {
        let count = self.partitions.len();
        let mut at = self.arrived as usize % count;
        let lost = self.setup.lost.is_some_and(|(from, to)| (from + 1..to).contains(&(self.now / PERIOD)));
        if at == 0 && lost && count > 1 {
            at = 1 + self.rng.usize(..count - 1);
        }
        self.partitions[at].single.add(self.now, 1);
    }

    fn publish(&mut self) {
        let run_ns = self.setup.run_ms * 1_000_000;
        self.published = self.partitions.iter().map(|partition| partition.demand(run_ns)).collect();
        let turn = (self.now / PERIOD) as usize;
        self.targets = targets(self.setup.share, &self.published, self.slots.total(), turn);
        let backlog = |at: usize| self.partitions[at].backlog + self.partitions[at].single.jobs;
        for at in 0..self.partitions.len() {
            let records = self.parked[at] + self.partitions[at].members.jobs;
            self.server_bytes = self.server_bytes.max(figures::server_bytes(backlog(at), records));
            let leader = figures::leader_bytes(backlog(at), records, self.parked[at]);
            self.leader_bytes = self.leader_bytes.max(leader);
        }
    }

    fn assign(&mut self, at: usize) {
        if !self.partitions[at].up {
            return;
        }
        self.partitions[at].serve(TICK_MS * 1_000_000);
        let first = self.rng.usize(..self.slots.workers);
        for step in 0..self.slots.workers {
            let worker = (first + step) % self.slots.workers;
            loop {
                let free = self.slots.free(worker, at);
                if free == 0 {
                    break;
                }
                let Some(batch) = self.partitions[at].take(free, self.now) else { return };
                self.slots.start(worker, at, batch.jobs);
                if let Some(lane) = batch.lane {
                    let since = self.lanes[lane].waiting.pop_front().expect("a job of the lane may start");
                    self.lanes[lane].running = true;
                    self.partitions[at].waits[1].add(self.now - since, 1);
                }
                let mean = self.setup.run_ms / TICK_MS;
                let run = self.rng.u64(mean / 2..=mean * 3 / 2).max(1);
                let end = (self.now + run) as usize % self.ends.len();
                let (class, jobs, lane) = (batch.class, batch.jobs, batch.lane);
                self.ends[end].push(End { worker, partition: at, class, jobs, lane });
                self.note_start(at, class, jobs);
            }
        }
    }

    fn note_start(&mut self, at: usize, class: Class, jobs: u64) {
        if at == 0 && self.back.is_some() && self.resumed.is_none() {
            self.resumed = Some(self.now);
        }
        if let Some(burst) = self.burst.as_mut().filter(|_| class == Class::Member) {
            burst.first.get_or_insert(self.now - burst.at);
            burst.started += jobs;
            if burst.started == burst.members {
                burst.all = Some(self.now - burst.at);
            }
        }
    }

    fn measure(&mut self) {
        let waiting = self.partitions.iter().map(Partition::waits_for_slots).sum();
        let (idle, since) = self.slots.idle(self.now, waiting);
        if self.now >= WARM_UP * PERIOD && waiting > 0 {
            self.idle_slots += idle.min(waiting);
            self.longest_idle = self.longest_idle.max(self.now - since);
        }
    }

    fn outcome(self) -> Outcome {
        let ms = |ticks: u64| ticks * TICK_MS;
        let waits = |class: usize| {
            let of = |partition: &Partition| {
                let waits = &partition.waits[class];
                Some(Wait { p50_ms: ms(waits.percentile(50)?), p99_ms: ms(waits.percentile(99)?) })
            };
            self.partitions.iter().map(of).collect()
        };
        let rate = |from: u64, to: u64, skip: usize| {
            let seconds = self.finished[from as usize..to as usize].iter();
            seconds.flat_map(|partitions| &partitions[skip..]).sum::<u64>() as f64 / (to - from) as f64
        };
        let measured = (SECONDS - WARM_UP) * PERIOD;
        let loss = self.setup.lost.map(|(from, to)| Loss {
            others: (self.partitions.len() > 1).then(|| rate(from + 1, to, 1) / rate(WARM_UP, from, 1)),
            all: rate(from + 1, to, 0) / rate(WARM_UP, from, 0),
            resumed_ms: self.resumed.map(|tick| ms(tick - to * PERIOD)),
        });
        Outcome {
            load: self.setup.load,
            partitions: self.setup.partitions,
            share: self.setup.share,
            seed: self.setup.seed,
            slots: self.slots.total(),
            jobs_per_second: rate(WARM_UP, SECONDS, 0),
            idle_share: self.idle_slots as f64 / (measured * self.slots.total()) as f64,
            longest_idle_ms: ms(self.longest_idle),
            over_committed: self.slots.over_committed,
            single: waits(0),
            laned: waits(1),
            members: waits(2),
            burst_first_ms: self.burst.and_then(|burst| burst.first).map(ms),
            burst_all_ms: self.burst.and_then(|burst| burst.all).map(ms),
            loss,
            server_bytes: self.server_bytes,
            leader_bytes: self.leader_bytes,
            takeover_ms: figures::takeover_ms(self.parked[0]),
        }
    }
}

/// Returns the partition of a lane or group.
fn place(name: u64, seed: u64, partitions: usize) -> usize {
    (xxh3_64_with_seed(&name.to_le_bytes(), seed) % partitions as u64) as usize
}
