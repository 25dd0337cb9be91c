//! `schedule change`.

use bellwether::ScheduleId;
use bellwether::client::ScheduleChange;
use clap::{ArgGroup, Args};

use super::super::exit::Failure;
use super::rule::{Handling, Times};

/// The options of which at least one is given.
const CHANGES: [&str; 6] = ["cron", "every", "at", "misfire", "grace", "overlap"];

#[derive(Debug, Args)]
#[command(group(ArgGroup::new("changes").args(CHANGES).required(true).multiple(true)))]
pub(crate) struct Change {
    /// Name of the schedule.
    pub(super) schedule: ScheduleId,
    #[command(flatten)]
    times: Times,
    #[command(flatten)]
    handling: Handling,
}

impl Change {
    /// Returns the change. The schedule that results from it is not checked yet.
    pub(super) fn change(&self) -> Result<ScheduleChange, Failure> {
        let Handling { grace, overlap, .. } = self.handling;
        let change = ScheduleChange::default().when(self.times.when()?).misfire(self.handling.misfire());
        Ok(change.grace(grace).overlap(overlap))
    }
}
