//! Schema version 1, frozen: a released field is never changed, moved or removed. Each new version gets a new folder.

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
