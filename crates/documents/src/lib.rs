//! The documents of the HTTP API, one type for each: OpenAPI describes it, and HTTP and the command line answer with it. What HTTP
//! reads is also the arguments of a command and the section of a file.
//!
//! Times are RFC 3339 in UTC. Durations are texts with a unit, such as `30s`.

#![forbid(unsafe_code)]

mod attempt;
#[cfg(test)]
mod bounds;
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
mod kind;
mod lane;
mod leader;
mod limit;
mod member;
#[cfg(test)]
mod names;
mod new_group;
mod new_job;
mod new_pause;
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
mod ticks;
mod word;
mod worker;
mod worker_change;

pub use candidates::CandidatesDocument;
pub use changed::{ChangedDocument, sentence};
pub use clock::WrongClockDocument;
pub use cluster::ClusterDocument;
pub use event::EventDocument;
pub use explanation::ExplanationDocument;
pub use group::{GroupDocument, GroupSummaryDocument};
pub use invalid::Invalid;
pub use job::JobDocument;
pub use job_options::Options;
pub use json_fields::json_fields;
pub use kind::KindDocument;
pub use lane::LaneDocument;
pub use leader::LeaderDocument;
pub use limit::{Limit, PageLimit, TickLimit};
pub use member::MemberDocument;
pub use new_group::NewGroup;
pub use new_job::{NewJob, ScheduledJob, json_job};
pub use new_pause::NewPause;
pub use new_schedule::NewSchedule;
pub use outcome::{
    ChangedWorkerDocument, JobOutcomeDocument, JobOutcomeWord, KindOutcomeDocument, KindOutcomeWord,
    WorkerOutcome, WorkerOutcomeDocument, WorkerOutcomeWord,
};
pub use payload::PayloadDocument;
pub use placement::{PlacementChange, PlacementDocument};
pub use previewed_rule::{PreviewedRule, TickQuery};
pub use purge::{NewPurge, PurgedDocument, PurgedJobs};
pub use query::{GroupQuery, JobQuery, MemberQuery, PageQuery};
pub use retention::{RetentionChange, RetentionDocument};
pub use schedule::{AddedScheduleDocument, ScheduleDocument};
pub use schedule_change::ChangedSchedule;
pub use submitted::SubmittedDocument;
pub use text::{
    DurationText, GroupIdText, InstantText, JobIdText, KindText, LaneText, NameText, TagText, Text,
};
pub use ticks::{NextTicksDocument, ScheduleTicksDocument};
pub use word::{
    AcceptedWord, AddedWord, AttemptOutcomeWord, ChangeKindWord, Described, EndedWord, GroupStageWord,
    IfExistsWord, MisfireWord, OverlapWord, RemedyWord, ScheduleStateWord, SkipReasonWord, StateWord,
    WaitReasonWord, Word, Words,
};
pub use worker::{WorkerDocument, WorkerSettingsDocument};
pub use worker_change::WorkerChange;

/// The names of a list.
fn names<T: ToString>(names: &[T]) -> Vec<String> {
    names.iter().map(ToString::to_string).collect()
}

/// The name of an optional thing.
fn name<T: ToString>(name: Option<&T>) -> Option<String> {
    name.map(ToString::to_string)
}
