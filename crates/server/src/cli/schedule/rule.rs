//! When a schedule ticks, and how it handles missed and overlapping ticks, as options of the command line.

use std::time::{Duration, SystemTime};

use bellwether::DurationText;
use bellwether::schedule::{Misfire, Overlap, When};
use bellwether_documents::{InstantText, Rule, word};
use clap::{Args, ValueEnum};

use super::super::exit::Failure;
use super::super::input;

/// When a schedule ticks. The command requires one of these options, or one of these and of the [others](Handling).
#[derive(Debug, Args)]
pub(super) struct Times {
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
}

impl Times {
    /// Returns `None` if no time is given.
    pub(super) fn when(&self) -> Result<Option<When>, Failure> {
        let rule = Rule {
            cron: self.cron.clone(),
            zone: self.zone.clone(),
            every: self.every.map(DurationText),
            anchor: self.anchor.map(InstantText),
            at: self.at.map(InstantText),
        };
        rule.when().map_err(Failure::usage)
    }
}

/// How missed and overlapping ticks are handled.
#[derive(Debug, Args)]
pub(super) struct Handling {
    /// What to do with ticks that were missed because there was no leader [default for a new schedule: once].
    #[arg(long, value_enum)]
    misfire: Option<MisfireName>,
    /// With --misfire catch-up: maximum number of missed ticks to catch up with, 1 to 100.
    #[arg(long, default_value_t = 10, value_name = "N", requires = "misfire")]
    catch_up: u32,
    /// With --misfire catch-up: maximum age of missed ticks to catch up with, 1s to 366d.
    #[arg(long, default_value = "1d", value_parser = input::duration, value_name = "DURATION", requires = "misfire")]
    catch_up_within: Duration,
    /// How late a tick may be without being missed, 1s to 7d [default for a new schedule: 1m].
    #[arg(long, value_parser = input::duration, value_name = "DURATION")]
    pub(super) grace: Option<Duration>,
    /// What to do with a tick while the job of the last tick has not ended [default for a new schedule: allow].
    #[arg(long, value_parser = word::<Overlap>())]
    pub(super) overlap: Option<Overlap>,
}

impl Handling {
    /// Returns the policy for missed ticks. The limits apply to `catch-up` alone.
    pub(super) fn misfire(&self) -> Option<Misfire> {
        Some(match self.misfire? {
            MisfireName::Skip => Misfire::Skip,
            MisfireName::Once => Misfire::Once,
            MisfireName::CatchUp => Misfire::CatchUp { at_most: self.catch_up, within: self.catch_up_within },
        })
    }
}

/// The library's `Misfire` as an option.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum MisfireName {
    /// No missed tick gets a job.
    Skip,
    /// The last missed tick gets a job, on behalf of all of them.
    Once,
    /// The last missed ticks get their jobs, up to --catch-up and --catch-up-within.
    CatchUp,
}
