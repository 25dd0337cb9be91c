//! The number of waiting jobs per kind.

use std::collections::BTreeMap;

use crate::name::Kind;

/// Counts jobs by kind. A kind without jobs has no entry.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(super) struct KindCounts {
    by_kind: BTreeMap<Kind, usize>,
    all: usize,
}

impl KindCounts {
    pub(super) fn add(&mut self, kind: &Kind, jobs: usize) {
        self.all += jobs;
        match self.by_kind.get_mut(kind) {
            Some(count) => *count += jobs,
            None => drop(self.by_kind.insert(kind.clone(), jobs)),
        }
    }

    pub(super) fn remove(&mut self, kind: &Kind, jobs: usize) {
        let Some(count) = self.by_kind.get_mut(kind) else { return };
        self.all -= jobs;
        *count -= jobs;
        if *count == 0 {
            self.by_kind.remove(kind);
        }
    }

    pub(super) fn all(&self) -> usize {
        self.all
    }

    pub(super) fn get(&self, kind: &Kind) -> usize {
        self.by_kind.get(kind).copied().unwrap_or(0)
    }

    pub(super) fn kinds(&self) -> impl Iterator<Item = &Kind> {
        self.by_kind.keys()
    }
}
