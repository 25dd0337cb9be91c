//! A map for a very large number of jobs.
//!
//! The ids of 100,000 jobs are spread over memory. A lookup in a sorted map reads several of them; a hash map reads
//! one. Clients choose the ids, so the hash is keyed with secret random keys: no client can cause collisions. The
//! iteration order differs between runs and must not affect results, so a machine sorts whatever it takes out.

use std::collections::HashMap;
use std::hash::{Hash, Hasher};

use crate::name::JobId;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ByJob<V>(HashMap<JobId, V>);

impl<V> ByJob<V> {
    pub(super) fn get(&self, job: &JobId) -> Option<&V> {
        self.0.get(job)
    }

    /// Returns the replaced value.
    pub(super) fn insert(&mut self, job: JobId, value: V) -> Option<V> {
        self.0.insert(job, value)
    }

    pub(super) fn remove(&mut self, job: &JobId) -> Option<V> {
        self.0.remove(job)
    }

    /// Iterates in arbitrary order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&JobId, &V)> {
        self.0.iter()
    }
}

impl<V> Default for ByJob<V> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

/// Used by the model check to recognise known states: maps with the same jobs have the same hash.
impl<V: Hash> Hash for ByJob<V> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let mut sorted = self.0.iter().collect::<Vec<_>>();
        sorted.sort_unstable_by_key(|(job, _)| *job);
        sorted.hash(state);
    }
}

#[cfg(test)]
mod tests {
    use std::hash::{BuildHasher as _, RandomState};

    use super::*;

    #[test]
    fn the_hash_does_not_depend_on_the_order_of_insertion() {
        let jobs = (0..100).map(|n| JobId::new(format!("job-{n}")).unwrap()).collect::<Vec<_>>();
        let (mut one, mut other) = (ByJob::default(), ByJob::default());
        for (n, job) in jobs.iter().enumerate() {
            one.insert(job.clone(), n);
        }
        for (n, job) in jobs.iter().enumerate().rev() {
            other.insert(job.clone(), n);
        }
        let hash = RandomState::new();
        assert_eq!(hash.hash_one(&one), hash.hash_one(&other));
        other.insert(jobs[7].clone(), 8);
        assert_ne!(hash.hash_one(&one), hash.hash_one(&other));
        assert_ne!(one, other);
    }
}
