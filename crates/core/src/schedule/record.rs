//! What is stored of a schedule, and how it changes.
//!
//! The *cursor* is the last instant that is decided. It only grows, so that no instant is decided twice, whatever the
//! clocks say (S8). Whoever moves it over ticks that get no job says which, and why: `passed` has the latest such move,
//! the counts have all.

use uuid::Uuid;
use xxhash_rust::xxh3::xxh3_128;

use super::{Calendar, Missed, Overlap, ScheduleSpec, SpecError, instant, missed};
use crate::job::JobRecord;
use crate::name::{JobId, Lane, ScheduleId};
use crate::time::WallMillis;

/// Why ticks got no job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PassedOver {
    /// Nobody was there in time, and the misfire policy does not make them up.
    Misfire,
    /// The last tick's job was not over, and the schedule forbids two.
    Overlap,
    /// The schedule was paused.
    Pause,
    /// The schedule was replaced before they were made.
    Replacement,
    /// A job with the tick's id was there: of a schedule of this name that was removed, say.
    Taken,
}

impl PassedOver {
    /// All reasons.
    pub const ALL: [Self; 5] = [Self::Misfire, Self::Overlap, Self::Pause, Self::Replacement, Self::Taken];

    /// The word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Misfire => "misfire",
            Self::Overlap => "overlap",
            Self::Pause => "pause",
            Self::Replacement => "replacement",
            Self::Taken => "taken",
        }
    }
}

/// Ticks that follow one another and got no job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Passed {
    /// Why.
    pub why: PassedOver,
    /// Which.
    pub ticks: Missed,
}

/// A schedule with its state.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ScheduleRecord {
    /// What it is.
    pub spec: ScheduleSpec,
    /// 1, and one more for each replacement.
    pub spec_version: u32,
    /// Whether it stands still.
    pub paused: bool,
    /// The last instant that is decided.
    pub cursor: WallMillis,
    /// When it was added, by the client's wall clock.
    pub created_at: WallMillis,
    /// How many ticks got their job.
    pub ticked: u64,
    /// How many got none.
    pub passed_over: u64,
    /// The last tick that got its job.
    pub last_tick: Option<WallMillis>,
    /// The last ticks that got none.
    pub last_passed: Option<Passed>,
}

impl ScheduleRecord {
    /// A new schedule, whose first tick is the first after `now`.
    #[must_use]
    pub fn new(spec: ScheduleSpec, now: WallMillis) -> Self {
        Self {
            spec,
            spec_version: 1,
            paused: false,
            cursor: now,
            created_at: now,
            ticked: 0,
            passed_over: 0,
            last_tick: None,
            last_passed: None,
        }
    }

    /// After a tick that gets its job, and what was passed over before it.
    #[must_use]
    pub fn ticked(mut self, at: WallMillis, before: Option<Missed>) -> Self {
        debug_assert!(at > self.cursor, "the cursor only grows");
        if let Some(ticks) = before {
            self = self.passed(Passed { why: PassedOver::Misfire, ticks });
        }
        self.cursor = at;
        self.ticked += 1;
        self.last_tick = Some(at);
        self
    }

    /// After ticks that get none.
    #[must_use]
    pub fn passed(mut self, passed: Passed) -> Self {
        debug_assert!(passed.ticks.through > self.cursor, "the cursor only grows");
        self.cursor = passed.ticks.through;
        self.passed_over += u64::from(passed.ticks.count);
        self.last_passed = Some(passed);
        self
    }

    /// Stands still.
    #[must_use]
    pub fn pause(mut self) -> Self {
        self.paused = true;
        self
    }

    /// Goes on with the first tick after `now`: what fell into the pause is not made up.
    ///
    /// # Errors
    /// When this build does not know its calendar.
    pub fn resume(mut self, now: WallMillis) -> Result<Self, SpecError> {
        self = self.skip_to(now, PassedOver::Pause)?;
        self.paused = false;
        Ok(self)
    }

    /// Becomes another one of the same name, whose first tick is the first after `now`. What was due before is not made
    /// up; a pause goes on.
    ///
    /// # Errors
    /// When this build does not know its calendar.
    pub fn replace(mut self, spec: ScheduleSpec, now: WallMillis) -> Result<Self, SpecError> {
        let why = if self.paused { PassedOver::Pause } else { PassedOver::Replacement };
        self = self.skip_to(now, why)?;
        self.spec = spec;
        self.spec_version += 1;
        Ok(self)
    }

    /// The cursor stays where it is when `now` is before it, so that a clock that was set back decides nothing twice.
    fn skip_to(mut self, now: WallMillis, why: PassedOver) -> Result<Self, SpecError> {
        let calendar = self.spec.when.calendar()?;
        if let Some(first) = calendar.next_after(self.cursor).filter(|first| *first <= now) {
            let through = calendar.last_through(now).unwrap_or(first);
            self = self.passed(Passed { why, ticks: missed(&calendar, first, through) });
        }
        self.cursor = self.cursor.max(now);
        Ok(self)
    }

    /// The next tick, if it goes on.
    #[must_use]
    pub fn next(&self, calendar: &Calendar) -> Option<WallMillis> {
        calendar.next_after(self.cursor).filter(|_| !self.paused)
    }

    /// The job of a tick.
    #[must_use]
    pub fn tick_job(&self, schedule: &ScheduleId, at: WallMillis, now: WallMillis) -> (JobId, JobRecord) {
        let id = tick_id(schedule, at);
        // The transaction that makes it moves the cursor, which tells what became of it: nobody asks for the token.
        let token = Uuid::from_u128(xxh3_128(id.as_str().as_bytes()));
        let record = self.job(schedule, token, at, now);
        (id, record)
    }

    /// The job of a trigger, which is no tick's: `token` makes its id.
    #[must_use]
    pub fn triggered_job(&self, schedule: &ScheduleId, token: Uuid, now: WallMillis) -> (JobId, JobRecord) {
        (triggered_id(schedule, token), self.job(schedule, token, now, now))
    }

    fn job(&self, schedule: &ScheduleId, token: Uuid, at: WallMillis, now: WallMillis) -> JobRecord {
        let template = &self.spec.template;
        let mut placement = template.placement.clone();
        if self.spec.overlap == Overlap::Queue {
            placement.lane = Some(lane(schedule));
        }
        JobRecord {
            policy: template.policy.clone(),
            placement,
            priority: template.priority,
            expires_at: template.expires_after.map(|after| at + after),
            ..JobRecord::new(template.kind.clone(), template.payload.clone(), token, now)
        }
    }
}

/// The id of a tick's job: `nightly@2026-11-21T02:00:00Z`. One tick has one, in whichever spec version it falls.
#[must_use]
pub fn tick_id(schedule: &ScheduleId, at: WallMillis) -> JobId {
    composed(format!("{schedule}@{}", instant::text(at)))
}

/// The tick that a job's id names.
#[must_use]
pub fn parse_tick(job: &JobId) -> Option<(ScheduleId, WallMillis)> {
    let (schedule, at) = job.as_str().split_once('@')?;
    let (schedule, at) = (ScheduleId::new(schedule).ok()?, instant::parse(at).ok()?);
    Some((schedule, at)).filter(|(schedule, at)| tick_id(schedule, *at) == *job)
}

/// The id of a triggered job. A UUID is no instant.
fn triggered_id(schedule: &ScheduleId, token: Uuid) -> JobId {
    composed(format!("{schedule}@{}", token.hyphenated()))
}

fn composed(id: String) -> JobId {
    JobId::new(id).expect("a schedule's name leaves room for what follows it, which is of the alphabet")
}

/// The lane of a schedule whose ticks wait for one another.
#[must_use]
pub fn lane(schedule: &ScheduleId) -> Lane {
    Lane::new(format!("schedule.{schedule}")).expect("a schedule's name leaves room for a prefix")
}
