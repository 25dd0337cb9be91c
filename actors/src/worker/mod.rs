//! The concerns of a worker: one incarnation after the other registers, runs jobs and reports.

pub mod inbox_watcher;
