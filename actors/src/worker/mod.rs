//! The concerns of a worker. Incarnations follow one another: each registers, runs jobs and reports.

pub mod executor_pool;
pub mod inbox_watcher;
pub mod lane_trust;
mod meters;
pub mod pulse;
mod pulses;
pub mod runs;
pub mod status_reporter;
pub mod takeover;
pub mod wing;
