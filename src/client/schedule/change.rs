//! A change of a schedule that keeps the rest of its spec.

use std::time::{Duration, SystemTime};

use bellwether_core::schedule::{Misfire, Overlap, ScheduleSpec, SpecError};

use crate::schedule::When;

/// A change of a schedule; see [`Schedules::change`](super::Schedules::change). Values that are not set stay as they are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ScheduleChange {
    /// When it ticks.
    pub when: Option<When>,
    /// How missed ticks are handled.
    pub misfire: Option<Misfire>,
    /// How many missed ticks get a job, if the policy is [`Misfire::CatchUp`].
    pub catch_up_limit: Option<u32>,
    /// How old these may be.
    pub catch_up_within: Option<Duration>,
    /// How late a tick may be and still count as on time.
    pub grace: Option<Duration>,
    /// How a tick is handled while the job of the last tick has not ended.
    pub overlap: Option<Overlap>,
    /// The first error of a setter.
    pub(super) refused: Option<SpecError>,
}

impl ScheduleChange {
    /// Changes when the schedule ticks.
    #[must_use]
    pub fn when(mut self, when: impl Into<Option<When>>) -> Self {
        self.when = when.into();
        self
    }

    /// Changes the rule to a cron expression in an IANA time zone. [`Schedules::change`](super::Schedules::change) reports an
    /// invalid one.
    #[must_use]
    pub fn cron(self, expression: &str, zone: &str) -> Self {
        self.rule(When::cron(expression, zone))
    }

    /// Changes the rule to an interval from 1 s to 366 d, anchored at the Unix epoch.
    #[must_use]
    pub fn every(self, interval: Duration) -> Self {
        self.rule(When::every(interval))
    }

    /// Changes the rule to one tick, at this instant.
    #[must_use]
    pub fn at(self, at: SystemTime) -> Self {
        self.rule(Ok(When::At(at)))
    }

    fn rule(mut self, when: Result<When, SpecError>) -> Self {
        match when {
            Ok(when) => self.when = Some(when),
            Err(error) => {
                self.refused.get_or_insert(error);
            }
        }
        self
    }

    /// Changes how missed ticks are handled.
    #[must_use]
    pub fn misfire(mut self, misfire: impl Into<Option<Misfire>>) -> Self {
        self.misfire = misfire.into();
        self
    }

    /// Changes how many missed ticks get a job: 1 to 100. An error for another policy than [`Misfire::CatchUp`].
    #[must_use]
    pub fn catch_up_limit(mut self, limit: impl Into<Option<u32>>) -> Self {
        self.catch_up_limit = limit.into();
        self
    }

    /// Changes how old missed ticks that get a job may be: 1 s to 366 d. An error for another policy than
    /// [`Misfire::CatchUp`].
    #[must_use]
    pub fn catch_up_within(mut self, within: impl Into<Option<Duration>>) -> Self {
        self.catch_up_within = within.into();
        self
    }

    /// Changes how late a tick may be and still count as on time.
    #[must_use]
    pub fn grace(mut self, grace: impl Into<Option<Duration>>) -> Self {
        self.grace = grace.into();
        self
    }

    /// Changes how a tick is handled while the job of the last tick has not ended.
    #[must_use]
    pub fn overlap(mut self, overlap: impl Into<Option<Overlap>>) -> Self {
        self.overlap = overlap.into();
        self
    }

    /// Returns the changed spec. Its bounds are not checked.
    pub(super) fn of(&self, spec: &ScheduleSpec) -> Result<ScheduleSpec, SpecError> {
        if let Some(refused) = &self.refused {
            return Err(refused.clone());
        }
        Ok(ScheduleSpec {
            when: self.when.as_ref().map_or_else(|| spec.when.clone(), When::stored),
            misfire: self.policy(self.misfire.unwrap_or(spec.misfire))?,
            grace: self.grace.unwrap_or(spec.grace),
            overlap: self.overlap.unwrap_or(spec.overlap),
            template: spec.template.clone(),
        })
    }

    /// Returns the policy with the changed limits.
    fn policy(&self, policy: Misfire) -> Result<Misfire, SpecError> {
        let given = match policy {
            Misfire::CatchUp { limit, within } => {
                let limit = self.catch_up_limit.unwrap_or(limit);
                return Ok(Misfire::CatchUp { limit, within: self.catch_up_within.unwrap_or(within) });
            }
            Misfire::Skip => "skip",
            Misfire::Once => "once",
        };
        if self.catch_up_limit.is_none() && self.catch_up_within.is_none() {
            return Ok(policy);
        }
        let allowed = "catch_up if its limits are changed".to_owned();
        Err(SpecError::Bound { field: "misfire", allowed, given: given.to_owned() })
    }
}
