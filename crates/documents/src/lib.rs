//! The documents of the HTTP API, one type for each: OpenAPI describes it, and HTTP and the command line answer with it. Most requests
//! are types of the library; here are those about a page of a list, a pause and the placement.
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
mod json_fields;
mod kind;
mod lane;
mod leader;
mod limit;
mod member;
mod named;
mod new_pause;
mod outcome;
mod payload;
mod placement;
mod purge;
mod query;
mod retention;
mod schedule;
mod submitted;
mod tick_query;
mod ticks;
#[cfg(test)]
mod values;
mod worker;

pub use candidates::CandidatesDocument;
pub use changed::{ChangedDocument, sentence};
pub use clock::WrongClockDocument;
pub use cluster::ClusterDocument;
pub use event::EventDocument;
pub use explanation::ExplanationDocument;
pub use group::{GroupDocument, GroupSummaryDocument};
pub use invalid::Invalid;
pub use job::JobDocument;
pub use json_fields::json_fields;
pub use kind::KindDocument;
pub use lane::LaneDocument;
pub use leader::LeaderDocument;
pub use limit::{Limit, PageLimit, TickLimit};
pub use member::MemberDocument;
pub use named::{AcceptedDocument, RemedyDocument};
pub use new_pause::NewPause;
pub use outcome::{
    ChangedWorkerDocument, JobOutcomeDocument, KindOutcomeDocument, WorkerOutcome, WorkerOutcomeDocument,
};
pub use payload::PayloadDocument;
pub use placement::{PlacementChange, PlacementDocument};
pub use purge::PurgedDocument;
pub use query::{GroupQuery, JobPageQuery, MemberQuery, PageQuery};
pub use retention::RetentionDocument;
pub use schedule::{AddedScheduleDocument, ScheduleDocument};
pub use submitted::SubmittedDocument;
pub use tick_query::{PreviewQuery, TickQuery};
pub use ticks::{NextTicksDocument, ScheduleTicksDocument};
pub use worker::{WorkerDocument, WorkerSettingsDocument};

/// The names of a list.
fn names<T: ToString>(names: &[T]) -> Vec<String> {
    names.iter().map(ToString::to_string).collect()
}

/// The name of an optional thing.
fn name<T: ToString>(name: Option<&T>) -> Option<String> {
    name.map(ToString::to_string)
}
