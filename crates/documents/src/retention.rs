//! The retention.

use bellwether::client::Setting;
use bellwether::{DurationText, Retention};
use serde::Serialize;
use utoipa::ToSchema;

use super::ChangedDocument;

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
            succeeded: DurationText(succeeded),
            cancelled: DurationText(cancelled),
            dead: DurationText(dead),
            records,
            changed: setting.changed.as_ref().map(Into::into),
        }
    }
}
