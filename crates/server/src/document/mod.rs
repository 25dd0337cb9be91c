//! JSON documents: one type for each, which the command line prints, HTTP answers with, and OpenAPI describes.
//!
//! Times are RFC 3339 in UTC. Durations are milliseconds, in fields whose names end in `_ms`.

mod cluster;
mod event;
mod explanation;
mod group;
mod job;
mod retention;
mod schedule;

use std::time::Duration;

pub(crate) use cluster::{KindDocument, LeaderDocument, WorkerDocument};
pub(crate) use event::EventDocument;
pub(crate) use explanation::ExplanationDocument;
pub(crate) use group::{GroupDocument, GroupSummaryDocument};
pub(crate) use job::{JobDocument, StateName};
pub(crate) use retention::RetentionDocument;
pub(crate) use schedule::ScheduleDocument;

/// A duration in whole milliseconds.
fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// The names of a list.
fn names<T: ToString>(names: &[T]) -> Vec<String> {
    names.iter().map(ToString::to_string).collect()
}

/// The name of an optional thing.
fn name<T: ToString>(name: Option<&T>) -> Option<String> {
    name.map(ToString::to_string)
}
