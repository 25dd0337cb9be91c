//! The retention.

use bellwether::{DurationText, Retention};
use serde::Serialize;
use utoipa::ToSchema;

use super::DurationSchema;

/// How long records of ended jobs are kept.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = Retention)]
pub(crate) struct RetentionDocument {
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
}

impl From<Retention> for RetentionDocument {
    fn from(Retention { succeeded, cancelled, dead, records }: Retention) -> Self {
        Self {
            succeeded: DurationText(succeeded),
            cancelled: DurationText(cancelled),
            dead: DurationText(dead),
            records,
        }
    }
}
