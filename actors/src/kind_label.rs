//! The values of the label `kind` of all metrics of this process, with a bound on their number.
//!
//! An exporter never removes a series, and any client can submit a job of any kind. So this process gives series of their own
//! to at most 100 kinds until it ends; all further kinds count in the series `other`. A kind that no worker serves,
//! as far as this process knows, may be a mistake of a client, or a kind whose workers are scaled to zero. Such kinds get at
//! most 50 of the series, so that mistakes leave room for the kinds that workers serve.
//!
//! The set of kinds belongs to the process, because the exporter does: a node that becomes the leader again must not start
//! to count from zero.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bellwether_core::metric::OTHER_KINDS;
use bellwether_core::name::Kind;

/// The number of kinds with a series of their own. A dashboard with more lines cannot be read, and 100 kinds are more than
/// most services have.
const MAX_SERIES: usize = 100;

/// The number of these kinds that no worker served when they got their series.
const MAX_UNSERVED: usize = 50;

static SERIES: Mutex<Series> = Mutex::new(Series::new());

/// The kinds that have a series of their own.
#[derive(Debug)]
pub(crate) struct Series {
    pub(crate) kinds: BTreeSet<Kind>,
    unserved: usize,
}

impl Series {
    const fn new() -> Self {
        Self { kinds: BTreeSet::new(), unserved: 0 }
    }

    /// Gives a series to each kind that a worker serves, while there is room.
    fn serve(&mut self, kinds: &[Kind]) {
        for kind in kinds {
            let is_new = !self.kinds.contains(kind);
            if is_new && self.kinds.len() < MAX_SERIES && kind.as_str() != OTHER_KINDS {
                self.kinds.insert(kind.clone());
            }
        }
    }

    fn label(&self, kind: &Kind) -> String {
        if self.kinds.contains(kind) { kind.to_string() } else { OTHER_KINDS.to_owned() }
    }

    /// Gives a series to each kind of a waiting job, while there is room.
    pub(crate) fn wait<'a>(&mut self, kinds: impl Iterator<Item = &'a Kind>) {
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

pub(crate) fn series() -> MutexGuard<'static, Series> {
    // A set of kinds is valid at every moment.
    SERIES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A worker serves these kinds.
pub fn serve(kinds: &[Kind]) {
    series().serve(kinds);
}

/// Returns the label of a kind that this process has a handler for.
#[must_use]
pub fn of_served(kind: &Kind) -> String {
    let mut series = series();
    series.serve(std::slice::from_ref(kind));
    series.label(kind)
}

/// Returns the label of a kind of a job, which need not have a worker.
#[must_use]
pub fn of(kind: &Kind) -> String {
    let mut series = series();
    series.wait(std::iter::once(kind));
    series.label(kind)
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

    #[test]
    fn kinds_without_a_series_of_their_own_have_one_label() {
        let mut series = Series::new();
        series.serve(&kinds("served", 1));
        let attack = kinds("attack", 10_000);
        let labels = attack.iter().map(|kind| {
            series.wait(std::iter::once(kind));
            series.label(kind)
        });
        let labels = labels.collect::<BTreeSet<_>>();
        assert_eq!(labels.len(), MAX_UNSERVED + 1);
        assert!(labels.contains(OTHER_KINDS));
        assert_eq!(series.label(&kinds("served", 1)[0]), "served-0");
    }
}
