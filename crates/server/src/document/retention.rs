//! The retention.

use bellwether::Retention;
use serde::Serialize;
use utoipa::ToSchema;

use super::millis;

/// How long records of ended jobs are kept.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = Retention)]
pub(crate) struct RetentionDocument {
    /// Retention of succeeded jobs, in milliseconds.
    succeeded_ms: u64,
    /// Retention of cancelled jobs, in milliseconds.
    cancelled_ms: u64,
    /// Retention of dead jobs, in milliseconds.
    dead_ms: u64,
    /// Maximum number of records of ended jobs; above it the oldest are removed first.
    records: u32,
}

impl From<Retention> for RetentionDocument {
    fn from(Retention { succeeded, cancelled, dead, records }: Retention) -> Self {
        Self {
            succeeded_ms: millis(succeeded),
            cancelled_ms: millis(cancelled),
            dead_ms: millis(dead),
            records,
        }
    }
}
