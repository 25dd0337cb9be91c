//! A schedule to add, as HTTP and the file of a node describe it.

use bellwether::schedule::{CronExpression, Misfire, Overlap, Zone};
use bellwether::{DurationText, Job, Schedule};
use serde::Deserialize;
use serde::de::{Deserializer, Error as _};
use utoipa::ToSchema;

use super::duration::{DurationSchema, InstantText};
use super::schedule_change::Rule;
use super::word::OverlapWord;

/// A schedule to add, with one of `cron`, `every` and `at`.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewSchedule)]
pub struct NewSchedule<J> {
    /// Name of the schedule.
    #[schema(example = "nightly", pattern = "^[A-Za-z0-9._-]{1,128}$")]
    id: String,
    /// Cron expression with five fields (minute, hour, day of month, month, day of week), or with six of which the
    /// first is the second.
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
    /// What to do with ticks that were missed because there was no leader. Default `once`.
    #[schema(value_type = Option<MisfireSchema>)]
    misfire: Option<Misfire>,
    /// How late a tick may be without being missed, 1s to 7d. Default 1m.
    #[schema(value_type = Option<DurationSchema>)]
    grace: Option<DurationText>,
    /// What to do with a tick while the job of the last tick has not ended. Default `allow`.
    #[schema(value_type = Option<OverlapWord>)]
    overlap: Option<Overlap>,
    /// Time after its tick until which a job may start, 1s to 366d. Default: unlimited.
    #[schema(value_type = Option<DurationSchema>)]
    expires_after: Option<DurationText>,
    /// Id of the job of every tick. A tick opens the job again once it has ended, and is skipped while it is open or if it
    /// has another kind or payload. Default: each tick has its own job.
    #[schema(example = "reindex")]
    job_id: Option<String>,
    /// Whether to replace a schedule that has this name and another spec. Otherwise that is a conflict.
    #[serde(default)]
    replace: bool,
    /// The job that each tick submits, without `id`, start and expiry, which the schedule sets.
    job: J,
}

// The schema of the library's `Misfire`; the comments are its descriptions.
/// What happens to ticks that were missed because there was no leader.
#[derive(ToSchema)]
#[schema(as = Misfire, rename_all = "snake_case")]
#[expect(dead_code, reason = "only described")]
pub(super) enum MisfireSchema {
    /// No missed tick gets a job.
    Skip,
    /// The last missed tick gets a job, on behalf of all of them.
    Once,
    /// The last missed ticks get their jobs, in order.
    CatchUp {
        /// Maximum number of ticks.
        #[schema(minimum = 1, maximum = 100)]
        at_most: u32,
        /// Maximum age of the ticks, 1s to 366d.
        #[schema(value_type = DurationSchema)]
        within: DurationText,
    },
}

/// Checks the expression where it is read, so that the error has its place.
pub(super) fn cron<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let text = Option::<String>::deserialize(deserializer)?;
    text.as_deref().map(CronExpression::new).transpose().map_err(D::Error::custom)?;
    Ok(text)
}

pub(super) fn zone<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let text = Option::<String>::deserialize(deserializer)?;
    text.as_deref().map(Zone::new).transpose().map_err(D::Error::custom)?;
    Ok(text)
}

impl<J> NewSchedule<J> {
    /// Returns the schedule, whose job `job` makes. It is not checked yet, except that there is one time.
    pub fn schedule<E>(
        self,
        job: impl FnOnce(J) -> Result<Job, E>,
        refuse: impl FnOnce(String) -> E,
    ) -> Result<Schedule, E> {
        let job = job(self.job)?;
        let Self { cron, zone, every, anchor, at, .. } = self;
        let when = Rule { cron, zone, every, anchor, at }.when();
        let when = when.and_then(|when| when.ok_or_else(|| "give one of cron, every and at".to_owned()));
        let mut schedule = Schedule::new(self.id, when.map_err(refuse)?, job);
        if let Some(misfire) = self.misfire {
            schedule = schedule.misfire(misfire);
        }
        if let Some(DurationText(grace)) = self.grace {
            schedule = schedule.grace(grace);
        }
        if let Some(overlap) = self.overlap {
            schedule = schedule.overlap(overlap);
        }
        if let Some(DurationText(after)) = self.expires_after {
            schedule = schedule.expires_after(after);
        }
        if let Some(job) = self.job_id {
            schedule = schedule.job_id(job);
        }
        Ok(schedule.replace(self.replace))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::{Value, json};
    use utoipa::PartialSchema;

    use super::*;

    /// Returns the words and the names of the objects that a schema of an enum allows.
    fn words<S: PartialSchema>() -> Vec<Value> {
        let schema = serde_json::to_value(S::schema()).unwrap();
        let variants = schema["oneOf"].as_array().map_or_else(|| vec![schema.clone()], Clone::clone);
        let of = |variant: &Value| match &variant["enum"] {
            Value::Array(words) => words.clone(),
            _ => variant["properties"].as_object().unwrap().keys().map(|name| json!(name)).collect(),
        };
        variants.iter().flat_map(of).collect()
    }

    #[test]
    fn the_schema_of_the_misfire_policy_has_its_words() {
        let catch_up = Misfire::CatchUp { at_most: 3, within: Duration::from_secs(60) };
        assert_eq!(json!(catch_up), json!({ "catch_up": { "at_most": 3, "within": "1m" } }));
        assert_eq!(json!(words::<MisfireSchema>()), json!([Misfire::Skip, Misfire::Once, "catch_up"]));
    }
}
