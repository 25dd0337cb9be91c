//! The stored record of a schedule, and its changes.
//!
//! The *cursor* is the last instant that is decided. It only grows, so no instant is decided twice, regardless of
//! clocks (S8). A change that moves it past ticks without a job records these ticks and the reason: `last_skipped`
//! has the latest such change, the counts include all.

use uuid::Uuid;
use xxhash_rust::xxh3::xxh3_128;

use serde::Serialize;

use super::{Calendar, Missed, Overlap, ScheduleSpec, SpecError, instant, missed};
use crate::change::Change;
use crate::job::JobRecord;
use crate::name::{JobId, Lane, ScheduleId};
use crate::time::WallMillis;

/// Why ticks got no job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "describe", derive(clap::ValueEnum), value(rename_all = "snake_case"))]
pub enum SkipReason {
    /// There was no leader in time, and the misfire policy creates no job for these ticks.
    Misfire,
    /// The job of the last tick was open, and the schedule forbids overlap.
    Overlap,
    /// The schedule was paused.
    Pause,
    /// A replacement of the schedule skipped them.
    Replacement,
    /// A job with the id of the tick exists: for example, of a removed schedule with the same name.
    Taken,
    /// The job with the schedule's job id was open: submitted by another tick, another schedule or a client.
    JobOpen,
    /// The job with the schedule's job id has another kind or payload.
    Conflict,
}

crate::impl_names!(SkipReason {
    Misfire = "misfire",
    Overlap = "overlap",
    Pause = "pause",
    Replacement = "replacement",
    Taken = "taken",
    JobOpen = "job_open",
    Conflict = "conflict",
});

/// Consecutive ticks that got no job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Skipped {
    /// The reason.
    pub reason: SkipReason,
    /// The ticks.
    pub ticks: Missed,
}

/// A schedule and its state.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ScheduleRecord {
    /// The specification.
    pub spec: ScheduleSpec,
    /// 1, plus one for each replacement.
    pub spec_version: u32,
    /// Whether it is paused.
    pub paused: bool,
    /// The last instant that is decided.
    pub cursor: WallMillis,
    /// When it was added, by the client's wall clock.
    pub created_at: WallMillis,
    /// How many ticks got a job.
    pub ticked: u64,
    /// How many ticks got none.
    pub skipped: u64,
    /// The last tick that got a job.
    pub last_tick: Option<WallMillis>,
    /// The last ticks that got none.
    pub last_skipped: Option<Skipped>,
    /// Who added, changed, paused or resumed it last.
    pub changed: Option<Change>,
}

impl ScheduleRecord {
    /// Creates a schedule whose first tick is the first after `now`.
    #[must_use]
    pub fn new(spec: ScheduleSpec, now: WallMillis) -> Self {
        Self {
            spec,
            spec_version: 1,
            paused: false,
            cursor: now,
            created_at: now,
            ticked: 0,
            skipped: 0,
            last_tick: None,
            last_skipped: None,
            changed: None,
        }
    }

    /// The record after a tick that gets a job, and after the skipped ticks before it.
    #[must_use]
    pub fn ticked(mut self, at: WallMillis, before: Option<Missed>) -> Self {
        debug_assert!(at > self.cursor, "the cursor only grows");
        if let Some(ticks) = before {
            self = self.skipped(Skipped { reason: SkipReason::Misfire, ticks });
        }
        self.cursor = at;
        self.ticked += 1;
        self.last_tick = Some(at);
        self
    }

    /// The record after ticks that get no job.
    #[must_use]
    pub fn skipped(mut self, skipped: Skipped) -> Self {
        debug_assert!(skipped.ticks.through > self.cursor, "the cursor only grows");
        self.cursor = skipped.ticks.through;
        self.skipped += u64::from(skipped.ticks.count);
        self.last_skipped = Some(skipped);
        self
    }

    /// The paused schedule.
    #[must_use]
    pub fn pause(mut self) -> Self {
        self.paused = true;
        self
    }

    /// The resumed schedule: the next tick is the first after `now`, and the ticks during the pause are not made up.
    ///
    /// # Errors
    /// If this build does not know its calendar.
    pub fn resume(mut self, now: WallMillis) -> Result<Self, SpecError> {
        self = self.skip_to(now, SkipReason::Pause)?;
        self.paused = false;
        Ok(self)
    }

    /// The schedule with another spec, whose first tick is the first after `now`. Earlier due ticks are not made up,
    /// and a paused schedule stays paused.
    ///
    /// # Errors
    /// If this build does not know its calendar.
    pub fn replace(mut self, spec: ScheduleSpec, now: WallMillis) -> Result<Self, SpecError> {
        let reason = if self.paused { SkipReason::Pause } else { SkipReason::Replacement };
        self = self.skip_to(now, reason)?;
        self.spec = spec;
        self.spec_version += 1;
        Ok(self)
    }

    /// If `now` is before the cursor, the cursor stays, so that no instant is decided twice after a clock was set back.
    fn skip_to(mut self, now: WallMillis, reason: SkipReason) -> Result<Self, SpecError> {
        let calendar = self.spec.when.calendar()?;
        if let Some(first) = calendar.next_after(self.cursor).filter(|first| *first <= now) {
            let through = calendar.last_through(now).unwrap_or(first);
            self = self.skipped(Skipped { reason, ticks: missed(&calendar, first, through) });
        }
        self.cursor = self.cursor.max(now);
        Ok(self)
    }

    /// The next tick, unless the schedule is paused.
    #[must_use]
    pub fn next(&self, calendar: &Calendar) -> Option<WallMillis> {
        calendar.next_after(self.cursor).filter(|_| !self.paused)
    }

    /// The job of a tick.
    #[must_use]
    pub fn tick_job(&self, schedule: &ScheduleId, at: WallMillis, now: WallMillis) -> (JobId, JobRecord) {
        // The cursor shows whether the transaction was applied, so the token is never needed after a lost reply. It
        // differs for each tick, also of schedules with the same job id.
        let token = Uuid::from_u128(xxh3_128(tick_id(schedule, at).as_str().as_bytes()));
        (self.job_of(schedule, at), self.job(schedule, token, at, now))
    }

    /// The id of the job of a tick.
    #[must_use]
    pub fn job_of(&self, schedule: &ScheduleId, at: WallMillis) -> JobId {
        self.spec.template.job_id.clone().unwrap_or_else(|| tick_id(schedule, at))
    }

    /// The job whose state decides about the next tick; `None` if no job does.
    #[must_use]
    pub fn prior_job(&self, schedule: &ScheduleId) -> Option<JobId> {
        let last = self.last_tick.filter(|_| self.spec.overlap == Overlap::Forbid);
        self.spec.template.job_id.clone().or_else(|| Some(tick_id(schedule, last?)))
    }

    /// The job of a manual trigger. Its id contains `token` and thus differs from the id of every tick.
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

/// The id of a tick's job: `nightly@2026-11-21T02:00:00Z`. A tick has the same id in every spec version.
#[must_use]
pub fn tick_id(schedule: &ScheduleId, at: WallMillis) -> JobId {
    composed(format!("{schedule}@{}", instant::text(at)))
}

/// Parses the schedule and the tick from a job's id.
#[must_use]
pub fn parse_tick(job: &JobId) -> Option<(ScheduleId, WallMillis)> {
    let (schedule, at) = job.as_str().split_once('@')?;
    let (schedule, at) = (ScheduleId::new(schedule).ok()?, instant::parse(at).ok()?);
    Some((schedule, at)).filter(|(schedule, at)| tick_id(schedule, *at) == *job)
}

/// The id of a triggered job. A UUID cannot be parsed as an instant.
fn triggered_id(schedule: &ScheduleId, token: Uuid) -> JobId {
    composed(format!("{schedule}@{}", token.hyphenated()))
}

fn composed(id: String) -> JobId {
    JobId::new(id).expect("a schedule's id leaves room for the suffix, whose characters are allowed")
}

/// The beginning of the lanes of schedules. Other jobs cannot use such a lane, or they would hold a schedule up.
pub const LANE_PREFIX: &str = "schedule.";

/// The lane of a schedule with [`Overlap::Queue`].
#[must_use]
pub fn lane(schedule: &ScheduleId) -> Lane {
    Lane::new(format!("{LANE_PREFIX}{schedule}")).expect("a schedule's id leaves room for a prefix")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::job::{Payload, Placement, Policy, Priority};
    use crate::name::Kind;
    use crate::schedule::{Misfire, Template, When};

    #[test]
    fn the_schedule_and_the_tick_are_parsed_from_the_id_of_a_tick_only() {
        let (schedule, at) = (ScheduleId::new("nightly").unwrap(), WallMillis(1_795_260_780_000));
        let job = tick_id(&schedule, at);
        assert_eq!(parse_tick(&job), Some((schedule.clone(), at)));
        let triggered = triggered_id(&schedule, Uuid::from_u128(7));
        for other in [triggered.as_str(), "nightly", "nightly@", "nightly@2026-11-21T11:33:00+00:00"] {
            let parsed = JobId::new(other).ok().and_then(|job| parse_tick(&job));
            assert_eq!(parsed, None, "{other}");
        }
    }

    #[test]
    fn another_spec_has_the_next_version_and_its_jobs_have_the_settings_of_the_template() {
        let payload = Payload::json(*b"1").unwrap();
        let template = Template {
            kind: Kind::new("sum").unwrap(),
            payload,
            policy: Policy { max_attempts: 7, ..Policy::default() },
            placement: Placement::default(),
            priority: Priority::HIGHEST,
            expires_after: Some(Duration::from_secs(60)),
            job_id: None,
        };
        let spec = ScheduleSpec {
            when: When::every(Duration::from_secs(90)).unwrap(),
            misfire: Misfire::Skip,
            grace: Duration::from_secs(60),
            overlap: Overlap::Allow,
            template,
        };
        let record = ScheduleRecord::new(spec.clone(), WallMillis(0));
        let replaced = record.clone().replace(spec.clone(), WallMillis(1)).unwrap();
        let again = replaced.clone().replace(spec, WallMillis(1)).unwrap();
        assert_eq!(
            [replaced.spec_version, again.spec_version],
            [1, 2].map(|more| record.spec_version + more)
        );
        let (_, job) =
            record.tick_job(&ScheduleId::new("nightly").unwrap(), WallMillis(90_000), WallMillis(90_001));
        assert_eq!(
            (job.policy.max_attempts, job.priority, job.expires_at, job.submitted_at),
            (7, Priority::HIGHEST, Some(WallMillis(150_000)), WallMillis(90_001))
        );
    }
}
