//! Waiting times, for rules that check the whole state periodically.

use std::collections::BTreeMap;

/// What waited at the last check, and since which check, in milliseconds.
pub(super) struct Waiting<T>(BTreeMap<T, u64>);

impl<T> Default for Waiting<T> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<T: Ord + Clone> Waiting<T> {
    /// Forgets everything.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// Records the items that wait `now`. Returns those that have waited longer than `bound`, and since when. No wait
    /// counts from before `earliest`.
    pub(super) fn late(
        &mut self,
        waits: impl IntoIterator<Item = T>,
        bound: u64,
        earliest: u64,
        now: u64,
    ) -> Vec<(T, u64)> {
        let before = std::mem::take(&mut self.0);
        let since = |waits: T| (waits.clone(), before.get(&waits).copied().unwrap_or(now));
        self.0 = waits.into_iter().map(since).collect();
        let late = self.0.iter().filter(|(_, since)| earliest.max(**since) + bound < now);
        late.map(|(waits, since)| (waits.clone(), *since)).collect()
    }
}
