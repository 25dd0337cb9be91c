//! Rates between two snapshots.

use std::time::Duration;

use bellwether::client::{Snapshot, WrappingCount};
use serde::Serialize;

/// Jobs per second between two snapshots; `None` if a counter was reset. Estimates while there are segments.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Rates {
    /// Jobs that were submitted.
    pub submitted: Option<f64>,
    /// Submitted jobs minus the increase of open jobs: a job that is opened again reduces it by one.
    pub finished: Option<f64>,
    /// Jobs whose records were removed.
    pub removed: Option<f64>,
}

impl Rates {
    /// The snapshot `before` is older by `elapsed`, which is not zero.
    pub fn between(before: &Snapshot, now: &Snapshot, elapsed: Duration) -> Self {
        let jobs = |records: u32| f64::from(records) * now.record_totals.jobs_per_record;
        let since = |now: WrappingCount, before: WrappingCount| now.since(before).map(jobs);
        let submitted = since(now.record_totals.created, before.record_totals.created);
        let counted = before.further_minutes == 0 && now.further_minutes == 0;
        let finished = submitted.filter(|_| counted).map(|submitted| {
            // The parts of a snapshot are read at slightly different times, so the difference may be negative.
            (submitted - now.open() as f64 + before.open() as f64).max(0.0)
        });
        let per_second = |count: f64| count / elapsed.as_secs_f64();
        Self {
            submitted: submitted.map(per_second),
            finished: finished.map(per_second),
            removed: since(now.record_totals.removed, before.record_totals.removed).map(per_second),
        }
    }
}
