//! The documents of the HTTP API, one type for each: OpenAPI describes it, and HTTP and the command line answer with it. What HTTP
//! reads is also the arguments of a command and the section of a file.
//!
//! Times are RFC 3339 in UTC. Durations are texts with a unit, such as `30s`.

#![forbid(unsafe_code)]

mod attempt;
mod candidates;
mod changed;
mod clock;
mod cluster;
mod embedded;
mod event;
mod explanation;
mod group;
mod invalid;
mod job;
mod job_options;
mod json_fields;
mod lane;
mod member;
mod new_group;
mod new_job;
mod new_schedule;
mod outcome;
mod payload;
mod placement;
mod previewed_rule;
mod purge;
mod query;
mod retention;
mod rule;
mod schedule;
mod schedule_change;
mod submitted;
mod text;
mod word;
mod worker_change;

pub use candidates::CandidatesDocument;
pub use changed::{ChangedDocument, sentence};
pub use clock::WrongClockDocument;
pub use cluster::{KindDocument, LeaderDocument, WorkerDocument, WorkerSettingsDocument};
pub use event::EventDocument;
pub use explanation::ExplanationDocument;
pub use group::{GroupDocument, GroupSummaryDocument};
pub use invalid::Invalid;
pub use job::JobDocument;
pub use job_options::Options;
pub use json_fields::json_fields;
pub use lane::LaneDocument;
pub use member::MemberDocument;
pub use new_group::NewGroup;
pub use new_job::{NewJob, ScheduledJob};
pub use new_schedule::NewSchedule;
pub use outcome::{ChangedWorkerDocument, KindOutcomeDocument, WorkerOutcomeDocument};
pub use payload::PayloadDocument;
pub use placement::{PlacementChange, PlacementDocument};
pub use previewed_rule::{PreviewedRule, TickQuery};
pub use purge::{NewPurge, PurgedDocument, PurgedJobs};
pub use query::{DEFAULT_LIMIT, GroupQuery, JobQuery, MemberQuery, PageQuery};
pub use retention::{RetentionChange, RetentionDocument};
pub use schedule::ScheduleDocument;
pub use schedule_change::ChangedSchedule;
pub use submitted::SubmittedDocument;
pub use text::{DurationText, InstantText, Text};
pub use word::{
    Described, EndedWord, GroupStageWord, IfExistsWord, MisfireWord, OverlapWord, StateWord, Word, Words,
};
pub use worker_change::WorkerChange;

/// The names of a list.
fn names<T: ToString>(names: &[T]) -> Vec<String> {
    names.iter().map(ToString::to_string).collect()
}

/// The name of an optional thing.
fn name<T: ToString>(name: Option<&T>) -> Option<String> {
    name.map(ToString::to_string)
}
