//! A change of a schedule that keeps the rest of its spec.

use std::time::{Duration, SystemTime};

use bellwether_core::duration::DurationText;
use bellwether_core::instant::InstantText;
use bellwether_core::schedule as stored;
use bellwether_core::schedule::{CronExpression, DEFAULT_GRACE, ScheduleSpec, SpecError, Zone};
use serde::Deserialize;

use super::rule::{Rule, misfire, with_ticks};

with_ticks! {
    /// A change of a schedule; see [`Schedules::change`](super::Schedules::change). Values that are not given do not change; its jobs
    /// do not change either.
    #[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
    #[cfg_attr(feature = "describe", derive(clap::Args, utoipa::ToSchema), group(required = true, multiple = true), schema(description = "A change of a schedule. Values that are not given do not change; its jobs do not change either."))]
    #[serde(deny_unknown_fields)]
    pub struct ScheduleChange {}
}

impl ScheduleChange {
    /// Returns a change of nothing.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Checks what does not depend on the schedule, without sending anything.
    ///
    /// # Errors
    /// The first error.
    pub fn check(&self) -> Result<(), SpecError> {
        self.checked_rule()?;
        let misfire = match self.misfire {
            Some(_) => {
                let limits = (self.catch_up_limit, self.catch_up_within);
                misfire(stored::Misfire::default(), self.misfire, limits)?
            }
            // The limits of a schedule that catches up.
            None => stored::Misfire::CatchUp {
                limit: self.catch_up_limit.unwrap_or(1),
                within: self.catch_up_within.map_or(Duration::from_secs(1), Duration::from),
            },
        };
        ScheduleSpec::check_ticks(misfire, self.grace.map_or(DEFAULT_GRACE, Duration::from))?;
        Ok(())
    }

    /// Changes the rule.
    #[must_use]
    pub fn rule(self, rule: Rule) -> Self {
        let Rule { cron, zone, every, anchor, at } = rule;
        Self { cron, zone, every, anchor, at, ..self }
    }

    /// Changes the rule to a cron expression, in UTC unless a [zone](ScheduleChange::zone) is set.
    #[must_use]
    pub fn cron(self, expression: &str) -> Self {
        Self { cron: Some(expression.to_owned()), every: None, anchor: None, at: None, ..self }
    }

    /// Changes the rule to an interval from 1 s to 366 d, aligned to the Unix epoch unless an [anchor](ScheduleChange::anchor) is set.
    #[must_use]
    pub fn every(self, interval: Duration) -> Self {
        Self { cron: None, zone: None, every: Some(interval.into()), at: None, ..self }
    }

    /// Changes the rule to one tick, at this instant.
    #[must_use]
    pub fn at(self, at: SystemTime) -> Self {
        Self { cron: None, zone: None, every: None, anchor: None, at: Some(at.into()), ..self }
    }
}
