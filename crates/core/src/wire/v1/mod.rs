//! Schema version 1, frozen: a released field is never changed, moved or removed. Each new version gets a new folder.

/// Defines the stored form of an enum without fields, and both conversions. The order of the names is frozen.
macro_rules! stored_enum {
    ($stored:ident = $value:ident { $($name:ident),+ $(,)? }) => {
        #[derive(Serialize, Deserialize)]
        enum $stored {
            $($name),+
        }

        impl From<$value> for $stored {
            fn from(value: $value) -> Self {
                match value {
                    $($value::$name => Self::$name),+
                }
            }
        }

        impl From<$stored> for $value {
            fn from(stored: $stored) -> Self {
                match stored {
                    $($stored::$name => Self::$name),+
                }
            }
        }
    };
}

mod change;
mod clock;
mod entry;
mod failover;
mod group;
mod job;
mod parts;
mod pause;
mod placement;
mod retention;
mod schedule;
mod segment;
mod worker;

pub(super) use change::{ChangeV1, NotedV1};
pub(super) use clock::ClockReportV1;
pub(super) use entry::{AssignmentV1, QueueEntryV1, TurnV1};
pub(super) use failover::FailoverV1;
pub(super) use group::GroupRecordV1;
pub(super) use job::JobRecordV1;
pub(super) use pause::PauseRecordV1;
pub(super) use placement::PlacementSettingV1;
pub(super) use retention::RetentionV1;
pub(super) use schedule::ScheduleRecordV1;
pub(super) use segment::{ResultsV1, SegmentV1};
pub(super) use worker::{EpochRecordV1, LayoutV1, WorkerInfoV1};
