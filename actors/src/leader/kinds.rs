//! Creates the metric series of each kind at zero as soon as the leader learns of the kind. A series that starts with
//! its first count shows no growth, so an alert on growth would miss the first event.

use std::collections::BTreeSet;

use bellwether_core::metric::{self, Labels, MetricType};
use bellwether_core::name::Kind;
use metrics::counter;

#[derive(Default)]
pub(super) struct Kinds(BTreeSet<Kind>);

impl Kinds {
    /// Creates the series of kinds that a worker serves.
    pub(super) fn met(&mut self, kinds: &[Kind]) {
        for kind in kinds {
            if self.0.insert(kind.clone()) {
                touch(kind);
            }
        }
    }
}

fn touch(kind: &Kind) {
    let counters = metric::ALL.iter().filter(|metric| metric.kind == MetricType::Counter);
    for metric in counters.filter(|metric| metric.labels == Labels::Kind) {
        counter!(metric.name, "kind" => kind.to_string()).increment(0);
    }
}
