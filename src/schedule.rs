//! The parts of a schedule. To create one, see [`Schedule`](crate::Schedule).

pub use bellwether_core::schedule::{
    Calendar, CronExpression, DEFAULT_GRACE, MAX_CATCH_UP, MAX_INTERVAL, MIN_INTERVAL, Misfire, Missed,
    Overlap, Passed, PassedOver, ScheduleRecord, ScheduleSpec, SpecError, Template, When, Zone, instant,
    tick_id,
};
pub use bellwether_core::time::WallMillis;
