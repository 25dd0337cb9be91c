//! The list of the types that znodes store.
//!
//! [`Stored`] is implemented only by this list, so [`each_type`] visits every stored type: a test or a fuzz target that uses
//! it cannot miss a new one.

use std::fmt::Debug;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{Layout, WireError, v1};
use crate::change::{Change, Noted};
use crate::clock_report::ClockReport;
use crate::failover::Failover;
use crate::group::GroupRecord;
use crate::job::{Assignment, JobRecord, QueueEntry, TurnIndex};
use crate::placement::PlacementSetting;
use crate::retention::Retention;
use crate::schedule::ScheduleRecord;
use crate::segment::{Results, Segment};
use crate::worker::{EpochRecord, PauseRecord, WorkerInfo};

/// A value that is stored in a znode.
pub trait Stored: listed::Listed + Sized {
    /// Distinguishes records of different types; never reused.
    const KIND: u8;
    /// The body in the schema version that this build writes.
    #[doc(hidden)]
    type Body: Serialize + DeserializeOwned + for<'a> From<&'a Self> + TryInto<Self, Error = WireError>;
}

/// Code that runs for each stored type.
pub trait Types {
    /// Runs for this type.
    fn visit<T: Stored + PartialEq + Debug>(&mut self);
}

/// Implements [`Stored`] for each type, and [`each_type`] for all of them.
macro_rules! stored {
    ($($kind:literal: $type:ty => $body:ty,)*) => {
        $(
            impl listed::Listed for $type {}
            impl Stored for $type {
                const KIND: u8 = $kind;
                type Body = $body;
            }
        )*

        /// Visits each stored type, in the order of its kind.
        pub fn each_type(types: &mut impl Types) {
            $(types.visit::<$type>();)*
        }
    };
}

stored! {
    1: JobRecord => v1::JobRecordV1,
    2: QueueEntry => v1::QueueEntryV1,
    3: Assignment => v1::AssignmentV1,
    4: WorkerInfo => v1::WorkerInfoV1,
    5: EpochRecord => v1::EpochRecordV1,
    6: Layout => v1::LayoutV1,
    7: TurnIndex => v1::TurnV1,
    8: GroupRecord => v1::GroupRecordV1,
    9: ScheduleRecord => v1::ScheduleRecordV1,
    10: Noted<Retention> => v1::NotedV1<v1::RetentionV1>,
    11: PauseRecord => v1::PauseRecordV1,
    12: Failover => v1::FailoverV1,
    13: Noted<PlacementSetting> => v1::NotedV1<v1::PlacementSettingV1>,
    14: Segment => v1::SegmentV1,
    16: Results => v1::ResultsV1,
    19: ClockReport => v1::ClockReportV1,
    20: Change => v1::ChangeV1,
}

mod listed {
    /// Seals [`Stored`](super::Stored): the types of the list.
    pub trait Listed {}
}
