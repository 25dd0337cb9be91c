//! A change of a schedule.

use clap::Args;
use serde::Deserialize;
use utoipa::ToSchema;

use super::rule::with_ticks;

with_ticks! {
    /// A change of a schedule. Values that are not given do not change; its jobs do not change either.
    #[derive(Debug, Clone, Args, Deserialize, ToSchema)]
    #[group(required = true, multiple = true)]
    #[serde(deny_unknown_fields)]
    #[schema(as = ScheduleChange)]
    pub struct ChangedSchedule {}
}
