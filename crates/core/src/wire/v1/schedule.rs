//! A schedule's record.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::change::ChangeV1;
use super::job::{PayloadV1, PlacementV1, PolicyV1};
use super::parts::{count, value};
use crate::job::Priority;
use crate::name::{JobId, Kind};
use crate::schedule::{
    CronExpression, Misfire, Missed, Overlap, ScheduleRecord, ScheduleSpec, SkipReason, Skipped, Template,
    When, Zone,
};
use crate::time::{WallMillis, as_millis};
use crate::wire::WireError;

#[derive(Serialize, Deserialize)]
pub struct ScheduleRecordV1 {
    spec: SpecV1,
    spec_version: u32,
    paused: bool,
    cursor: u64,
    created_at: u64,
    ticked: u64,
    skipped: u64,
    last_tick: Option<u64>,
    last_skipped: Option<SkippedV1>,
    changed: Option<ChangeV1>,
}

#[derive(Serialize, Deserialize)]
struct SpecV1 {
    when: WhenV1,
    misfire: MisfireV1,
    grace_ms: u64,
    overlap: OverlapV1,
    template: TemplateV1,
}

#[derive(Serialize, Deserialize)]
enum WhenV1 {
    Cron { expression: String, zone: String },
    Every { interval_ms: u64, anchor: u64 },
    At { at: u64 },
}

#[derive(Serialize, Deserialize)]
enum MisfireV1 {
    Skip,
    Once,
    CatchUp { limit: u32, within_ms: u64 },
}

stored_enum!(OverlapV1 = Overlap { Allow, Forbid, Queue });

#[derive(Serialize, Deserialize)]
struct TemplateV1 {
    kind: String,
    payload: PayloadV1,
    policy: PolicyV1,
    placement: PlacementV1,
    priority: u8,
    expires_after_ms: Option<u64>,
    job_id: Option<String>,
}

#[derive(Serialize, Deserialize)]
struct SkippedV1 {
    reason: SkipReasonV1,
    from: u64,
    through: u64,
    count: u32,
}

stored_enum!(SkipReasonV1 = SkipReason { Misfire, Overlap, Pause, Replacement, Taken, JobOpen, Conflict });

impl From<&ScheduleRecord> for ScheduleRecordV1 {
    fn from(schedule: &ScheduleRecord) -> Self {
        Self {
            spec: (&schedule.spec).into(),
            spec_version: schedule.spec_version,
            paused: schedule.paused,
            cursor: schedule.cursor.0,
            created_at: schedule.created_at.0,
            ticked: schedule.ticked,
            skipped: schedule.skipped,
            last_tick: schedule.last_tick.map(|at| at.0),
            last_skipped: schedule.last_skipped.as_ref().map(Into::into),
            changed: schedule.changed.as_ref().map(Into::into),
        }
    }
}

impl TryFrom<ScheduleRecordV1> for ScheduleRecord {
    type Error = WireError;
    fn try_from(stored: ScheduleRecordV1) -> Result<Self, WireError> {
        Ok(Self {
            spec: stored.spec.try_into()?,
            spec_version: count("spec version", stored.spec_version)?,
            paused: stored.paused,
            cursor: WallMillis(stored.cursor),
            created_at: WallMillis(stored.created_at),
            ticked: total("ticks", stored.ticked)?,
            skipped: total("ticks skipped", stored.skipped)?,
            last_tick: stored.last_tick.map(WallMillis),
            last_skipped: stored.last_skipped.map(TryInto::try_into).transpose()?,
            changed: stored.changed.map(TryInto::try_into).transpose()?,
        })
    }
}

/// A number that may still be incremented, at most once per second.
fn total(field: &str, stored: u64) -> Result<u64, WireError> {
    if stored > u64::MAX / 2 {
        return Err(WireError::Value(format!("{stored} {field}: at most {} are allowed", u64::MAX / 2)));
    }
    Ok(stored)
}

impl From<&ScheduleSpec> for SpecV1 {
    fn from(spec: &ScheduleSpec) -> Self {
        let when = match &spec.when {
            When::Cron { expression, zone } => {
                WhenV1::Cron { expression: expression.as_str().to_owned(), zone: zone.as_str().to_owned() }
            }
            When::Every { interval, anchor } => {
                WhenV1::Every { interval_ms: as_millis(*interval), anchor: anchor.0 }
            }
            When::At(at) => WhenV1::At { at: at.0 },
        };
        let misfire = match spec.misfire {
            Misfire::Skip => MisfireV1::Skip,
            Misfire::Once => MisfireV1::Once,
            Misfire::CatchUp { limit, within } => MisfireV1::CatchUp { limit, within_ms: as_millis(within) },
        };
        let overlap = spec.overlap.into();
        let template = &spec.template;
        let template = TemplateV1 {
            kind: template.kind.to_string(),
            payload: (&template.payload).into(),
            policy: (&template.policy).into(),
            placement: (&template.placement).into(),
            priority: template.priority.get(),
            expires_after_ms: template.expires_after.map(as_millis),
            job_id: template.job_id.as_ref().map(JobId::to_string),
        };
        Self { when, misfire, grace_ms: as_millis(spec.grace), overlap, template }
    }
}

impl TryFrom<SpecV1> for ScheduleSpec {
    type Error = WireError;
    fn try_from(stored: SpecV1) -> Result<Self, WireError> {
        let when = match stored.when {
            WhenV1::Cron { expression, zone } => When::Cron {
                expression: CronExpression::new(&expression).map_err(value)?,
                zone: Zone::new(&zone).map_err(value)?,
            },
            WhenV1::Every { interval_ms, anchor } => {
                When::Every { interval: Duration::from_millis(interval_ms), anchor: WallMillis(anchor) }
            }
            WhenV1::At { at } => When::At(WallMillis(at)),
        };
        let misfire = match stored.misfire {
            MisfireV1::Skip => Misfire::Skip,
            MisfireV1::Once => Misfire::Once,
            MisfireV1::CatchUp { limit, within_ms } => {
                Misfire::CatchUp { limit, within: Duration::from_millis(within_ms) }
            }
        };
        let overlap = stored.overlap.into();
        let template = stored.template;
        let template = Template {
            kind: Kind::new(template.kind)?,
            payload: template.payload.try_into()?,
            policy: template.policy.try_into()?,
            placement: template.placement.try_into()?,
            priority: Priority::new(template.priority).map_err(value)?,
            expires_after: template.expires_after_ms.map(Duration::from_millis),
            job_id: template.job_id.map(JobId::plain).transpose()?,
        };
        let spec = Self { when, misfire, grace: Duration::from_millis(stored.grace_ms), overlap, template };
        spec.check().map_err(value)?;
        Ok(spec)
    }
}

impl From<&Skipped> for SkippedV1 {
    fn from(skipped: &Skipped) -> Self {
        let reason = skipped.reason.into();
        let Missed { from, through, count } = skipped.ticks;
        Self { reason, from: from.0, through: through.0, count }
    }
}

impl TryFrom<SkippedV1> for Skipped {
    type Error = WireError;
    fn try_from(stored: SkippedV1) -> Result<Self, WireError> {
        let reason = stored.reason.into();
        let SkippedV1 { from, through, count, .. } = stored;
        if from > through || count == 0 {
            return Err(WireError::Value(format!("{count} ticks skipped from {from} to {through}")));
        }
        let ticks = Missed { from: WallMillis(from), through: WallMillis(through), count };
        Ok(Self { reason, ticks })
    }
}
