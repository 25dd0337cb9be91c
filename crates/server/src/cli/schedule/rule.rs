//! The rules of a schedule as options of the command line.

use std::time::Duration;

use bellwether::schedule::Misfire;
use clap::ValueEnum;

/// The library's `Misfire` as an option.
#[derive(Debug, Clone, Copy, Default, ValueEnum)]
pub(super) enum MisfireName {
    /// No missed tick gets a job.
    Skip,
    /// The last missed tick gets a job, on behalf of all of them.
    #[default]
    Once,
    /// The last missed ticks get their jobs, up to --catch-up and --catch-up-within.
    CatchUp,
}

impl MisfireName {
    /// Returns the rule. The limits apply to `catch-up` alone.
    pub(super) fn with(self, at_most: u32, within: Duration) -> Misfire {
        match self {
            Self::Skip => Misfire::Skip,
            Self::Once => Misfire::Once,
            Self::CatchUp => Misfire::CatchUp { at_most, within },
        }
    }
}
