//! The schedule builder.
//!
//! As with [`Job`], setters never fail: the first error is returned by [`Schedule::check`], before anything is sent.

use std::time::{Duration, SystemTime};

use bellwether_core::job::{JobState, Priority};
use bellwether_core::name::{JobId, ScheduleId};
use bellwether_core::schedule::{
    CronExpression, DEFAULT_GRACE, Misfire, Overlap, ScheduleSpec, SpecError, Template, When, Zone,
};
use bellwether_core::time::WallMillis;
use bellwether_host::clock;
use uuid::Uuid;

use super::error::ScheduleError;
use crate::client::job::Job;
use crate::schedule::{self, stored};

/// A schedule to add: when it ticks, and the job that each tick submits.
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
#[derive(Debug, Clone)]
pub struct Schedule {
    id: String,
    when: Result<When, SpecError>,
    zone: Option<Result<Zone, SpecError>>,
    anchor: Option<WallMillis>,
    misfire: Misfire,
    grace: Duration,
    overlap: Overlap,
    template: Result<Template, ScheduleError>,
    expires_after: Option<Duration>,
    job_id: Option<String>,
    replace: bool,
}

impl Schedule {
    /// Creates a schedule from a rule.
    #[must_use]
    pub fn new<K>(id: impl Into<String>, when: schedule::When, job: Job<K>) -> Self {
        Self::ticking(id.into(), Ok(when.stored()), job)
    }

    /// Creates a schedule from a cron expression: five fields (minute, hour, day of month, month, day of week), or
    /// six with the second first. In UTC, unless a [zone](Schedule::zone) is set.
    #[must_use]
    pub fn cron<K>(id: impl Into<String>, expression: &str, job: Job<K>) -> Self {
        let expression = CronExpression::new(expression);
        let when = expression.map(|expression| When::Cron { expression, zone: Zone::utc() });
        Self::ticking(id.into(), when, job)
    }

    /// Creates a schedule with a fixed interval from 1 s to 366 d. It is aligned to the Unix epoch, so an hourly
    /// schedule ticks at the full hours of UTC, unless an [anchor](Schedule::anchor) is set.
    #[must_use]
    pub fn every<K>(id: impl Into<String>, interval: Duration, job: Job<K>) -> Self {
        Self::ticking(id.into(), Ok(When::Every { interval, anchor: WallMillis::default() }), job)
    }

    /// Creates a schedule that ticks once, at this instant.
    #[must_use]
    pub fn at<K>(id: impl Into<String>, at: SystemTime, job: Job<K>) -> Self {
        Self::ticking(id.into(), Ok(When::At(stored(at))), job)
    }

    fn ticking<K>(id: String, when: Result<When, SpecError>, job: Job<K>) -> Self {
        Self {
            id,
            when,
            zone: None,
            anchor: None,
            misfire: Misfire::default(),
            grace: DEFAULT_GRACE,
            overlap: Overlap::default(),
            template: template(job),
            expires_after: None,
            job_id: None,
            replace: false,
        }
    }

    /// Sets the IANA time zone of a cron expression, such as `Europe/Berlin`. An error for other schedules.
    #[must_use]
    pub fn zone(mut self, zone: &str) -> Self {
        self.zone = Some(Zone::new(zone));
        self
    }

    /// Sets the start of an interval. An error for other schedules.
    #[must_use]
    pub fn anchor(mut self, at: SystemTime) -> Self {
        self.anchor = Some(stored(at));
        self
    }

    /// Sets how missed ticks are handled. Default: [`Misfire::Once`].
    #[must_use]
    pub fn misfire(mut self, misfire: Misfire) -> Self {
        self.misfire = misfire;
        self
    }

    /// Sets how late a tick may be and still count as on time: 1 s to 7 d, by default a minute. It covers a change of
    /// leader: within the grace every tick is made, whatever the misfire policy.
    #[must_use]
    pub fn grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// Sets how a tick is handled while the job of the last tick has not ended. Default: [`Overlap::Allow`].
    #[must_use]
    pub fn overlap(mut self, overlap: Overlap) -> Self {
        self.overlap = overlap;
        self
    }

    /// Sets how long after its tick a job may start. Default: no limit.
    #[must_use]
    pub fn expires_after(mut self, after: Duration) -> Self {
        self.expires_after = Some(after);
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

    /// Checks whether the schedule can be added, without sending anything.
    ///
    /// # Errors
    /// The first error.
    pub fn check(&self) -> Result<(), ScheduleError> {
        self.spec().map(|_| ())
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

    pub(super) fn replaces(&self) -> bool {
        self.replace
    }

    /// Checks the schedule and returns its id and spec.
    pub(super) fn spec(&self) -> Result<(ScheduleId, ScheduleSpec), ScheduleError> {
        let id = ScheduleId::new(&self.id)?;
        let mut when = self.when.clone()?;
        if let Some(given) = &self.zone {
            let given = given.clone()?;
            match &mut when {
                When::Cron { zone, .. } => *zone = given,
                When::Every { .. } | When::At(_) => {
                    let allowed = "left out of a schedule without a cron expression".to_owned();
                    return Err(SpecError::Bound { field: "zone", allowed, given: given.to_string() }.into());
                }
            }
        }
        if let Some(given) = self.anchor {
            match &mut when {
                When::Every { anchor, .. } => *anchor = given,
                When::Cron { .. } | When::At(_) => {
                    let allowed = "left out of a schedule without an interval".to_owned();
                    return Err(
                        SpecError::Bound { field: "anchor", allowed, given: given.to_string() }.into()
                    );
                }
            }
        }
        let job_id = self.job_id.as_ref().map(JobId::plain).transpose()?;
        let template = Template { expires_after: self.expires_after, job_id, ..self.template.clone()? };
        let (misfire, grace, overlap) = (self.misfire, self.grace, self.overlap);
        let spec = ScheduleSpec { when, misfire, grace, overlap, template };
        spec.check()?;
        Ok((id, spec))
    }
}

/// Returns the parts of the job that all ticks share. Id and times are not among them.
fn template<K>(job: Job<K>) -> Result<Template, ScheduleError> {
    let owns = |field, instead| Err(ScheduleError::JobOwns { field, instead });
    if job.has_id() {
        return owns(
            "id",
            "each tick has its own job, unless job_id of the schedule sets one id for all of them",
        );
    }
    if job.has_if_exists() {
        return owns("if_exists", "with job_id of the schedule, a tick opens an ended job again");
    }
    let (_, record) = job.into_record(clock::local(), Uuid::nil)?;
    if record.trace.is_some() {
        return owns("traceparent", "the jobs of ticks belong to no trace");
    }
    if record.expires_at.is_some() {
        return owns("expiry", "use expires_after of the schedule");
    }
    if record.state != (JobState::Open { not_before: None }) {
        return owns("time to run at", "it runs at the tick");
    }
    let priority: Priority = record.priority;
    Ok(Template {
        kind: record.kind,
        payload: record.payload,
        policy: record.policy,
        placement: record.placement,
        priority,
        expires_after: None,
        job_id: None,
    })
}

#[cfg(test)]
mod tests;
