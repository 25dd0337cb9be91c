//! Chooses a worker by the strategy of the namespace.

use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::capacity::Capacity;
use super::pending::PendingJob;
use super::settings::StrategySetting;
use crate::name::{AffinityKey, JobId, WorkerId};
use crate::placement::{BuiltInStrategy, Fallback, OwnStrategies, OwnStrategy, PlacementJob};

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Picker {
    own: OwnStrategies,
    set: StrategySetting,
    strategy: Strategy,
    last: Option<WorkerId>,
    random: u64,
}

/// The strategy in use.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Strategy {
    BuiltIn(BuiltInStrategy),
    Own(OwnStrategy),
    /// The default, instead of the set one.
    Fallback,
}

impl Picker {
    pub(super) fn new(own: OwnStrategies, seed: u64) -> Self {
        let strategy = Strategy::BuiltIn(BuiltInStrategy::default());
        Self { own, set: StrategySetting::Absent, strategy, last: None, random: seed }
    }

    /// Whether the default replaces the set strategy.
    pub(super) fn is_fallback(&self) -> bool {
        self.strategy == Strategy::Fallback
    }

    /// Follows the setting. Returns why its strategy cannot be used. If the setting has not changed, a strategy that failed
    /// stays replaced.
    pub(super) fn follow(&mut self, set: StrategySetting) -> Option<Fallback> {
        if self.set == set {
            return None;
        }
        let (strategy, why) = match &set {
            StrategySetting::Absent => (Strategy::BuiltIn(BuiltInStrategy::default()), None),
            StrategySetting::Unreadable(why) => (Strategy::Fallback, Some(Fallback::Unreadable(why.clone()))),
            StrategySetting::Named(name) => match (BuiltInStrategy::named(name), self.own.named(name)) {
                (Some(strategy), _) => (Strategy::BuiltIn(strategy), None),
                (None, Some(own)) => (Strategy::Own(own.clone()), None),
                (None, None) => (Strategy::Fallback, Some(Fallback::Unknown(name.clone()))),
            },
        };
        (self.set, self.strategy) = (set, strategy);
        why
    }

    /// Picks one of `able`, which is ordered by id; `None` if it is empty. Also returns why the set strategy is no longer
    /// used.
    pub(super) fn pick(
        &mut self,
        job: &JobId,
        waiting: &PendingJob,
        able: &[(&WorkerId, &Capacity)],
    ) -> (Option<WorkerId>, Option<Fallback>) {
        if able.is_empty() {
            return (None, None);
        }
        let (picked, why) = match &self.strategy {
            Strategy::BuiltIn(strategy) => (self.pick_built_in(*strategy, job, waiting, able), None),
            Strategy::Fallback => (self.pick_built_in(BuiltInStrategy::default(), job, waiting, able), None),
            Strategy::Own(own) => match pick_own(own, job, waiting, able) {
                Ok(picked) => (picked, None),
                Err(why) => {
                    self.strategy = Strategy::Fallback;
                    (self.pick_built_in(BuiltInStrategy::default(), job, waiting, able), Some(why))
                }
            },
        };
        self.last = picked.or(self.last);
        (picked, why)
    }

    fn pick_built_in(
        &mut self,
        strategy: BuiltInStrategy,
        job: &JobId,
        waiting: &PendingJob,
        able: &[(&WorkerId, &Capacity)],
    ) -> Option<WorkerId> {
        let mut ids = able.iter().map(|(id, _)| **id);
        match strategy {
            BuiltInStrategy::RoundRobin => {
                let last = self.last;
                ids.clone().find(|id| last.is_none_or(|last| *id > last)).or_else(|| ids.next())
            }
            BuiltInStrategy::Random => {
                let nth = self.next_random().checked_rem(able.len() as u64)?;
                ids.nth(usize::try_from(nth).ok()?)
            }
            BuiltInStrategy::LeastLoaded => {
                able.iter().min_by(|(_, a), (_, b)| a.load_cmp(b)).map(|(id, _)| **id)
            }
            BuiltInStrategy::Rendezvous => {
                let key = waiting.affinity.as_ref().map_or(job.as_str(), AffinityKey::as_str);
                ids.max_by_key(|id| weight(*id, key))
            }
        }
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

fn pick_own(
    own: &OwnStrategy,
    id: &JobId,
    waiting: &PendingJob,
    able: &[(&WorkerId, &Capacity)],
) -> Result<Option<WorkerId>, Fallback> {
    let job = PlacementJob {
        affinity: waiting.affinity.as_ref().map(AffinityKey::as_str),
        priority: waiting.at.name.priority.get(),
        attempt: waiting.at.name.attempt,
        ..PlacementJob::new(id, waiting.class.kind())
    };
    // A worker that can take a job is registered.
    let offered = able.iter().filter_map(|(id, capacity)| capacity.offered(**id)).collect::<Vec<_>>();
    own.choose(&job, &offered).map(|at| offered.get(at).map(|worker| worker.id))
}

fn weight(worker: WorkerId, key: &str) -> u64 {
    let (high, low) = worker.uuid().as_u64_pair();
    xxh3_64_with_seed(key.as_bytes(), high ^ low.rotate_left(32))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first numbers that the authors of SplitMix64 publish for the seed 1234567.
    #[test]
    fn the_random_numbers_are_those_of_split_mix_64() {
        let mut picker = Picker::new(OwnStrategies::default(), 1_234_567);
        let first = [(); 3].map(|()| picker.next_random());
        assert_eq!(first, [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]);
    }

    /// An affinity key keeps its worker while workers of other builds become leaders.
    #[test]
    fn the_weight_of_a_worker_for_a_key_is_the_same_in_every_build() {
        let worker = WorkerId::new(uuid::Uuid::from_u128(0x0193_a5b7_7c00_7abc_8def_0123_4567_89ab));
        assert_eq!(weight(worker, "customer-7"), 9_698_094_939_528_550_325);
    }
}
