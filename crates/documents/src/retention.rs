//! The retention, and a change of it.

use bellwether::Retention;
use bellwether::client::Setting;
use clap::Args;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{ChangedDocument, DurationText, Text};

/// How long records of ended jobs are kept.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = Retention)]
pub struct RetentionDocument {
    /// Retention of succeeded jobs.
    succeeded: DurationText,
    /// Retention of cancelled jobs.
    cancelled: DurationText,
    /// Retention of dead jobs.
    dead: DurationText,
    /// Maximum number of records of ended jobs; above it the oldest are removed first.
    records: u32,
    /// The last change of the retention; null if there was none, or if its client named no author.
    #[schema(required)]
    changed: Option<ChangedDocument>,
}

impl From<&Setting<Retention>> for RetentionDocument {
    fn from(setting: &Setting<Retention>) -> Self {
        let Retention { succeeded, cancelled, dead, records, .. } = setting.value;
        Self {
            succeeded: Text(succeeded),
            cancelled: Text(cancelled),
            dead: Text(dead),
            records,
            changed: setting.changed.as_ref().map(Into::into),
        }
    }
}

/// A change of the retention. Values that are not given do not change.
#[derive(Debug, Clone, Args, Deserialize, ToSchema)]
#[group(required = true, multiple = true)]
#[serde(deny_unknown_fields)]
pub struct RetentionChange {
    /// Retention of succeeded jobs, 1m to 3650d.
    #[arg(long, value_name = "DURATION")]
    succeeded: Option<DurationText>,
    /// Retention of cancelled jobs, 1m to 3650d.
    #[arg(long, value_name = "DURATION")]
    cancelled: Option<DurationText>,
    /// Retention of dead jobs, 1m to 3650d.
    #[arg(long, value_name = "DURATION")]
    dead: Option<DurationText>,
    /// Maximum number of records of ended jobs; above it the oldest are removed first.
    #[arg(long, value_name = "N")]
    #[schema(maximum = 20_480_000)]
    records: Option<u32>,
}

impl RetentionChange {
    /// Returns the changed retention.
    pub fn apply(&self, present: Retention) -> Retention {
        let mut changed = present;
        let times = [
            (&mut changed.succeeded, self.succeeded),
            (&mut changed.cancelled, self.cancelled),
            (&mut changed.dead, self.dead),
        ];
        for (time, given) in times {
            *time = given.map_or(*time, |Text(given)| given);
        }
        changed.records = self.records.unwrap_or(changed.records);
        changed
    }
}
