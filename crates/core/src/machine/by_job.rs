//! A map of very many jobs.
//!
//! A hundred thousand ids lie all over the memory. A sorted map reads some of them on each way down; this reads one.
//! Clients choose ids, so the hash has keys that nobody knows: none can make their jobs meet. Nothing may depend on the
//! order, which differs from run to run; so what a machine takes from here it sorts.

use std::collections::HashMap;
use std::hash::{Hash, Hasher};

use crate::name::JobId;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ByJob<V>(HashMap<JobId, V>);

impl<V> ByJob<V> {
    pub(super) fn get(&self, job: &JobId) -> Option<&V> {
        self.0.get(job)
    }

    pub(super) fn get_mut(&mut self, job: &JobId) -> Option<&mut V> {
        self.0.get_mut(job)
    }

    /// Answers what was there.
    pub(super) fn insert(&mut self, job: JobId, value: V) -> Option<V> {
        self.0.insert(job, value)
    }

    pub(super) fn remove(&mut self, job: &JobId) -> Option<V> {
        self.0.remove(job)
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// In no order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&JobId, &V)> {
        self.0.iter()
    }
}

impl<V> Default for ByJob<V> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

/// For the model check, which knows states again by their hashes: two with the same jobs have the same.
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
    fn the_same_jobs_have_the_same_hash_in_whatever_order_they_came() {
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
