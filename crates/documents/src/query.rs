//! Which part of a list is shown: query parameters over HTTP, and options on the command line.
//!
//! The command line reads as many pages as it needs, so it has no option for the start of a page.

use bellwether::client::GroupStage;
use clap::Args;
use serde::Deserialize;
use utoipa::IntoParams;

use super::limit::PageLimit;

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

/// Page of the jobs that a [`Filter`](bellwether::client::Filter) selects.
#[derive(Debug, Clone, Args, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct JobPageQuery {
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

/// Filter for groups, and page of the list.
#[derive(Debug, Clone, Args, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct GroupQuery {
    /// Only groups in this stage.
    #[arg(long)]
    #[param(inline)]
    pub stage: Option<GroupStage>,
    /// Maximum number of groups.
    #[arg(long, value_name = "N", default_value_t)]
    #[serde(default)]
    #[param(inline)]
    pub limit: PageLimit,
    /// The `next` of the previous page, unchanged, with the same filter.
    #[arg(skip)]
    pub after: Option<String>,
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
