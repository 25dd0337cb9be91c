//! A schedule to add.

use bellwether::Schedule;
use bellwether::client::{Job, ScheduleChange};
use bellwether::schedule::{DEFAULT_GRACE, Misfire};
use clap::Args;
use serde::Deserialize;
use utoipa::ToSchema;

use super::invalid::Invalid;
use super::rule::{no_rule, with_limits, with_ticks};
use super::text::{DurationText, NameText, ScheduleText, Text};
use super::word::Word;

with_ticks! {
    /// A schedule to add, with one of `cron`, `every` and `at`.
    #[derive(Debug, Args, Deserialize, ToSchema)]
    #[serde(deny_unknown_fields)]
    #[schema(as = NewSchedule)]
    pub struct NewSchedule<J: Args> {
        /// Id of the schedule.
        #[arg(value_name = "SCHEDULE")]
        #[schema(value_type = ScheduleText)]
        id: String,
        /// Time after its tick until which a job may start, 1s to 366d. Default: unlimited.
        #[arg(long, value_name = "DURATION")]
        expires_after: Option<DurationText>,
        /// Id of the job of every tick. A tick opens the job again once it has ended, and is skipped while it is open or if
        /// it has another kind or payload. Default: each tick has its own job.
        #[arg(long, value_name = "JOB")]
        #[schema(value_type = Option<NameText>)]
        job_id: Option<String>,
        /// Whether to replace a schedule that has this id and another spec. Otherwise that is a conflict.
        #[arg(long)]
        #[serde(default)]
        replace: bool,
        /// The job that each tick submits.
        #[command(flatten)]
        job: J,
    }
}

impl<J: Args> NewSchedule<J> {
    /// Returns the schedule, whose job `job` makes. It is not checked yet, except that there is one rule.
    pub fn into_schedule<E: From<Invalid>>(
        self,
        job: impl FnOnce(J) -> Result<Job, E>,
    ) -> Result<Schedule, E> {
        let ScheduleChange { when, grace, overlap, .. } = self.change()?;
        let policy = self.misfire.map_or_else(Misfire::default, |Word(policy)| policy);
        let misfire = with_limits(policy, self.catch_up_limit, self.catch_up_within)?;
        let mut schedule = Schedule::new(self.id, when.ok_or_else(no_rule)?, job(self.job)?)
            .misfire(misfire)
            .grace(grace.unwrap_or(DEFAULT_GRACE))
            .overlap(overlap.unwrap_or_default())
            .replace(self.replace);
        if let Some(Text(after)) = self.expires_after {
            schedule = schedule.expires_after(after);
        }
        if let Some(job) = self.job_id {
            schedule = schedule.job_id(job);
        }
        Ok(schedule)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::{Value, json};

    use super::super::{ChangedSchedule, ScheduledJob};
    use super::*;

    type Request = NewSchedule<ScheduledJob<Value>>;

    fn schedule(request: Value) -> Result<Schedule, String> {
        let new = serde_json::from_value::<Request>(request).map_err(|error| error.to_string())?;
        let job = |kind: &str, payload: Value, _: &str| Ok::<_, Invalid>(Job::new(kind, &payload));
        new.into_schedule(|new| new.into_job(job)).map_err(|Invalid(reason)| reason)
    }

    #[test]
    fn a_schedule_without_options_has_the_defaults_of_the_library() {
        let given = schedule(json!({ "id": "a", "every": "1h", "job": { "kind": "sum" } })).unwrap();
        let built = Schedule::every("a", Duration::from_secs(3600), Job::new("sum", &Value::Null));
        assert_eq!(format!("{given:?}"), format!("{built:?}"));
    }

    #[test]
    fn a_rule_has_one_time_and_only_catch_up_has_limits() {
        let with = |more: Value| {
            let mut request = json!({ "id": "a", "job": { "kind": "sum" } });
            request.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            schedule(request).map(|_| ())
        };
        let one = Err("give one of cron, every and at".to_owned());
        assert_eq!(with(json!({})), one);
        assert_eq!(with(json!({ "every": "1h", "cron": "* * * * *" })), one);
        assert_eq!(with(json!({ "every": "1h", "zone": "UTC" })), Err("zone needs cron".to_owned()));
        assert_eq!(
            with(json!({ "cron": "* * * * *", "anchor": "2026-11-21T11:33:00Z" })),
            Err("anchor needs every".to_owned())
        );
        assert_eq!(with(json!({ "every": "1h", "misfire": "catch_up", "catch_up_limit": 3 })), Ok(()));
        for misfire in [json!(null), json!("skip"), json!("once")] {
            for (limit, value) in [("catch_up_limit", json!(3)), ("catch_up_within", json!("1h"))] {
                let refused = with(json!({ "every": "1h", "misfire": misfire, limit: value }));
                assert_eq!(refused, Err(format!("{limit} needs misfire catch_up")));
            }
        }
    }

    #[test]
    fn a_change_may_have_a_limit_alone() {
        let change =
            serde_json::from_value::<ChangedSchedule>(json!({ "catch_up_limit": 3 })).unwrap().change();
        assert_eq!(change, Ok(ScheduleChange::default().catch_up_limit(3)));
        let change = json!({ "misfire": "skip", "catch_up_limit": 3 });
        let change = serde_json::from_value::<ChangedSchedule>(change).unwrap().change();
        assert_eq!(change, Err(Invalid("catch_up_limit needs misfire catch_up".to_owned())));
    }
}
