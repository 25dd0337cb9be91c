//! The view of a schedule, and its JSON document, shared by the command line and HTTP.
//!
//! | field | meaning |
//! | --- | --- |
//! | `id` | its name |
//! | `state` | `ticking`, `paused`, or `over` after the last tick |
//! | `when` | `{"cron", "zone"}`, `{"every_ms", "anchor"}` or `{"once"}` |
//! | `misfire` | `"skip"`, `"once"` or `{"catch_up": {"at_most", "within_ms"}}` |
//! | `grace_ms`, `overlap` | how late a tick may be; `"allow"`, `"forbid"` or `"queue"` |
//! | `kind`, `priority`, `tags`, `expires_after_ms` | of the submitted jobs |
//! | `spec_version` | 1, and one more for each replacement |
//! | `paused` | whether it is paused |
//! | `next` | its next tick, or null |
//! | `cursor` | every tick up to here is decided |
//! | `ticked`, `passed_over` | how many ticks submitted a job, and how many did not |
//! | `last_tick`, `last_job` | the last tick that submitted a job, and that job's id; or null |
//! | `last_passed` | the last ticks that did not: `{"why", "from", "through", "count"}`, or null |
//! | `created_at` | when it was added |
//! | `error` | why its record cannot be read, or null; the other fields are null then |
//!
//! Instants are RFC 3339 in UTC.

use bellwether_core::name::{JobId, ScheduleId};
use bellwether_core::schedule::{ScheduleRecord, tick_id};
use bellwether_core::time::WallMillis;
use bellwether_core::wire::WireError;

/// A schedule as read at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScheduleView {
    /// Its name.
    pub id: ScheduleId,
    /// The stored record, or why it cannot be read.
    pub record: Result<ScheduleRecord, WireError>,
}

impl ScheduleView {
    /// Returns its next tick: `None` while it is paused, after the last tick, or if it cannot be read. A tick
    /// that is not in the future waits for the leader.
    #[must_use]
    pub fn next(&self) -> Option<WallMillis> {
        let record = self.record.as_ref().ok()?;
        record.next(&record.spec.when.calendar().ok()?)
    }

    /// Returns the job of the last tick that submitted one.
    #[must_use]
    pub fn last_job(&self) -> Option<JobId> {
        let last = self.record.as_ref().ok()?.last_tick?;
        Some(tick_id(&self.id, last))
    }

    /// Returns its state as a word: `ticking`, `paused`, `over` after the last tick, or `unreadable`.
    #[must_use]
    pub fn state(&self) -> &'static str {
        match &self.record {
            Err(_) => "unreadable",
            Ok(record) if record.paused => "paused",
            Ok(_) if self.next().is_none() => "over",
            Ok(_) => "ticking",
        }
    }
}
