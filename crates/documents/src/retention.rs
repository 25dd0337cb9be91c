//! The retention, and a change of it.

use bellwether::client::Setting;
use bellwether::{DurationText, Retention};
use clap::Args;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{ChangedDocument, DurationSchema};

/// How long records of ended jobs are kept.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = Retention)]
pub struct RetentionDocument {
    /// Retention of succeeded jobs.
    #[schema(value_type = DurationSchema)]
    succeeded: DurationText,
    /// Retention of cancelled jobs.
    #[schema(value_type = DurationSchema)]
    cancelled: DurationText,
    /// Retention of dead jobs.
    #[schema(value_type = DurationSchema)]
    dead: DurationText,
    /// Maximum number of records of ended jobs; above it the oldest are removed first.
    records: u32,
    /// The last change of the retention; null if there was none, or if its client named no author.
    #[schema(required)]
    changed: Option<ChangedDocument>,
}

impl From<&Setting<Retention>> for RetentionDocument {
    fn from(setting: &Setting<Retention>) -> Self {
        let Retention { succeeded, cancelled, dead, records } = setting.value;
        Self {
            succeeded: DurationText(succeeded),
            cancelled: DurationText(cancelled),
            dead: DurationText(dead),
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
    #[schema(value_type = Option<DurationSchema>)]
    succeeded: Option<DurationText>,
    /// Retention of cancelled jobs, 1m to 3650d.
    #[arg(long, value_name = "DURATION")]
    #[schema(value_type = Option<DurationSchema>)]
    cancelled: Option<DurationText>,
    /// Retention of dead jobs, 1m to 3650d.
    #[arg(long, value_name = "DURATION")]
    #[schema(value_type = Option<DurationSchema>)]
    dead: Option<DurationText>,
    /// Maximum number of records of ended jobs; above it the oldest are removed first.
    #[arg(long)]
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
            *time = given.map_or(*time, |DurationText(given)| given);
        }
        changed.records = self.records.unwrap_or(changed.records);
        changed
    }
}
