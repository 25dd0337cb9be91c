//! Which part of a list is shown: query parameters over HTTP, and options on the command line.
//!
//! The command line reads as many pages as it needs, so it has no option for the start of a page.

use bellwether::client::{Filter, GroupStage};
use clap::Args;
use serde::Deserialize;
use utoipa::IntoParams;

use super::limit::PageLimit;
use super::text::{GroupIdText, InstantText, KindText, LaneText, Text};
use super::word::{GroupStageWord, StateWord, Word};

/// Page of a list.
#[derive(Debug, Clone, Args, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct PageQuery {
    /// Maximum number of items.
    #[arg(long, value_name = "N", default_value_t)]
    #[serde(default)]
    #[param(inline)]
    pub limit: PageLimit,
    /// The `next` of the previous page, unchanged.
    #[arg(skip)]
    pub after: Option<String>,
}

/// Filter for jobs, and page of the list.
#[derive(Debug, Clone, Args, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct JobQuery {
    /// Only jobs in this state.
    #[arg(long)]
    #[param(inline)]
    state: Option<StateWord>,
    /// Only jobs of this kind.
    #[arg(long)]
    #[param(inline)]
    kind: Option<KindText>,
    /// Only jobs of this lane.
    #[arg(long)]
    #[param(inline)]
    lane: Option<LaneText>,
    /// Only jobs of this group: its members, its join and its finished job.
    #[arg(long)]
    #[param(inline)]
    group: Option<GroupIdText>,
    /// Only jobs that were submitted at or after this instant.
    #[arg(long, value_name = "INSTANT")]
    submitted_after: Option<InstantText>,
    /// Only jobs that were submitted before this instant.
    #[arg(long, value_name = "INSTANT")]
    submitted_before: Option<InstantText>,
    /// Only jobs that ended at or after this instant.
    #[arg(long, value_name = "INSTANT")]
    finished_after: Option<InstantText>,
    /// Only jobs that ended before this instant.
    #[arg(long, value_name = "INSTANT")]
    finished_before: Option<InstantText>,
    /// Maximum number of jobs.
    #[arg(long, value_name = "N", default_value_t)]
    #[serde(default)]
    #[param(inline)]
    pub limit: PageLimit,
    /// The `next` of the previous page, unchanged, with the same filter.
    #[arg(skip)]
    pub after: Option<String>,
    /// Whether the JSON has the payloads and results of the jobs. Otherwise both are null; a single job always has them.
    #[arg(long)]
    #[serde(default)]
    pub payloads: bool,
}

impl JobQuery {
    /// Returns the filter.
    pub fn filter(&self) -> Filter {
        let instant = |given: Option<InstantText>| given.map(|Text(at)| at);
        Filter::default()
            .state(self.state.map(|Word(state)| state))
            .kind(self.kind.clone().map(|Text(kind)| kind))
            .lane(self.lane.clone().map(|Text(lane)| lane))
            .group(self.group.clone().map(|Text(group)| group))
            .submitted_after(instant(self.submitted_after))
            .submitted_before(instant(self.submitted_before))
            .finished_after(instant(self.finished_after))
            .finished_before(instant(self.finished_before))
    }
}

/// Filter for groups, and page of the list.
#[derive(Debug, Clone, Args, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct GroupQuery {
    /// Only groups in this stage.
    #[arg(long)]
    #[param(inline)]
    stage: Option<GroupStageWord>,
    /// Maximum number of groups.
    #[arg(long, value_name = "N", default_value_t)]
    #[serde(default)]
    #[param(inline)]
    pub limit: PageLimit,
    /// The `next` of the previous page, unchanged, with the same filter.
    #[arg(skip)]
    pub after: Option<String>,
}

impl GroupQuery {
    /// Returns the stage of the groups.
    pub fn stage(&self) -> Option<GroupStage> {
        self.stage.map(|Word(stage)| stage)
    }
}

/// Page of the members of a group.
#[derive(Debug, Clone, Args, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct MemberQuery {
    /// Number of the first member. Default: 0.
    #[arg(long, default_value_t = 0, hide_default_value = true, value_name = "N")]
    #[serde(default)]
    pub first: u32,
    /// Maximum number of members.
    #[arg(long, value_name = "N", default_value_t)]
    #[serde(default)]
    #[param(inline)]
    pub limit: PageLimit,
    /// Whether the JSON has the payloads and results of the jobs. Otherwise both are null; a single job always has them.
    #[arg(long)]
    #[serde(default)]
    pub payloads: bool,
}
