//! A change of a schedule that keeps the rest of its spec.

use std::time::Duration;

use bellwether_core::schedule::{Misfire, Overlap, ScheduleSpec};

use crate::schedule::When;

/// A change of a schedule; see [`Schedules::change`](super::Schedules::change). Values that are not set stay as they are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ScheduleChange {
    /// When it ticks.
    pub when: Option<When>,
    /// How missed ticks are handled.
    pub misfire: Option<Misfire>,
    /// How late a tick may be and still count as on time.
    pub grace: Option<Duration>,
    /// How a tick is handled while the job of the last tick has not ended.
    pub overlap: Option<Overlap>,
}

impl ScheduleChange {
    /// Changes when the schedule ticks.
    #[must_use]
    pub fn when(mut self, when: impl Into<Option<When>>) -> Self {
        self.when = when.into();
        self
    }

    /// Changes how missed ticks are handled.
    #[must_use]
    pub fn misfire(mut self, misfire: impl Into<Option<Misfire>>) -> Self {
        self.misfire = misfire.into();
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

    /// Returns the changed spec, unchecked.
    pub(super) fn of(&self, spec: &ScheduleSpec) -> ScheduleSpec {
        ScheduleSpec {
            when: self.when.as_ref().map_or_else(|| spec.when.clone(), When::stored),
            misfire: self.misfire.unwrap_or(spec.misfire),
            grace: self.grace.unwrap_or(spec.grace),
            overlap: self.overlap.unwrap_or(spec.overlap),
            template: spec.template.clone(),
        }
    }
}
