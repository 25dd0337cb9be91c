//! The verdicts of a run. Each is printed and written immediately, because a run can take hours.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, Instant};

use super::Trouble;
use super::catalogue::Mutation;
use super::layer::{Layer, Verdict};
use super::results::Results;

/// A cell of the table: a mutation and a layer to run with it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cell<'a> {
    pub(super) mutation: &'a Mutation,
    pub(super) layer: Layer,
}

impl Cell<'_> {
    pub(super) fn log(&self) -> String {
        format!("{}-{}", self.mutation.name, self.layer.name())
    }
}

pub(super) struct Ledger<'a> {
    root: &'a Path,
    all: &'a [Mutation],
    results: &'a mut Results,
    /// Whether verdicts are written into the tree.
    write: bool,
    /// The mutations that were caught in this run.
    caught: BTreeSet<String>,
    done: usize,
    cells: usize,
    pace: Pace,
}

impl<'a> Ledger<'a> {
    pub(super) fn new(
        root: &'a Path,
        all: &'a [Mutation],
        results: &'a mut Results,
        write: bool,
        cells: usize,
    ) -> Self {
        let pace = Pace { begun: Instant::now(), done: 0, of: 0 };
        Self { root, all, results, write, caught: BTreeSet::new(), done: 0, cells, pace }
    }

    /// Starts a batch of `runs` runs that take about the same time each.
    pub(super) fn begin(&mut self, runs: usize) {
        self.pace = Pace { begun: Instant::now(), done: 0, of: runs };
    }

    pub(super) fn has_caught(&self, mutation: &Mutation) -> bool {
        self.caught.contains(&mutation.name)
    }

    pub(super) fn note(&mut self, cell: Cell<'_>, verdict: Verdict) -> Result<(), Trouble> {
        self.done += 1;
        self.pace.done += 1;
        let rest = self.pace.rest(self.pace.begun.elapsed());
        eprintln!(
            "xtask: {} of {}: {} × {}: {verdict}; {} runs of this layer left, about {} s",
            self.done,
            self.cells,
            cell.mutation.name,
            cell.layer.name(),
            self.pace.of.saturating_sub(self.pace.done),
            rest.as_secs(),
        );
        if verdict.is_caught() {
            self.caught.insert(cell.mutation.name.clone());
        }
        self.results.note(cell.mutation, cell.layer, verdict);
        if self.write { super::keep(self.root, self.all, self.results) } else { Ok(()) }
    }
}

struct Pace {
    begun: Instant,
    done: usize,
    of: usize,
}

impl Pace {
    /// The remaining time at the present pace.
    fn rest(&self, elapsed: Duration) -> Duration {
        let left = self.of.saturating_sub(self.done);
        elapsed.mul_f64(left as f64 / self.done.max(1) as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_remaining_time_is_extrapolated_from_the_finished_runs() {
        let pace = Pace { begun: Instant::now(), done: 10, of: 25 };
        assert_eq!(pace.rest(Duration::from_secs(40)), Duration::from_secs(60));
        let all = Pace { done: 25, ..pace };
        assert_eq!(all.rest(Duration::from_secs(40)), Duration::ZERO);
    }
}
