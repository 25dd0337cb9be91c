//! Which jobs a list has.

use std::time::SystemTime;

use bellwether_core::instant::InstantText;
use bellwether_core::name::{GroupId, Kind, Lane};
use serde::Deserialize;

use crate::client::view::{JobView, State};

/// Selects the jobs to list. Default: all.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "describe", derive(clap::Args, utoipa::IntoParams), into_params(parameter_in = Query))]
#[serde(deny_unknown_fields)]
#[must_use]
pub struct Filter {
    /// Only jobs in this state.
    #[cfg_attr(feature = "describe", arg(long), param(inline))]
    pub(super) state: Option<State>,
    /// Only jobs of this kind. A job whose record cannot be read has none.
    #[cfg_attr(feature = "describe", arg(long), param(inline))]
    pub(super) kind: Option<Kind>,
    /// Only jobs of this lane.
    #[cfg_attr(feature = "describe", arg(long), param(inline))]
    pub(super) lane: Option<Lane>,
    /// Only jobs of this group: its members, its join and its finished job.
    #[cfg_attr(feature = "describe", arg(long), param(inline))]
    pub(super) group: Option<GroupId>,
    /// Only jobs that were submitted at or after this instant, by the submitter's clock.
    #[cfg_attr(feature = "describe", arg(long, value_name = "INSTANT"))]
    pub(super) submitted_after: Option<InstantText>,
    /// Only jobs that were submitted before this instant, by the submitter's clock.
    #[cfg_attr(feature = "describe", arg(long, value_name = "INSTANT"))]
    pub(super) submitted_before: Option<InstantText>,
    /// Only jobs that ended at or after this instant.
    #[cfg_attr(feature = "describe", arg(long, value_name = "INSTANT"))]
    pub(super) finished_after: Option<InstantText>,
    /// Only jobs that ended before this instant.
    #[cfg_attr(feature = "describe", arg(long, value_name = "INSTANT"))]
    pub(super) finished_before: Option<InstantText>,
}

/// Whether an instant is known, not before `after`, and before `before`. Without bounds it need not be known.
fn is_within(at: Option<SystemTime>, after: Option<InstantText>, before: Option<InstantText>) -> bool {
    after.is_none_or(|InstantText(after)| at.is_some_and(|at| at >= after))
        && before.is_none_or(|InstantText(before)| at.is_some_and(|at| at < before))
}

impl Filter {
    /// Selects only jobs in this state.
    pub fn state(mut self, state: impl Into<Option<State>>) -> Self {
        self.state = state.into();
        self
    }

    /// Selects only jobs of this kind.
    pub fn kind(mut self, kind: impl Into<Option<Kind>>) -> Self {
        self.kind = kind.into();
        self
    }

    /// Selects only jobs of this lane. All jobs are read, because lanes list only waiting jobs.
    pub fn lane(mut self, lane: impl Into<Option<Lane>>) -> Self {
        self.lane = lane.into();
        self
    }

    /// Selects only jobs of this group. All jobs are read.
    pub fn group(mut self, group: impl Into<Option<GroupId>>) -> Self {
        self.group = group.into();
        self
    }

    /// Selects only jobs that were submitted at or after an instant. All jobs of the state are read.
    pub fn submitted_after(mut self, at: impl Into<Option<SystemTime>>) -> Self {
        self.submitted_after = at.into().map(InstantText);
        self
    }

    /// Selects only jobs that were submitted before an instant. All jobs of the state are read.
    pub fn submitted_before(mut self, at: impl Into<Option<SystemTime>>) -> Self {
        self.submitted_before = at.into().map(InstantText);
        self
    }

    /// Selects only jobs that ended at or after an instant. All jobs are read.
    pub fn finished_after(mut self, at: impl Into<Option<SystemTime>>) -> Self {
        self.finished_after = at.into().map(InstantText);
        self
    }

    /// Selects only jobs that ended before an instant. All jobs are read.
    pub fn finished_before(mut self, at: impl Into<Option<SystemTime>>) -> Self {
        self.finished_before = at.into().map(InstantText);
        self
    }

    /// Whether it selects a job.
    pub(super) fn lets(&self, view: &JobView) -> bool {
        self.state.is_none_or(|state| view.state == state)
            && (self.kind.is_none() || view.kind == self.kind)
            && (self.lane.is_none() || view.lane == self.lane)
            && (self.group.is_none() || view.group == self.group)
            && is_within(view.submitted_at, self.submitted_after, self.submitted_before)
            && is_within(view.finished_at, self.finished_after, self.finished_before)
    }
}

#[cfg(test)]
mod tests;
