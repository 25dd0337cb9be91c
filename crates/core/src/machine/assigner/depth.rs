//! The number of waiting jobs per kind.

use std::collections::BTreeMap;

use crate::name::Kind;

/// Counts jobs by kind. A kind without jobs has no entry.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(super) struct KindCounts(BTreeMap<Kind, usize>);

impl KindCounts {
    pub(super) fn add(&mut self, kind: &Kind) {
        match self.0.get_mut(kind) {
            Some(count) => *count += 1,
            None => drop(self.0.insert(kind.clone(), 1)),
        }
    }

    pub(super) fn remove(&mut self, kind: &Kind) {
        let Some(count) = self.0.get_mut(kind) else { return };
        *count -= 1;
        if *count == 0 {
            self.0.remove(kind);
        }
    }

    pub(super) fn get(&self, kind: &Kind) -> usize {
        self.0.get(kind).copied().unwrap_or(0)
    }

    pub(super) fn kinds(&self) -> impl Iterator<Item = &Kind> {
        self.0.keys()
    }
}
