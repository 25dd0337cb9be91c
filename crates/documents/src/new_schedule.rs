//! A schedule to add.

use bellwether::Schedule;
use bellwether::client::{Job, ScheduleChange};
use bellwether::schedule::DEFAULT_GRACE;
use clap::Args;
use serde::Deserialize;
use utoipa::ToSchema;

use super::invalid::Invalid;
use super::rule::{no_rule, with_ticks};
use super::text::{DurationText, Text};

with_ticks! {
    /// A schedule to add, with one of `cron`, `every` and `at`.
    #[derive(Debug, Args, Deserialize, ToSchema)]
    #[serde(deny_unknown_fields)]
    #[schema(as = NewSchedule)]
    pub struct NewSchedule<J: Args> {
        /// Name of the schedule.
        #[arg(value_name = "SCHEDULE")]
        #[schema(example = "nightly", pattern = "^[A-Za-z0-9._-]{1,128}$")]
        id: String,
        /// Time after its tick until which a job may start, 1s to 366d. Default: unlimited.
        #[arg(long, value_name = "DURATION")]
        expires_after: Option<DurationText>,
        /// Id of the job of every tick. A tick opens the job again once it has ended, and is skipped while it is open or if
        /// it has another kind or payload. Default: each tick has its own job.
        #[arg(long, value_name = "JOB")]
        #[schema(example = "reindex")]
        job_id: Option<String>,
        /// Whether to replace a schedule that has this name and another spec. Otherwise that is a conflict.
        #[arg(long, help = "Replace a schedule that has this name and another spec")]
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
        let ScheduleChange { when, misfire, grace, overlap, .. } = self.change()?;
        let mut schedule = Schedule::new(self.id, when.ok_or_else(no_rule)?, job(self.job)?)
            .misfire(misfire.unwrap_or_default())
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
