//! JSON documents: one type for each, which the command line prints, HTTP answers with, and OpenAPI describes.
//!
//! Times are RFC 3339 in UTC. Durations are texts with a unit, such as `30s`.

mod attempt;
mod candidates;
mod changed;
mod clock;
mod cluster;
mod duration;
mod embedded;
mod event;
mod explanation;
mod group;
mod if_exists;
mod job;
mod job_options;
mod lane;
mod member;
mod new_schedule;
mod payload;
mod placement;
mod retention;
mod schedule;
mod schedule_change;

pub(crate) use candidates::CandidatesDocument;
pub(crate) use changed::{ChangedDocument, sentence};
pub(crate) use clock::WrongClockDocument;
pub(crate) use cluster::{KindDocument, LeaderDocument, WorkerDocument, WorkerSettingsDocument};
pub(crate) use duration::{DurationSchema, InstantText, duration, instant};
pub(crate) use event::EventDocument;
pub(crate) use explanation::ExplanationDocument;
pub(crate) use group::{GroupDocument, GroupSummaryDocument};
pub(crate) use if_exists::IfExistsName;
pub(crate) use job::{JobDocument, StateName};
#[cfg(test)]
pub(crate) use job_options::example as job_options_example;
pub(crate) use job_options::{Form, JOB_OPTIONS, JobOption, JobOptionsSchema};
pub(crate) use lane::LaneDocument;
pub(crate) use member::MemberDocument;
pub(crate) use new_schedule::NewSchedule;
pub(crate) use payload::PayloadDocument;
pub(crate) use placement::PlacementDocument;
pub(crate) use retention::RetentionDocument;
pub(crate) use schedule::ScheduleDocument;
pub(crate) use schedule_change::{ChangedSchedule, Rule};

/// The names of a list.
fn names<T: ToString>(names: &[T]) -> Vec<String> {
    names.iter().map(ToString::to_string).collect()
}

/// The name of an optional thing.
fn name<T: ToString>(name: Option<&T>) -> Option<String> {
    name.map(ToString::to_string)
}
