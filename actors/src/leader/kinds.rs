//! The kinds that a leader meets: their series are there, at zero, before it counts anything of them. A series that
//! begins with its first count shows no growth, and an alert on growth would miss the first.

use std::collections::BTreeSet;

use bellwether_core::metric::{self, Labels, MetricType};
use bellwether_core::name::Kind;
use metrics::counter;

#[derive(Default)]
pub(super) struct Kinds(BTreeSet<Kind>);

impl Kinds {
    /// A worker has handlers of these.
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
