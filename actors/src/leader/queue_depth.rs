//! The gauge of waiting jobs by kind, with a bound on its series.
//!
//! An exporter never removes a series, and any client can submit a job of any kind. So this process gives a separate series
//! to at most [`MAX_SERIES`] kinds until it ends; the jobs of all further kinds count in the series `other`. A kind that no
//! worker serves may be a mistake of a client, or a kind whose workers are scaled to zero. Such kinds get at most
//! [`MAX_UNSERVED`] of the series, so that mistakes leave room for the kinds that workers serve. The sum over all series is
//! always the number of waiting jobs.
//!
//! The set of kinds belongs to the process, because the exporter does: a node that becomes the leader again must not start
//! to count from zero.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use bellwether_core::machine::assigner::Assigner;
use bellwether_core::metric::{self, OTHER_KINDS};
use bellwether_core::name::Kind;
use metrics::gauge;

/// The number of kinds with a series of their own. A dashboard with more lines cannot be read, and 100 kinds are more than
/// most services have.
const MAX_SERIES: usize = 100;

/// The number of these kinds that no worker served when they got their series.
const MAX_UNSERVED: usize = 50;

static SERIES: Mutex<Series> = Mutex::new(Series::new());

/// The kinds that have a series of their own.
#[derive(Debug)]
struct Series {
    kinds: BTreeSet<Kind>,
    unserved: usize,
}

impl Series {
    const fn new() -> Self {
        Self { kinds: BTreeSet::new(), unserved: 0 }
    }

    /// Gives a series to each kind that a worker serves, while there is room.
    fn serve(&mut self, kinds: &[Kind]) {
        for kind in kinds {
            if self.kinds.len() < MAX_SERIES && kind.as_str() != OTHER_KINDS {
                self.kinds.insert(kind.clone());
            }
        }
    }

    /// Gives a series to each kind of a waiting job, while there is room.
    fn wait<'a>(&mut self, kinds: impl Iterator<Item = &'a Kind>) {
        for kind in kinds {
            if self.kinds.len() >= MAX_SERIES || self.unserved >= MAX_UNSERVED {
                return;
            }
            if kind.as_str() != OTHER_KINDS && !self.kinds.contains(kind) {
                self.kinds.insert(kind.clone());
                self.unserved += 1;
            }
        }
    }
}

fn series() -> MutexGuard<'static, Series> {
    // A set of kinds is valid at every moment.
    SERIES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What this term has recorded last. Only changes are recorded, because the assigner does so after each event.
#[derive(Debug, Default)]
pub(super) struct QueueDepth {
    kinds: BTreeMap<Kind, usize>,
    other: Option<usize>,
}

impl QueueDepth {
    /// A worker serves these kinds.
    pub(super) fn serve(kinds: &[Kind]) {
        series().serve(kinds);
    }

    /// Records the number of waiting jobs of each kind.
    pub(super) fn record(&mut self, assigner: &Assigner) {
        let mut series = series();
        series.wait(assigner.waiting_kinds());
        let mut other = assigner.waiting();
        for kind in &series.kinds {
            let waiting = assigner.waiting_of(kind);
            other = other.saturating_sub(waiting);
            if self.kinds.get(kind) != Some(&waiting) {
                set(kind.as_str(), waiting);
                self.kinds.insert(kind.clone(), waiting);
            }
        }
        if self.other != Some(other) {
            set(OTHER_KINDS, other);
            self.other = Some(other);
        }
    }

    /// Records all values the next time: a recorder may have been installed, or another node of this process may have cleared
    /// the gauges.
    pub(super) fn forget(&mut self) {
        *self = Self::default();
    }
}

/// Sets all series to 0, for a node that is no longer the leader.
pub(super) fn clear() {
    series().kinds.iter().for_each(|kind| set(kind.as_str(), 0));
    set(OTHER_KINDS, 0);
}

#[expect(clippy::cast_precision_loss, reason = "gauges are floats, and no count comes near 2^53")]
fn set(kind: &str, waiting: usize) {
    gauge!(metric::QUEUE_DEPTH, "kind" => kind.to_owned()).set(waiting as f64);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(name: &str, count: usize) -> Vec<Kind> {
        (0..count).map(|n| Kind::new(format!("{name}-{n}")).unwrap()).collect()
    }

    #[test]
    fn kinds_that_no_worker_serves_get_half_of_the_series() {
        let mut series = Series::new();
        series.wait(kinds("mistake", 10_000).iter());
        assert_eq!(series.kinds.len(), MAX_UNSERVED);
        series.serve(&kinds("served", 50));
        assert!(kinds("served", 50).iter().all(|kind| series.kinds.contains(kind)), "{series:?}");
        assert_eq!(series.kinds.len(), MAX_SERIES);
    }

    #[test]
    fn the_number_of_series_is_bounded_however_many_kinds_there_are() {
        let mut series = Series::new();
        series.serve(&kinds("served", 10_000));
        series.wait(kinds("waiting", 10_000).iter());
        assert_eq!(series.kinds.len(), MAX_SERIES);
    }

    #[test]
    fn a_kind_keeps_its_series_and_needs_no_second_one() {
        let mut series = Series::new();
        let mail = kinds("mail", 1);
        (0..MAX_SERIES).for_each(|_| series.wait(mail.iter()));
        series.serve(&mail);
        assert_eq!((series.kinds.len(), series.unserved), (1, 1));
    }

    #[test]
    fn a_kind_with_the_name_of_the_rest_counts_as_the_rest() {
        let mut series = Series::new();
        let other = [Kind::new(OTHER_KINDS).unwrap()];
        series.serve(&other);
        series.wait(other.iter());
        assert!(series.kinds.is_empty(), "{series:?}");
    }
}
