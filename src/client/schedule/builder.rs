//! The schedule builder.
//!
//! As with [`Job`], setters never fail: the first error is returned by [`Schedule::check`], before anything is sent.

use std::time::{Duration, SystemTime};

#[cfg(feature = "describe")]
use bellwether_core::describe::Name;
use bellwether_core::duration::DurationText;
use bellwether_core::instant::InstantText;
use bellwether_core::name::{JobId, ScheduleId};
use bellwether_core::schedule::{
    CronExpression, DEFAULT_GRACE, Misfire, Overlap, ScheduleSpec, SpecError, Template, Zone,
};
use serde::Deserialize;

use super::error::ScheduleError;
use super::rule::{Rule, with_ticks};
use crate::client::job::{Checked, Job, JobTemplate};
use crate::schedule::stored;

with_ticks! {
    /// A schedule to add: when it ticks, and the job that each tick submits. It can be read from documents like a [`Job`].
    ///
    /// ```
    /// use std::time::{Duration, SystemTime};
    /// use bellwether::schedule::{Misfire, Overlap};
    /// use bellwether::{Job, Schedule};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let report = Job::new("report", &"sales").max_attempts(3);
    /// let nightly = Schedule::cron("nightly", "30 2 * * *", report)
    ///     .zone("Europe/Berlin")
    ///     .misfire(Misfire::Once)
    ///     .overlap(Overlap::Forbid)
    ///     .expires_after(Duration::from_secs(6 * 3600));
    /// for tick in nightly.preview(SystemTime::now(), 3)? {
    ///     println!("{tick:?}");
    /// }
    /// # Ok(()) }
    /// ```
    #[derive(Debug, Clone, Deserialize)]
    #[cfg_attr(feature = "describe", derive(clap::Args, utoipa::ToSchema), schema(as = NewSchedule, description = "A schedule to add, with one of `cron`, `every` and `at`."))]
    #[serde(deny_unknown_fields)]
    #[non_exhaustive]
    pub struct Schedule {
        /// Id of the schedule.
        #[cfg_attr(feature = "describe", arg(value_name = "SCHEDULE"), schema(value_type = ScheduleId))]
        id: String,
        /// Time after its tick until which a job may start, 1s to 366d. Default: unlimited.
        #[cfg_attr(feature = "describe", arg(long, value_name = "DURATION"))]
        expires_after: Option<DurationText>,
        /// Id of the job of every tick. A tick opens the job again once it has ended, and is skipped while it is open or if
        /// it has another kind or payload. Default: each tick has its own job.
        #[cfg_attr(
            feature = "describe",
            arg(long, value_name = "JOB"),
            schema(value_type = Option<Name>)
        )]
        job_id: Option<String>,
        /// Whether to replace a schedule that has this id and another spec. Otherwise that is a conflict.
        #[cfg_attr(feature = "describe", arg(long))]
        #[serde(default)]
        replace: bool,
        /// The job that each tick submits.
        #[cfg_attr(feature = "describe", command(flatten))]
        pub job: JobTemplate,
        /// A field of the job that the schedule determines.
        #[cfg_attr(feature = "describe", arg(skip))]
        #[serde(skip)]
        refused: Option<ScheduleError>,
    }
}

impl Schedule {
    /// Creates a schedule from a rule.
    #[must_use]
    pub fn new<K>(id: impl Into<String>, rule: Rule, job: Job<K>) -> Self {
        let Rule { cron, zone, every, anchor, at } = rule;
        Self {
            cron,
            zone,
            every,
            anchor,
            at,
            misfire: None,
            catch_up_limit: None,
            catch_up_within: None,
            grace: None,
            overlap: None,
            id: id.into(),
            expires_after: None,
            job_id: None,
            replace: false,
            job: job.template(),
            refused: job
                .field_of_schedule()
                .map(|(field, instead)| ScheduleError::JobOwns { field, instead }),
        }
    }

    /// Creates a schedule from a cron expression: five fields (minute, hour, day of month, month, day of week), or
    /// six with the second first. In UTC, unless a [zone](Schedule::zone) is set.
    #[must_use]
    pub fn cron<K>(id: impl Into<String>, expression: &str, job: Job<K>) -> Self {
        Self::new(id, Rule::cron(expression), job)
    }

    /// Creates a schedule with a fixed interval from 1 s to 366 d. It is aligned to the Unix epoch, so an hourly
    /// schedule ticks at the full hours of UTC, unless an [anchor](Schedule::anchor) is set.
    #[must_use]
    pub fn every<K>(id: impl Into<String>, interval: Duration, job: Job<K>) -> Self {
        Self::new(id, Rule::every(interval), job)
    }

    /// Creates a schedule that ticks once, at this instant.
    #[must_use]
    pub fn at<K>(id: impl Into<String>, at: SystemTime, job: Job<K>) -> Self {
        Self::new(id, Rule::at(at), job)
    }

    /// Sets how long after its tick a job may start: 1 s to 366 d. Default: no limit.
    #[must_use]
    pub fn expires_after(mut self, after: Duration) -> Self {
        self.expires_after = Some(after.into());
        self
    }

    /// Gives the jobs of all ticks this id, so that they are one job. A tick opens the job again once it has ended, as a new
    /// generation, and is skipped while the job or one of its sub-jobs is open. So several schedules with one job id, and
    /// clients that submit that id with [`IfExists::Again`](crate::client::IfExists::Again), start it at most once at a time.
    ///
    /// A tick is also skipped, as a conflict, if the existing job has another kind or payload. Cannot be combined with
    /// [`Overlap::Queue`].
    #[must_use]
    pub fn job_id(mut self, id: impl Into<String>) -> Self {
        self.job_id = Some(id.into());
        self
    }

    /// Sets whether the schedule replaces an existing one of this id with another spec. Default: no, that is a conflict.
    #[must_use]
    pub fn replace(mut self, replace: bool) -> Self {
        self.replace = replace;
        self
    }

    /// Checks whether a client without a [codec](crate::codec) can add the schedule, without sending anything.
    ///
    /// # Errors
    /// The first error.
    pub fn check(&self) -> Result<(), ScheduleError> {
        Ok(self.spec()?.1.check()?)
    }

    /// Returns at most `count` next ticks after an instant. Needs no namespace.
    ///
    /// # Errors
    /// The first error.
    pub fn preview(&self, after: SystemTime, count: usize) -> Result<Vec<SystemTime>, ScheduleError> {
        let (_, spec) = self.spec()?;
        let calendar = spec.when.calendar()?;
        Ok(calendar.ticks_after(stored(after)).take(count).map(SystemTime::from).collect())
    }

    /// Returns its id.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    #[cfg(all(test, feature = "describe"))]
    pub(crate) fn stored_spec(&self) -> Result<ScheduleSpec, ScheduleError> {
        self.spec().map(|(_, spec)| spec)
    }

    pub(super) fn replaces(&self) -> bool {
        self.replace
    }

    /// Checks the schedule and returns its id and spec. The payload is plain: the caller encodes it or checks its size.
    pub(super) fn spec(&self) -> Result<(ScheduleId, ScheduleSpec), ScheduleError> {
        let id = ScheduleId::new(&self.id)?;
        let when = self.checked_rule()?.ok_or(SpecError::OneRule)?;
        if let Some(refused) = &self.refused {
            return Err(refused.clone());
        }
        let (kind, payload, Checked { policy, placement, priority }) = self.job.checked()?;
        let job_id = self.job_id.as_ref().map(JobId::plain).transpose()?;
        let expires_after = self.expires_after.map(Duration::from);
        let template = Template { kind, payload, policy, placement, priority, expires_after, job_id };
        let (misfire, overlap) = (Misfire::default(), Overlap::default());
        let spec = self.of(ScheduleSpec { when, misfire, grace: DEFAULT_GRACE, overlap, template })?;
        spec.check_without_payload()?;
        Ok((id, spec))
    }
}

#[cfg(test)]
mod tests;
