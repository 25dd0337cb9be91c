//! `schedule change`.

use std::time::{Duration, SystemTime};

use bellwether::client::ScheduleChange;
use bellwether::schedule::When;
use bellwether::{DurationText, ScheduleId};
use clap::{ArgGroup, Args};

use super::super::exit::Failure;
use super::super::input;
use super::rule::MisfireName;
use bellwether_documents::{InstantText, OverlapName, Rule};

/// The options of which at least one is given.
const CHANGES: [&str; 6] = ["cron", "every", "at", "misfire", "grace", "overlap"];

#[derive(Debug, Args)]
#[command(group(ArgGroup::new("changes").args(CHANGES).required(true).multiple(true)))]
pub(crate) struct Change {
    /// Name of the schedule.
    pub(super) schedule: ScheduleId,
    /// Tick at the times of a cron expression with 5 fields, or with 6 fields of which the first is the second.
    #[arg(long, value_name = "EXPRESSION", conflicts_with_all = ["every", "at"])]
    cron: Option<String>,
    /// IANA zone of the cron expression, such as Europe/Berlin [default: UTC].
    #[arg(long, requires = "cron")]
    zone: Option<String>,
    /// Tick at this interval, 1s to 366d.
    #[arg(long, value_parser = input::duration, value_name = "DURATION", conflicts_with = "at")]
    every: Option<Duration>,
    /// Instant at which the interval starts [default: 1970-01-01T00:00:00Z].
    #[arg(long, value_parser = input::instant, value_name = "INSTANT", requires = "every")]
    anchor: Option<SystemTime>,
    /// Tick once, at this instant.
    #[arg(long, value_parser = input::instant, value_name = "INSTANT")]
    at: Option<SystemTime>,
    /// What to do with ticks that were missed because there was no leader.
    #[arg(long, value_enum)]
    misfire: Option<MisfireName>,
    /// With --misfire catch-up: maximum number of missed ticks to catch up with, 1 to 100.
    #[arg(long, default_value_t = 10, value_name = "N", requires = "misfire")]
    catch_up: u32,
    /// With --misfire catch-up: maximum age of missed ticks to catch up with, 1s to 366d.
    #[arg(long, default_value = "1d", value_parser = input::duration, value_name = "DURATION", requires = "misfire")]
    catch_up_within: Duration,
    /// How late a tick may be without being missed, 1s to 7d.
    #[arg(long, value_parser = input::duration, value_name = "DURATION")]
    grace: Option<Duration>,
    /// What to do with a tick while the job of the last tick has not ended.
    #[arg(long, value_enum)]
    overlap: Option<OverlapName>,
}

impl Change {
    /// Returns the change. The schedule that results from it is not checked yet.
    pub(super) fn change(&self) -> Result<ScheduleChange, Failure> {
        let rule = Rule {
            cron: self.cron.clone(),
            zone: self.zone.clone(),
            every: self.every.map(DurationText),
            anchor: self.anchor.map(InstantText),
            at: self.at.map(InstantText),
        };
        let when: Option<When> = rule.when().map_err(Failure::usage)?;
        let misfire = self.misfire.map(|name| name.with(self.catch_up, self.catch_up_within));
        let overlap = self.overlap.map(Into::into);
        Ok(ScheduleChange::default().when(when).misfire(misfire).grace(self.grace).overlap(overlap))
    }
}
