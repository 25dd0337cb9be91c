//! The leader's counters by kind.
//!
//! Their series are created at zero as soon as the leader learns of the kind. A series that starts with its first count
//! shows no growth, so an alert on growth would miss the first event.

use std::collections::BTreeSet;

use bellwether_core::job::ClosedAttempt;
use bellwether_core::metric::{self, MetricType};
use bellwether_core::name::Kind;
use metrics::counter;

use crate::kind_label;

#[derive(Default)]
pub(super) struct Kinds(BTreeSet<Kind>);

impl Kinds {
    /// Creates the series of kinds that a worker serves.
    pub(super) fn met(&mut self, kinds: &[Kind]) {
        for kind in kinds {
            let label = kind_label::of_served(kind);
            if label == kind.as_str() && self.0.insert(kind.clone()) {
                touch(kind);
            }
        }
    }
}

fn touch(kind: &Kind) {
    let counters = metric::ALL.iter().filter(|metric| metric.kind == MetricType::Counter);
    for metric in counters.filter(|metric| metric.labels.has_kind()) {
        for labels in metric.labels.series(std::slice::from_ref(kind)) {
            counter!(metric.name, &labels).increment(0);
        }
    }
}

/// Counts an attempt that the leader closed in place of its worker.
pub(super) fn count_closed(kind: &Kind, closed: ClosedAttempt) {
    let label = kind_label::of_served(kind);
    counter!(metric::JOB_ATTEMPTS, "kind" => label.clone(), "outcome" => closed.how.as_str()).increment(1);
    if closed.dead {
        counter!(metric::JOBS_DEAD, "kind" => label).increment(1);
    }
}
