//! The specification of a schedule.

use std::time::Duration;

use serde::Serialize;

use super::{MAX_CATCH_UP, Misfire, SpecError, When};
use crate::budget::{MAX_SCHEDULE_PAYLOAD_BYTES, MAX_TAGS, MAX_WAIT};
use crate::duration::DurationText;
use crate::job::{Payload, Placement, Policy, Priority};
use crate::name::{JobId, Kind};

/// The default grace: how late a tick may be and still count as on time. Longer than a change of leader takes with the
/// longest usual session timeout.
pub const DEFAULT_GRACE: Duration = Duration::from_secs(60);

/// The longest time after a tick in which its job may expire or be caught up: a leap year.
const MAX_AFTER: Duration = Duration::from_secs(366 * 24 * 3600);

/// What happens to a tick while the job of the last tick is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "describe", derive(clap::ValueEnum), value(rename_all = "snake_case"))]
pub enum Overlap {
    /// The tick gets its job.
    #[default]
    Allow,
    /// The tick is skipped.
    Forbid,
    /// The tick gets its job, which waits for the other jobs in a lane.
    Queue,
}

crate::impl_deserialize_by_name!(Overlap);

crate::impl_names!(Overlap { Allow = "allow", Forbid = "forbid", Queue = "queue" });

/// The job that each tick submits.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Template {
    /// The kind: the name of the handler that runs the job.
    pub kind: Kind,
    /// The input of the handler.
    pub payload: Payload,
    /// The limits on attempts, waits and run time.
    pub policy: Policy,
    /// Where it may run.
    pub placement: Placement,
    /// How urgent it is.
    pub priority: Priority,
    /// How long after its tick the job may start.
    pub expires_after: Option<Duration>,
    /// The id of the job of every tick; `None`: each tick has a job with its own id. A tick opens the job again once it has
    /// ended, and is skipped while it is open.
    pub job_id: Option<JobId>,
}

/// A schedule: when it ticks, what a tick submits, and what happens to late or overlapping ticks.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ScheduleSpec {
    /// When it ticks.
    pub when: When,
    /// What happens to missed ticks.
    pub misfire: Misfire,
    /// How late a tick may be and still count as on time.
    pub grace: Duration,
    /// What happens to a tick while the job of the last tick is open.
    pub overlap: Overlap,
    /// The job that a tick submits.
    pub template: Template,
}

impl ScheduleSpec {
    /// Checks every bound.
    ///
    /// # Errors
    /// The first violated bound.
    pub fn check(&self) -> Result<(), SpecError> {
        self.check_without_payload()?;
        self.template.check_payload()
    }

    /// Checks every bound but the size of the payload, which a codec has not encoded yet.
    ///
    /// # Errors
    /// The first violated bound.
    pub fn check_without_payload(&self) -> Result<(), SpecError> {
        self.when.check()?;
        Self::check_ticks(self.misfire, self.grace)?;
        self.template.check(self.overlap)
    }

    /// Checks the bounds of how late ticks are handled.
    ///
    /// # Errors
    /// The first violated bound.
    pub fn check_ticks(misfire: Misfire, grace: Duration) -> Result<(), SpecError> {
        let second = Duration::from_secs(1);
        wait("grace", grace, second, MAX_WAIT)?;
        if let Misfire::CatchUp { limit, within } = misfire {
            if !(1..=MAX_CATCH_UP).contains(&limit) {
                return Err(SpecError::Bound {
                    field: "catch_up_limit",
                    allowed: format!("1 to {MAX_CATCH_UP}"),
                    given: limit.to_string(),
                });
            }
            wait("catch_up_within", within, second, MAX_AFTER)?;
        }
        Ok(())
    }
}

impl Template {
    fn check_payload(&self) -> Result<(), SpecError> {
        let payload = self.payload.bytes().len();
        if payload > MAX_SCHEDULE_PAYLOAD_BYTES {
            return Err(SpecError::Bound {
                field: "a schedule's payload",
                allowed: format!(
                    "at most {MAX_SCHEDULE_PAYLOAD_BYTES} bytes, because the leader keeps it in memory"
                ),
                given: format!("{payload} bytes"),
            });
        }
        Ok(())
    }

    fn check(&self, overlap: Overlap) -> Result<(), SpecError> {
        let tags = self.placement.tags.len();
        if tags > MAX_TAGS {
            let allowed = format!("at most {MAX_TAGS}");
            return Err(SpecError::Bound { field: "tags", allowed, given: tags.to_string() });
        }
        if let (Overlap::Queue, Some(lane)) = (overlap, &self.placement.lane) {
            return Err(SpecError::Lane(lane.clone()));
        }
        if let (Overlap::Queue, Some(job)) = (overlap, &self.job_id) {
            return Err(SpecError::JobId(job.clone()));
        }
        if let Some(after) = self.expires_after {
            wait("expires_after", after, Duration::from_secs(1), MAX_AFTER)?;
        }
        Ok(self.policy.check()?)
    }
}

fn wait(field: &'static str, given: Duration, least: Duration, most: Duration) -> Result<(), SpecError> {
    let given = DurationText(given);
    given.within(least, most).map_err(|allowed| SpecError::Bound { field, allowed, given: given.to_string() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::name::Tag;
    use crate::time::WallMillis;

    /// A schedule whose job has a payload of so many bytes and so many tags.
    fn spec(payload: usize, tags: usize) -> ScheduleSpec {
        ScheduleSpec {
            when: When::Every { interval: Duration::from_secs(60), anchor: WallMillis(0) },
            misfire: Misfire::default(),
            grace: DEFAULT_GRACE,
            overlap: Overlap::Allow,
            template: Template {
                kind: Kind::new("sum").unwrap(),
                payload: Payload::json(format!("{payload:payload$}").into_bytes()).unwrap(),
                policy: Policy::default(),
                placement: Placement {
                    tags: (0..tags).map(|tag| Tag::new(format!("t{tag}")).unwrap()).collect(),
                    ..Placement::default()
                },
                priority: Priority::default(),
                expires_after: None,
                job_id: None,
            },
        }
    }

    #[test]
    fn ticks_with_one_job_id_cannot_queue() {
        let mut spec = spec(1, 0);
        spec.template.job_id = Some(JobId::new("reindex").unwrap());
        assert_eq!(spec.check(), Ok(()));
        spec.overlap = Overlap::Queue;
        assert!(matches!(spec.check(), Err(SpecError::JobId(_))));
    }

    #[test]
    fn a_template_at_its_bounds_is_accepted() {
        assert_eq!(spec(MAX_SCHEDULE_PAYLOAD_BYTES, MAX_TAGS).check(), Ok(()));
        let over = |spec: ScheduleSpec| match spec.check() {
            Err(SpecError::Bound { field, .. }) => field,
            other => panic!("{other:?}"),
        };
        assert_eq!(over(spec(MAX_SCHEDULE_PAYLOAD_BYTES + 1, 0)), "a schedule's payload");
        assert_eq!(over(spec(1, MAX_TAGS + 1)), "tags");
        let with = |time| {
            let mut spec = spec(1, 0);
            spec.misfire = Misfire::CatchUp { limit: 1, within: time };
            spec.template.expires_after = Some(time);
            spec
        };
        let year = Duration::from_secs(366 * 86_400);
        assert_eq!(with(year).check(), Ok(()));
        let late = with(year + Duration::from_millis(1));
        assert_eq!(over(late.clone()), "catch_up_within");
        assert_eq!(over(ScheduleSpec { misfire: Misfire::Skip, ..late }), "expires_after");
    }
}
