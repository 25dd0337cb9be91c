//! The next ticks of a rule, before there is a schedule.

use std::time::SystemTime;

use clap::Args;
use serde::Deserialize;
use utoipa::IntoParams;

use super::invalid::Invalid;
use super::rule::{no_rule, with_rule};
use super::text::{InstantText, Text};

/// Most ticks of an answer. Each costs a search in the calendar, and each last tick a read of its job.
const MAX_TICKS: usize = 100;

/// Ticks of an answer without a number.
const DEFAULT_TICKS: usize = 5;

with_rule! {
    /// A rule whose next ticks are shown.
    #[derive(Debug, Args, Deserialize, IntoParams)]
    #[serde(deny_unknown_fields)]
    #[into_params(parameter_in = Query)]
    pub struct PreviewedRule {
        /// Only ticks after this instant. Default: now.
        #[arg(
            long,
            value_name = "INSTANT",
            help = "Only ticks after this instant. Default: now, or the cursor of the existing schedule"
        )]
        after: Option<InstantText>,
        /// Maximum number of ticks, 1 to 100. Default: 5.
        #[arg(short = 'n', long, value_name = "N")]
        #[param(minimum = 1, maximum = 100)]
        count: Option<usize>,
    }
}

impl PreviewedRule {
    /// Returns the instant after which ticks are shown.
    pub fn after(&self) -> Option<SystemTime> {
        self.after.map(|Text(after)| after)
    }

    /// Returns the number of ticks.
    pub fn count(&self) -> Result<usize, Invalid> {
        tick_count(self.count)
    }

    /// Returns the next ticks of the rule.
    pub fn ticks(&self, now: SystemTime) -> Result<Vec<SystemTime>, Invalid> {
        let when = self.when()?.ok_or_else(no_rule)?;
        let ticks = when.ticks_after(self.after().unwrap_or(now), self.count()?);
        ticks.map_err(|error| Invalid(error.to_string()))
    }
}

/// How many ticks of a schedule are shown.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct TickQuery {
    /// Maximum number of next and of last ticks, 1 to 100. Default: 5.
    #[param(minimum = 1, maximum = 100)]
    count: Option<usize>,
}

impl TickQuery {
    /// Returns the number of ticks.
    pub fn count(&self) -> Result<usize, Invalid> {
        tick_count(self.count)
    }
}

fn tick_count(count: Option<usize>) -> Result<usize, Invalid> {
    let count = count.unwrap_or(DEFAULT_TICKS);
    if (1..=MAX_TICKS).contains(&count) {
        Ok(count)
    } else {
        Err(Invalid(format!("count must be 1 to {MAX_TICKS}, not {count}")))
    }
}
