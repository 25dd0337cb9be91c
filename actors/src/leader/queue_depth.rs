//! The gauge of waiting jobs by kind. The sum over all series, with `other`, is always the number of waiting jobs.

use std::collections::BTreeMap;

use bellwether_core::machine::assigner::Assigner;
use bellwether_core::metric::{self, OTHER_KINDS};
use bellwether_core::name::Kind;
use metrics::gauge;

use crate::kind_label::series;

/// What this term has recorded last. Only changes are recorded, because the assigner does so after each event.
#[derive(Debug, Default)]
pub(super) struct QueueDepth {
    kinds: BTreeMap<Kind, usize>,
    other: Option<usize>,
}

impl QueueDepth {
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
