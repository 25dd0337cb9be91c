//! How many ticks are shown, and from when.

use std::time::SystemTime;

use bellwether::InstantText;
use bellwether::client::Rule;
use clap::Args;
use serde::Deserialize;
use utoipa::IntoParams;

use super::invalid::Invalid;
use super::limit::TickLimit;

/// Which ticks of a [`Rule`] are shown.
#[derive(Debug, Args, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct PreviewQuery {
    /// Only ticks after this instant. Default: now.
    #[arg(long, value_name = "INSTANT")]
    after: Option<InstantText>,
    /// Maximum number of ticks, 1 to 100.
    #[arg(short = 'n', long, value_name = "N", default_value_t)]
    #[serde(default)]
    #[param(inline)]
    limit: TickLimit,
}

impl PreviewQuery {
    /// Returns the next ticks of a rule.
    pub fn ticks(&self, rule: &Rule, now: SystemTime) -> Result<Vec<SystemTime>, Invalid> {
        let (after, limit) = (self.after.map_or(now, SystemTime::from), self.limit.checked()?);
        let ticks = rule.when().and_then(|when| when.ticks_after(after, limit));
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
