//! A change of a schedule, and the rule by which a schedule ticks.

use bellwether::DurationText;
use bellwether::client::ScheduleChange;
use bellwether::schedule::{Misfire, Overlap, When};
use serde::Deserialize;
use utoipa::ToSchema;

use super::duration::{DurationSchema, InstantText};
use super::new_schedule::{MisfireSchema, cron, zone};
use super::word::OverlapWord;

/// A change of a schedule. Values that are not given do not change; its jobs do not change either.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = ScheduleChange)]
pub struct ChangedSchedule {
    /// Cron expression, as for a new schedule.
    #[serde(default, deserialize_with = "cron")]
    #[schema(example = "0 3 * * *")]
    cron: Option<String>,
    /// IANA zone of `cron`; default UTC.
    #[serde(default, deserialize_with = "zone")]
    #[schema(example = "Europe/Berlin")]
    zone: Option<String>,
    /// Interval, 1s to 366d.
    #[schema(value_type = Option<DurationSchema>)]
    every: Option<DurationText>,
    /// Start of the interval; default: the Unix epoch.
    anchor: Option<InstantText>,
    /// One tick at this instant.
    at: Option<InstantText>,
    /// What to do with ticks that were missed because there was no leader.
    #[schema(value_type = Option<MisfireSchema>)]
    misfire: Option<Misfire>,
    /// How late a tick may be without being missed, 1s to 7d.
    #[schema(value_type = Option<DurationSchema>)]
    grace: Option<DurationText>,
    /// What to do with a tick while the job of the last tick has not ended.
    #[schema(value_type = Option<OverlapWord>)]
    overlap: Option<Overlap>,
}

impl ChangedSchedule {
    /// Returns the change. The schedule that results from it is not checked yet.
    pub fn change(self) -> Result<ScheduleChange, String> {
        let Self { cron, zone, every, anchor, at, misfire, grace, overlap } = self;
        let when = Rule { cron, zone, every, anchor, at }.when()?;
        let grace = grace.map(|DurationText(grace)| grace);
        Ok(ScheduleChange::default().when(when).misfire(misfire).grace(grace).overlap(overlap))
    }
}

/// When a schedule ticks: at most one of `cron`, `every` and `at`.
pub struct Rule {
    /// A cron expression.
    pub cron: Option<String>,
    /// Its time zone.
    pub zone: Option<String>,
    /// A period.
    pub every: Option<DurationText>,
    /// The time from which the period is counted.
    pub anchor: Option<InstantText>,
    /// A single time.
    pub at: Option<InstantText>,
}

impl Rule {
    /// Returns `None` if no time is given.
    pub fn when(self) -> Result<Option<When>, String> {
        let Self { cron, zone, every, anchor, at } = self;
        if zone.is_some() && cron.is_none() {
            return Err("zone needs cron".to_owned());
        }
        if anchor.is_some() && every.is_none() {
            return Err("anchor needs every".to_owned());
        }
        match (cron, every, at) {
            (None, None, None) => Ok(None),
            (Some(expression), None, None) => {
                let when = When::cron(&expression, zone.as_deref().unwrap_or("UTC"));
                when.map(Some).map_err(|error| error.to_string())
            }
            (None, Some(DurationText(interval)), None) => {
                let when = When::every(interval).map_err(|error| error.to_string())?;
                Ok(Some(match (when, anchor) {
                    (When::Every { interval, .. }, Some(InstantText(anchor))) => {
                        When::Every { interval, anchor }
                    }
                    (when, _) => when,
                }))
            }
            (None, None, Some(InstantText(at))) => Ok(Some(When::Once(at))),
            (_, _, _) => Err("give one of cron, every and at".to_owned()),
        }
    }
}
