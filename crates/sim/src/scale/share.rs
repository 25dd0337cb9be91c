//! How slots are divided between partitions, and how each worker finds its part of it without talking to other workers.

use serde::Serialize;

/// What a partition publishes once per period.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Demand {
    /// A leader assigns jobs.
    pub(super) up: bool,
    /// Slots that its urgent jobs, and its other jobs, run on or could start on now.
    pub(super) slots: [u64; 2],
    /// Slots on which its jobs run.
    pub(super) running: u64,
}

/// A rule that divides all slots between partitions by their demands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Share {
    /// In proportion to the demands.
    Proportional,
    /// Equally, but no partition gets more than its demand.
    Fair,
    /// As `Fair`, first for the urgent jobs of all partitions, then for the others.
    FairByPriority,
}

/// Returns the slots of each partition. Slots that exceed all demands are spread evenly, so that a job of an idle partition
/// starts without delay. `turn` decides which partitions get the last slots if there are too few for all.
pub(super) fn targets(share: Share, demands: &[Demand], slots: u64, turn: usize) -> Vec<u64> {
    let both = demands.iter().map(|demand| demand.slots[0] + demand.slots[1]).collect::<Vec<_>>();
    let mut given = match share {
        Share::Proportional if both.iter().sum::<u64>() > slots => split(slots, &both, 0),
        Share::Proportional | Share::Fair => fill(&both, slots, turn),
        Share::FairByPriority => {
            let urgent = demands.iter().map(|demand| demand.slots[0]).collect::<Vec<_>>();
            let first = fill(&urgent, slots, turn);
            let left = slots - first.iter().sum::<u64>();
            let others = demands.iter().map(|demand| demand.slots[1]).collect::<Vec<_>>();
            first.iter().zip(fill(&others, left, turn)).map(|(first, then)| first + then).collect()
        }
    };
    let spare = slots - given.iter().sum::<u64>();
    let up = demands.iter().map(|demand| u64::from(demand.up)).collect::<Vec<_>>();
    for (given, more) in given.iter_mut().zip(split(spare, &up, 0)) {
        *given += more;
    }
    given
}

/// Gives each partition its demand, or an equal part of the slots that smaller demands leave.
fn fill(asked: &[u64], mut available: u64, turn: usize) -> Vec<u64> {
    let count = asked.len();
    let mut order = (0..count).collect::<Vec<_>>();
    order.sort_by_key(|&at| (asked[at], (at + turn) % count));
    let mut given = vec![0; count];
    for (done, at) in order.into_iter().enumerate() {
        given[at] = asked[at].min(available / (count - done) as u64);
        available -= given[at];
    }
    given
}

/// Splits `number` by weights. The sum is exact and each part is rounded down or up. `offset`, a fraction of 2³², decides
/// which: if the offsets of the workers are evenly spread, the parts of all workers together are right, although each worker
/// rounds alone.
pub(super) fn split(number: u64, weights: &[u64], offset: u32) -> Vec<u64> {
    let total = weights.iter().sum::<u64>();
    let mut end = 0;
    let mut before = 0;
    let part = |weight: &u64| {
        end += weight;
        let until = portion(number, end, total, offset);
        until - std::mem::replace(&mut before, until)
    };
    weights.iter().map(part).collect()
}

/// Returns number × part ÷ total + offset, rounded down.
pub(super) fn portion(number: u64, part: u64, total: u64, offset: u32) -> u64 {
    let scaled = (u128::from(number) * u128::from(part)) << 32;
    ((scaled / u128::from(total.max(1)) + u128::from(offset)) >> 32) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn demands(slots: &[[u64; 2]]) -> Vec<Demand> {
        slots.iter().map(|&slots| Demand { up: true, slots, running: 0 }).collect()
    }

    #[test]
    fn small_demands_are_met_and_large_ones_share_the_rest() {
        let demands = demands(&[[0, 1_000], [0, 3], [0, 500], [0, 0]]);
        assert_eq!(targets(Share::Fair, &demands, 103, 0), [50, 3, 50, 0]);
        assert_eq!(targets(Share::Proportional, &demands, 103, 0).iter().sum::<u64>(), 103);
        assert_eq!(targets(Share::Proportional, &demands, 103, 0)[1], 0);
    }

    #[test]
    fn urgent_jobs_of_one_partition_come_before_other_jobs_of_all() {
        let demands = demands(&[[80, 0], [0, 1_000], [10, 1_000]]);
        assert_eq!(targets(Share::FairByPriority, &demands, 100, 0), [80, 5, 15]);
    }

    #[test]
    fn slots_beyond_all_demands_are_spread() {
        let demands = demands(&[[2, 0], [0, 0]]);
        assert_eq!(targets(Share::FairByPriority, &demands, 10, 0), [6, 4]);
    }

    #[test]
    fn every_partition_gets_a_turn_if_there_are_fewer_slots() {
        let demands = demands(&[[1, 0]; 16]);
        let mut got = [0; 16];
        for turn in 0..16 {
            let given = targets(Share::FairByPriority, &demands, 4, turn);
            assert_eq!(given.iter().sum::<u64>(), 4);
            got.iter_mut().zip(given).for_each(|(got, given)| *got += given);
        }
        assert_eq!(got, [4; 16]);
    }

    #[test]
    fn workers_that_round_alone_are_right_together() {
        let weights = [5, 0, 900, 95];
        let mut sum = [0; 4];
        for rank in 0..100_u64 {
            let parts = split(10, &weights, ((rank << 32) / 100) as u32);
            assert_eq!(parts.iter().sum::<u64>(), 10);
            sum.iter_mut().zip(parts).for_each(|(sum, part)| *sum += part);
        }
        for (sum, weight) in sum.iter().zip(weights) {
            assert!(sum.abs_diff(weight) <= 1, "{sum} instead of {weight}");
        }
    }
}
