//! A group to create.

use bellwether::Group;
use clap::Args;
use serde::Deserialize;
use utoipa::ToSchema;

use super::text::{KindText, NameText};

/// A group to create.
#[derive(Debug, Clone, Args, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewGroup {
    /// Kind of the members.
    #[schema(value_type = KindText)]
    kind: String,
    /// Id of the group.
    #[arg(value_name = "GROUP")]
    #[schema(value_type = NameText)]
    id: String,
    /// Number of members, at most 1,000,000. It may be set later by creating the group again, and cannot be changed.
    #[arg(long, value_name = "N")]
    #[schema(maximum = 1_000_000)]
    total: Option<u32>,
    /// Whether the first member that ends without success ends the group.
    #[arg(long)]
    #[serde(default)]
    fail_fast: bool,
    /// Whether the join runs once the members have ended. Default: true.
    #[arg(long, value_name = "BOOL")]
    join: Option<bool>,
}

impl NewGroup {
    /// Returns the group, unchecked: [`Client::group`](bellwether::Client::group) checks its kind, id and total.
    pub fn into_group(self) -> Group {
        let group = Group::new(&self.kind, &self.id);
        let group = group.fail_fast(self.fail_fast).join(self.join.unwrap_or(true));
        match self.total {
            Some(total) => group.total(total),
            None => group,
        }
    }
}
