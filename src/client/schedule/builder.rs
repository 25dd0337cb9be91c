//! What to add.
//!
//! As with [`Job`], setters never fail: what is wrong is kept and told by [`Schedule::check`], before anything is sent.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bellwether_core::job::{JobState, Priority};
use bellwether_core::name::ScheduleId;
use bellwether_core::schedule::{
    CronExpression, DEFAULT_GRACE, Misfire, Overlap, ScheduleSpec, SpecError, Template, When, Zone, instant,
};
use bellwether_core::time::{WallMillis, as_millis};
use bellwether_host::clock;
use uuid::Uuid;

use super::error::ScheduleError;
use crate::client::job::Job;

/// A schedule to add: when it ticks, and what each tick submits.
///
/// ```
/// use std::time::{Duration, SystemTime};
/// use bellwether::schedule::{Misfire, Overlap};
/// use bellwether::{Job, Schedule};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let report = Job::new("report", &"sales")?.max_attempts(3);
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
    misfire: Misfire,
    grace: Duration,
    overlap: Overlap,
    template: Result<Template, ScheduleError>,
    expires_after: Option<Duration>,
    replaces: bool,
}

impl Schedule {
    /// At the times that a cron expression names: five fields (minute, hour, day of month, month, day of week), or six
    /// with the second first. In UTC, unless it is given a [zone](Schedule::zone).
    #[must_use]
    pub fn cron<K>(id: impl Into<String>, expression: &str, job: Job<K>) -> Self {
        let expression = CronExpression::new(expression);
        let when = expression.map(|expression| When::Cron { expression, zone: Zone::utc() });
        Self::new(id.into(), when, job)
    }

    /// Every so often, from 1 s to 366 d: at the Unix epoch and every interval after it, so that an hour ticks at the
    /// full hours of UTC, unless it is given an [anchor](Schedule::anchor).
    #[must_use]
    pub fn every<K>(id: impl Into<String>, interval: Duration, job: Job<K>) -> Self {
        Self::new(id.into(), Ok(When::Every { interval, anchor: WallMillis::default() }), job)
    }

    /// Once, at this instant.
    #[must_use]
    pub fn once<K>(id: impl Into<String>, at: SystemTime, job: Job<K>) -> Self {
        Self::new(id.into(), Ok(When::Once(wall(at))), job)
    }

    fn new<K>(id: String, when: Result<When, SpecError>, job: Job<K>) -> Self {
        Self {
            id,
            when,
            zone: None,
            misfire: Misfire::default(),
            grace: DEFAULT_GRACE,
            overlap: Overlap::default(),
            template: template(job),
            expires_after: None,
            replaces: false,
        }
    }

    /// The IANA zone of a cron expression, such as `Europe/Berlin`. Meaningless for others, and refused there.
    #[must_use]
    pub fn zone(mut self, zone: &str) -> Self {
        self.zone = Some(Zone::new(zone));
        self
    }

    /// Where an interval begins. Meaningless for others.
    #[must_use]
    pub fn anchor(mut self, at: SystemTime) -> Self {
        if let Ok(When::Every { anchor, .. }) = &mut self.when {
            *anchor = wall(at);
        }
        self
    }

    /// What becomes of ticks that nobody was there for. Default: [`Misfire::Once`].
    #[must_use]
    pub fn misfire(mut self, misfire: Misfire) -> Self {
        self.misfire = misfire;
        self
    }

    /// How late a tick may be and still be on time; 1 s to 7 d, by default a minute. It covers a change of leader: within
    /// it every tick is made, whatever the misfire policy.
    #[must_use]
    pub fn grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// What becomes of a tick while the last one's job is not over. Default: [`Overlap::Allow`].
    #[must_use]
    pub fn overlap(mut self, overlap: Overlap) -> Self {
        self.overlap = overlap;
        self
    }

    /// How long after its tick a job may be started. Default: for ever.
    #[must_use]
    pub fn expires_after(mut self, after: Duration) -> Self {
        self.expires_after = Some(after);
        self
    }

    /// Takes the place of a schedule of this name with another spec, instead of a conflict.
    #[must_use]
    pub fn replace(mut self) -> Self {
        self.replaces = true;
        self
    }

    /// Whether it can be added; nothing is sent.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn check(&self) -> Result<(), ScheduleError> {
        self.spec().map(|_| ())
    }

    /// Its next ticks after an instant, as many at most, without a namespace.
    ///
    /// # Errors
    /// The first thing that is wrong with it.
    pub fn preview(&self, after: SystemTime, count: usize) -> Result<Vec<SystemTime>, ScheduleError> {
        let (_, spec) = self.spec()?;
        let calendar = spec.when.calendar()?;
        Ok(calendar.ticks_after(wall(after)).take(count).map(system_time).collect())
    }

    /// What it is called.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.id
    }

    pub(super) fn replaces(&self) -> bool {
        self.replaces
    }

    /// Its name and spec, checked.
    pub(super) fn spec(&self) -> Result<(ScheduleId, ScheduleSpec), ScheduleError> {
        let id = ScheduleId::new(&self.id)?;
        let mut when = self.when.clone()?;
        if let Some(given) = &self.zone {
            let given = given.clone()?;
            match &mut when {
                When::Cron { zone, .. } => *zone = given,
                When::Every { .. } | When::Once(_) => {
                    return Err(SpecError::Bound {
                        field: "zone",
                        allowed: "left out of a schedule without a cron expression".to_owned(),
                        given: given.to_string(),
                    }
                    .into());
                }
            }
        }
        let template = Template { expires_after: self.expires_after, ..self.template.clone()? };
        let (misfire, grace, overlap) = (self.misfire, self.grace, self.overlap);
        let spec = ScheduleSpec { when, misfire, grace, overlap, template };
        spec.check()?;
        Ok((id, spec))
    }
}

/// What of a job is each tick's: not its name, nor its times.
fn template<K>(job: Job<K>) -> Result<Template, ScheduleError> {
    let owns = |field, instead| Err(ScheduleError::JobOwns { field, instead });
    if job.is_named() {
        return owns("id", "each tick's job has its own, from the schedule and the instant");
    }
    let (_, record) = job.into_record(clock::wall(), Uuid::nil)?;
    if record.expires_at.is_some() {
        return owns("expiry", "give the schedule one with expires_after");
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
    })
}

/// One before 1970 is 1970, one after the end of the calendar that end: it is refused where there must be one.
pub(super) fn wall(at: SystemTime) -> WallMillis {
    let since = at.duration_since(UNIX_EPOCH).map_or(0, as_millis);
    WallMillis(since.min(instant::END.0))
}

pub(super) fn system_time(at: WallMillis) -> SystemTime {
    UNIX_EPOCH + Duration::from_millis(at.0)
}
