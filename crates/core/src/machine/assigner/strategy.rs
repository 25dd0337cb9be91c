//! Strategies to pick one of the workers that can take a job.

use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::capacity::Capacity;
use crate::name::{AffinityKey, JobId, WorkerId};

/// How a worker is chosen among the live workers that have the kind, the tags and a free slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Strategy {
    /// Each worker in turn.
    RoundRobin,
    /// A random worker.
    Random,
    /// The worker with the smallest share of used slots.
    #[default]
    LeastLoaded,
    /// Sends jobs of one affinity key to one worker while it has a free slot, then to the next worker in the key's
    /// order. The order does not depend on the leader and changes little when workers join or leave. (Rendezvous or
    /// highest-random-weight hashing; Thaler and Ravishankar, 1998.)
    Rendezvous,
}

impl std::str::FromStr for Strategy {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match name {
            "round-robin" => Ok(Self::RoundRobin),
            "random" => Ok(Self::Random),
            "least-loaded" => Ok(Self::LeastLoaded),
            "rendezvous" => Ok(Self::Rendezvous),
            other => Err(format!("{other:?} is not one of round-robin, random, least-loaded, rendezvous")),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Picker {
    strategy: Strategy,
    last: Option<WorkerId>,
    random: u64,
}

impl Picker {
    pub(super) fn new(strategy: Strategy, seed: u64) -> Self {
        Self { strategy, last: None, random: seed }
    }

    /// Picks one of `able`, which is ordered by id.
    pub(super) fn pick<'a>(
        &mut self,
        job: &JobId,
        affinity: Option<&AffinityKey>,
        able: impl Iterator<Item = (&'a WorkerId, &'a Capacity)> + Clone,
    ) -> Option<WorkerId> {
        let ids = able.clone().map(|(id, _)| *id);
        let picked = match self.strategy {
            Strategy::RoundRobin => {
                let last = self.last;
                ids.clone().find(|id| last.is_none_or(|last| *id > last)).or_else(|| ids.clone().next())
            }
            Strategy::Random => {
                let count = ids.clone().count() as u64;
                let nth = self.next_random().checked_rem(count)?;
                ids.clone().nth(usize::try_from(nth).ok()?)
            }
            Strategy::LeastLoaded => able.min_by(|(_, a), (_, b)| a.load_cmp(b)).map(|(id, _)| *id),
            Strategy::Rendezvous => {
                let key = affinity.map_or(job.as_str(), AffinityKey::as_str);
                ids.max_by_key(|id| weight(*id, key))
            }
        };
        self.last = picked.or(self.last);
        picked
    }

    /// SplitMix64 (Steele, Lea and Flood, 2014): every seed is good, and the state is one word.
    fn next_random(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.random;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

fn weight(worker: WorkerId, key: &str) -> u64 {
    let (high, low) = worker.uuid().as_u64_pair();
    xxh3_64_with_seed(key.as_bytes(), high ^ low.rotate_left(32))
}
