//! The next ticks of a rule, before there is a schedule.

use std::time::SystemTime;

use clap::Args;
use serde::Deserialize;
use utoipa::IntoParams;

use super::invalid::Invalid;
use super::limit::TickLimit;
use super::rule::{no_rule, with_rule};
use super::text::{InstantText, Text};

with_rule! {
    /// A rule whose next ticks are shown.
    #[derive(Debug, Args, Deserialize, IntoParams)]
    #[serde(deny_unknown_fields)]
    #[into_params(parameter_in = Query)]
    pub struct PreviewedRule {
        /// Only ticks after this instant. Default: now.
        #[arg(long, value_name = "INSTANT")]
        after: Option<InstantText>,
        /// Maximum number of ticks, 1 to 100.
        #[arg(short = 'n', long, value_name = "N", default_value_t)]
        #[serde(default)]
        #[param(inline)]
        limit: TickLimit,
    }
}

impl PreviewedRule {
    /// Returns the next ticks of the rule.
    pub fn ticks(&self, now: SystemTime) -> Result<Vec<SystemTime>, Invalid> {
        let when = self.when()?.ok_or_else(no_rule)?;
        let ticks = when.ticks_after(self.after.map_or(now, |Text(after)| after), self.limit.checked()?);
        ticks.map_err(|error| Invalid(error.to_string()))
    }
}

/// How many ticks of a schedule are shown.
#[derive(Debug, Clone, Copy, Args, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct TickQuery {
    /// Maximum number of next and of last ticks, 1 to 100.
    #[arg(short = 'n', long, value_name = "N", default_value_t)]
    #[serde(default)]
    #[param(inline)]
    pub limit: TickLimit,
}
