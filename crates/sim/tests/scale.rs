//! The claims of `docs/scale.md` about a namespace in several partitions.

use std::sync::LazyLock;
use std::time::{SystemTime, UNIX_EPOCH};

use bellwether_sim::scale::{Outcome, Setup, Share, run};

/// A fixed seed, and one that is new in each run. Every message names its seed.
static SEEDS: LazyLock<[u64; 2]> = LazyLock::new(|| {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
    [1, now.as_micros() as u64 % 1_000_000_000]
});

/// All loads with slots shared by priority, in 1, 4 and 16 partitions. Most tests look at some of them.
static BY_PRIORITY: LazyLock<Vec<Outcome>> = LazyLock::new(|| SEEDS.iter().copied().flat_map(all).collect());

fn all(seed: u64) -> impl Iterator<Item = Outcome> {
    [1, 4, 16].into_iter().flat_map(move |count| Setup::all(count, Share::FairByPriority, seed)).map(run)
}

fn outcome(load: &str, partitions: usize, share: Share, seed: u64) -> Outcome {
    let setup = Setup::all(partitions, share, seed).into_iter().find(|setup| setup.load == load);
    run(setup.expect("the load exists"))
}

fn by_priority(load: &str, partitions: usize, seed: u64) -> &'static Outcome {
    let is =
        |outcome: &&Outcome| (outcome.load, outcome.partitions, outcome.seed) == (load, partitions, seed);
    BY_PRIORITY.iter().find(is).expect("the load exists")
}

#[test]
fn a_seed_is_one_run() {
    for load in ["skewed", "loss"] {
        assert_eq!(&outcome(load, 4, Share::FairByPriority, 1), by_priority(load, 4, 1));
    }
}

#[test]
fn sharing_slots_costs_less_than_a_tenth_of_the_throughput_under_even_load() {
    for seed in *SEEDS {
        let [one, four, sixteen] = [1, 4, 16].map(|count| by_priority("even", count, seed).jobs_per_second);
        assert!(four >= 0.9 * 4.0 * one, "seed {seed}: {four} is less than four times {one}");
        assert!(sixteen >= 0.9 * 16.0 * one, "seed {seed}: {sixteen} is less than sixteen times {one}");
    }
}

#[test]
fn no_slot_is_idle_for_longer_than_two_periods_while_a_job_waits_for_one() {
    // Two periods, and a tick to offer the slot elsewhere and to use it.
    const LONGEST_MS: u64 = 2 * 1_000 + 20;
    // In seed 23 a worker would offer a slot twice in vain, if it did not prefer the partition that lacks most.
    for outcome in BY_PRIORITY.iter().chain(&all(23).collect::<Vec<_>>()) {
        let Outcome { load, partitions, seed, longest_idle_ms, idle_share, .. } = outcome;
        let of = format!("seed {seed}, {load}, {partitions} partitions");
        assert!(*longest_idle_ms <= LONGEST_MS, "{of}: a slot was idle for {longest_idle_ms} ms");
        assert!(*idle_share <= 0.08, "{of}: {idle_share} of the slots were idle");
    }
}

#[test]
fn leaders_together_never_start_more_jobs_than_a_worker_has_slots() {
    for seed in *SEEDS {
        for load in ["skewed", "burst", "loss", "small workers"] {
            let over_committed = by_priority(load, 16, seed).over_committed;
            assert_eq!(over_committed, 0, "seed {seed}, {load}: a worker has more jobs than slots");
        }
    }
}

#[test]
fn a_partition_that_becomes_busy_is_served_within_a_period() {
    for seed in *SEEDS {
        for count in [1, 4, 16] {
            let outcome = by_priority("burst", count, seed);
            let first = outcome.burst_first_ms.expect("a member starts");
            assert!(
                first <= 1_100,
                "seed {seed}, {count} partitions: the first member starts after {first} ms"
            );
        }
    }
}

#[test]
fn urgent_jobs_of_one_partition_are_not_slowed_by_the_backlog_of_others() {
    for seed in *SEEDS {
        let all = |outcome: &Outcome| outcome.burst_all_ms.unwrap_or(u64::MAX);
        let one = by_priority("burst", 1, seed).burst_all_ms.expect("all members start");
        let fair = all(&outcome("burst", 16, Share::Fair, seed));
        let urgent = all(by_priority("burst", 16, seed));
        assert!(
            urgent <= one * 3 / 2,
            "seed {seed}: {urgent} ms in one of sixteen, {one} ms in the only one"
        );
        assert!(fair > 2 * urgent, "seed {seed}: {fair} ms with equal shares, {urgent} ms by priority");
    }
}

#[test]
fn shares_in_proportion_to_the_backlog_starve_small_partitions() {
    for seed in *SEEDS {
        let wait = |outcome: &Outcome| Outcome::worst(&outcome.single).expect("jobs start").p99_ms;
        let proportional = wait(&outcome("skewed", 16, Share::Proportional, seed));
        let urgent = wait(by_priority("skewed", 16, seed));
        assert!(proportional > 5 * urgent, "seed {seed}: {proportional} ms, {urgent} ms by priority");
        assert!(urgent <= 2_000, "seed {seed}: {urgent} ms by priority");
    }
}

#[test]
fn the_loss_of_a_partition_does_not_slow_the_others() {
    for seed in *SEEDS {
        for count in [4, 16] {
            let outcome = by_priority("loss", count, seed);
            let loss = outcome.loss.as_ref().expect("a partition was lost");
            let others = loss.others.expect("there are others");
            assert!(others >= 0.99, "seed {seed}, {count} partitions: {others}");
            let resumed = loss.resumed_ms.expect("the partition returns");
            assert!(resumed <= outcome.takeover_ms + 1_200, "seed {seed}, {count} partitions: {resumed} ms");
        }
    }
}

#[test]
fn memory_and_takeover_shrink_with_the_number_of_partitions() {
    let [one, four, sixteen] = [1, 4, 16].map(|count| by_priority("even", count, 1));
    assert!(one.server_bytes > 160_000_000_000 && sixteen.server_bytes < 11_000_000_000);
    assert!(one.leader_bytes > 4_900_000_000 && four.leader_bytes < 1_300_000_000);
    assert!(sixteen.leader_bytes < 350_000_000);
    assert!(one.takeover_ms > 15_000 && sixteen.takeover_ms < 4_000);
}
