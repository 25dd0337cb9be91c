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
use bellwether_core::schedule::{Misfire, Overlap, ScheduleRecord, When, instant, tick_id};
use bellwether_core::time::{WallMillis, as_millis};
use bellwether_core::wire::WireError;
use serde::{Serialize, Serializer};
use serde_json::{Value, json};

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

impl Serialize for ScheduleView {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let document = match &self.record {
            Ok(record) => self.document(record),
            Err(error) => json!({ "id": self.id.as_str(), "error": error.to_string() }),
        };
        document.serialize(serializer)
    }
}

impl ScheduleView {
    fn document(&self, record: &ScheduleRecord) -> Value {
        let spec = &record.spec;
        let when = match &spec.when {
            When::Cron { expression, zone } => json!({ "cron": expression.as_str(), "zone": zone.as_str() }),
            When::Every { interval, anchor } => {
                json!({ "every_ms": as_millis(*interval), "anchor": instant::text(*anchor) })
            }
            When::Once(at) => json!({ "once": instant::text(*at) }),
        };
        let misfire = match spec.misfire {
            Misfire::Skip => json!("skip"),
            Misfire::Once => json!("once"),
            Misfire::CatchUp { at_most, within } => {
                json!({ "catch_up": { "at_most": at_most, "within_ms": as_millis(within) } })
            }
        };
        let overlap = match spec.overlap {
            Overlap::Allow => "allow",
            Overlap::Forbid => "forbid",
            Overlap::Queue => "queue",
        };
        let last_passed = record.last_passed.map(|passed| {
            let ticks = passed.ticks;
            json!({
                "why": passed.why.as_str(), "from": instant::text(ticks.from),
                "through": instant::text(ticks.through), "count": ticks.count,
            })
        });
        json!({
            "id": self.id.as_str(),
            "state": self.state(),
            "when": when,
            "misfire": misfire,
            "grace_ms": as_millis(spec.grace),
            "overlap": overlap,
            "kind": spec.template.kind.as_str(),
            "priority": spec.template.priority.get(),
            "tags": spec.template.placement.tags.iter().map(ToString::to_string).collect::<Vec<_>>(),
            "expires_after_ms": spec.template.expires_after.map(as_millis),
            "spec_version": record.spec_version,
            "paused": record.paused,
            "next": self.next().map(instant::text),
            "cursor": instant::text(record.cursor),
            "ticked": record.ticked,
            "passed_over": record.passed_over,
            "last_tick": record.last_tick.map(instant::text),
            "last_job": self.last_job().map(|job| job.to_string()),
            "last_passed": last_passed,
            "created_at": instant::text(record.created_at),
            "error": null,
        })
    }
}
