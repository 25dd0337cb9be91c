//! Outcomes of changes.

use std::fmt;

use bellwether::client::{Cancelled, DrainedWorker, Retried};
use bellwether::describe::impl_values;
use bellwether::{JobId, Kind, State, WorkerId};
use clap::ValueEnum;
use serde::Serialize;
use utoipa::ToSchema;

use super::invalid::Invalid;
use super::{WorkerSettingsDocument, name};

/// What a change of a kind did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "snake_case")]
#[value(rename_all = "snake_case")]
pub enum KindOutcome {
    /// The kind is paused.
    Paused,
    /// The kind was already paused.
    AlreadyPaused,
    /// The kind is no longer paused.
    Resumed,
    /// The kind was not paused.
    NotPaused,
}

/// The outcome of a change of a kind.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = KindChanged)]
pub struct KindOutcomeDocument {
    /// The kind.
    pub kind: String,
    /// What the change did.
    pub outcome: KindOutcome,
}

impl KindOutcomeDocument {
    /// Returns the document of a pause; `changed` says whether this call paused the kind.
    pub fn paused(kind: &Kind, changed: bool) -> Self {
        let outcome = if changed { KindOutcome::Paused } else { KindOutcome::AlreadyPaused };
        Self { kind: kind.to_string(), outcome }
    }

    /// Returns the document of a resumption; `changed` says whether this call resumed the kind.
    pub fn resumed(kind: &Kind, changed: bool) -> Self {
        let outcome = if changed { KindOutcome::Resumed } else { KindOutcome::NotPaused };
        Self { kind: kind.to_string(), outcome }
    }
}

/// What a drain of a worker did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "snake_case")]
#[value(rename_all = "snake_case")]
pub enum WorkerOutcome {
    /// The worker drains.
    Draining,
    /// The worker was already draining.
    AlreadyDraining,
    /// There is no such worker; only on the command line.
    NotFound,
    /// The worker has left; only on the command line.
    Left,
}

/// The outcome of a drain of a worker.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = WorkerChanged)]
pub struct WorkerOutcomeDocument {
    /// The worker's id.
    pub id: String,
    /// What the drain did.
    pub outcome: WorkerOutcome,
    /// The worker's node, on the command line only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
}

impl WorkerOutcomeDocument {
    /// Returns the document of a drain.
    pub fn drained(id: WorkerId, drained: DrainedWorker) -> Self {
        let outcome = match drained {
            DrainedWorker::Marked => WorkerOutcome::Draining,
            DrainedWorker::Already => WorkerOutcome::AlreadyDraining,
            DrainedWorker::NotFound => WorkerOutcome::NotFound,
        };
        Self { id: id.to_string(), outcome, node: None }
    }
}

/// A changed worker.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = WorkerSet)]
pub struct ChangedWorkerDocument {
    /// The worker's id.
    pub id: String,
    /// Its settings as they are now.
    pub settings: WorkerSettingsDocument,
    /// The worker's node, on the command line only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
}

/// What a cancellation or a retry of a job did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "snake_case")]
#[value(rename_all = "snake_case")]
pub enum JobOutcome {
    /// The job is cancelled.
    Cancelled,
    /// Its worker was asked to stop it.
    Requested,
    /// The job was already cancelled.
    AlreadyCancelled,
    /// The job is queued again as a new generation.
    Reopened,
    /// The job is released from quarantine.
    Released,
    /// The job has not ended and needs no retry.
    StillOpen,
}

/// The outcome of a cancellation or a retry of a job.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = JobChanged)]
pub struct JobOutcomeDocument {
    /// The job's id.
    pub id: String,
    /// What the change did.
    pub outcome: JobOutcome,
    /// The worker that was asked to stop the job.
    #[schema(required)]
    worker: Option<String>,
    /// The generation that the retry started.
    #[schema(required)]
    generation: Option<u32>,
}

impl JobOutcomeDocument {
    /// Returns the document of a cancellation, or why the job cannot be cancelled.
    pub fn cancelled(id: &JobId, cancelled: Cancelled) -> Result<Self, Invalid> {
        let (outcome, worker) = match cancelled {
            Cancelled::Cancelled => (JobOutcome::Cancelled, None),
            Cancelled::Requested(worker) => (JobOutcome::Requested, Some(worker)),
            Cancelled::AlreadyTerminal(State::Cancelled) => (JobOutcome::AlreadyCancelled, None),
            Cancelled::AlreadyTerminal(state) => {
                return Err(Invalid(format!("job {id} has already ended ({state}): it cannot be cancelled")));
            }
        };
        let worker = name(worker.as_ref());
        Ok(Self { id: id.to_string(), outcome, worker, generation: None })
    }

    /// Returns the document of a retry, or why the job cannot be retried.
    pub fn retried(id: &JobId, retried: Retried) -> Result<Self, Invalid> {
        let (outcome, generation) = match retried {
            Retried::Reopened(generation) => (JobOutcome::Reopened, Some(generation)),
            Retried::Released => (JobOutcome::Released, None),
            Retried::StillOpen => (JobOutcome::StillOpen, None),
            Retried::Succeeded => {
                return Err(Invalid(format!("job {id} succeeded: it keeps its result and is not run again")));
            }
        };
        Ok(Self { id: id.to_string(), outcome, worker: None, generation })
    }
}

macro_rules! named {
    ($($outcome:ident),*) => {$(
        impl fmt::Display for $outcome {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.to_possible_value().expect("no outcome is skipped").get_name())
            }
        }
    )*};
}

named!(KindOutcome, WorkerOutcome, JobOutcome);

impl_values! {
    KindOutcome, "What a change of a kind did.";
    WorkerOutcome, "What a drain of a worker did.";
    JobOutcome, "What a cancellation or a retry of a job did.";
}
