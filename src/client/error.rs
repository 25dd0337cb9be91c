//! What can go wrong, by what the caller can do about it.

use std::time::Duration;

use bellwether_core::budget::{MAX_BUCKET_ENTRIES, MAX_MINUTES};
use bellwether_core::group::GroupError;
use bellwether_core::name::{GroupId, JobId, Kind, WorkerId};
use bellwether_core::outcome::Reason;
use bellwether_core::wire::WireError;
use bellwether_zk::{ConnectStringError, NamespaceError};

use super::job::JobError;
use super::view::JobView;
use crate::session_timeout::SessionTimeoutError;

/// There is no session to ask with. Nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unavailable {
    /// None came within the deadline; the client goes on trying for later calls.
    #[error("ZooKeeper did not serve within {within:?}: {reason}")]
    NotInTime {
        /// The deadline.
        within: Duration,
        /// Each server's address and why it did not serve.
        reason: String,
        /// Whether there was a session at the end, and only the answer was late.
        served: bool,
    },
    /// The namespace is absent, foreign, of another layout or closed to this client. The client has ended.
    #[error(transparent)]
    Refused(NamespaceError),
    /// The client was closed.
    #[error("the client is closed")]
    Closed,
}

/// Why a client could not be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConnectError {
    /// The connect string is malformed.
    #[error(transparent)]
    ConnectString(#[from] ConnectStringError),
    /// The session timeout is out of its bounds. Nothing was connected to.
    #[error(transparent)]
    SessionTimeout(#[from] SessionTimeoutError),
    /// There is no session, or none with a usable namespace.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
}

/// Why a call has no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// There is no session.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
    /// ZooKeeper refused a request.
    #[error("ZooKeeper refused the request")]
    Refused(#[source] Reason),
    /// There is no such job: it was never submitted here, or its retention is over.
    #[error("there is no job {0}: it was never submitted to this namespace, or is over and removed")]
    NotFound(JobId),
    /// An argument is out of its bounds. Nothing was sent.
    #[error("{field} must be {allowed}, not {given}")]
    Invalid {
        /// Which argument.
        field: &'static str,
        /// What it may be.
        allowed: String,
        /// What was given.
        given: String,
    },
    /// A pause was made and lifted again and again while it was being changed.
    #[error("the pause of kind {0} changed again and again while it was being changed: try again")]
    PauseContended(Kind),
    /// The job's stored bytes cannot be read, so that it cannot be changed either.
    #[error("the stored record of job {id} cannot be read")]
    Unreadable {
        /// Which job.
        id: JobId,
        /// Why.
        #[source]
        reason: WireError,
    },
    /// A worker's registration cannot be read, so that it cannot be changed either.
    #[error("the registration of worker {worker} cannot be read")]
    WorkerUnreadable {
        /// Which worker.
        worker: WorkerId,
        /// Why.
        #[source]
        reason: WireError,
    },
    /// A setting of the namespace cannot be read.
    #[error("the settings in {path} cannot be read")]
    Settings {
        /// Where they are.
        path: &'static str,
        /// Why.
        #[source]
        reason: WireError,
    },
    /// Something cannot be part of a group.
    #[error(transparent)]
    Group(#[from] GroupError),
    /// The group's stored bytes cannot be read, so that it cannot be changed either.
    #[error("the stored record of group {group} cannot be read")]
    GroupUnreadable {
        /// Which group.
        group: GroupId,
        /// Why.
        #[source]
        reason: WireError,
    },
    /// Something changed again and again while it was being changed.
    #[error("{what} changed {tries} times while it was being changed: try again")]
    Busy {
        /// What.
        what: &'static str,
        /// How often it was tried.
        tries: u32,
    },
    /// The group changed again and again while it was being changed.
    #[error("group {group} changed {tries} times while it was being changed: try again")]
    GroupContended {
        /// Which group.
        group: GroupId,
        /// How often it was tried.
        tries: u32,
    },
    /// The job changed again and again while it was being changed.
    #[error("job {id} changed {tries} times while it was being changed: try again")]
    Contended {
        /// Which job.
        id: JobId,
        /// How often it was tried.
        tries: u32,
    },
}

/// Why a job was not accepted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SubmitError {
    /// The job itself is wrong. Nothing was sent.
    #[error(transparent)]
    Invalid(#[from] JobError),
    /// The group does not take it. Nothing was written.
    #[error(transparent)]
    Group(#[from] GroupError),
    /// The group could not be sealed. Nothing was submitted.
    #[error(transparent)]
    Client(Error),
    /// Another job has this id.
    #[error("job id {id} belongs to another job, of kind {kind}{}: choose another id", if *.same_kind { " and another payload" } else { "" })]
    Conflict {
        /// Which id.
        id: JobId,
        /// The kind of the job that has it.
        kind: Kind,
        /// Whether that is the submitted kind, too, so that only the payloads differ.
        same_kind: bool,
    },
    /// The namespace holds as many jobs as it may in the bucket that this id belongs to. Nothing was sent.
    #[error(
        "overloaded: the bucket of job {id} holds {entries} jobs of at most {MAX_BUCKET_ENTRIES}: \
         use another namespace, keep records for a shorter time, or purge those of jobs that are over"
    )]
    Overloaded {
        /// The job that was not accepted.
        id: JobId,
        /// How many jobs are there.
        entries: usize,
    },
    /// As many jobs wait for the minute of this one as may. Nothing was sent.
    #[error(
        "overloaded: {entries} jobs of at most {MAX_BUCKET_ENTRIES} wait for the minute that job {id} is to run at: \
         choose another minute, or spread such jobs over several"
    )]
    MinuteFull {
        /// The job that was not accepted.
        id: JobId,
        /// How many wait for that minute.
        entries: usize,
    },
    /// Jobs are delayed to as many minutes as may be, and that of this one is none of them. Nothing was sent.
    #[error(
        "overloaded: jobs are delayed to {minutes} minutes of at most {MAX_MINUTES}, and job {id} needs another: \
         let several jobs share a minute, or submit those of the far future later"
    )]
    TooManyMinutes {
        /// The job that was not accepted.
        id: JobId,
        /// How many minutes there are.
        minutes: usize,
    },
    /// There was no session in time. Nothing was sent.
    #[error("job {id} was not submitted")]
    NotSent {
        /// The job that was not accepted.
        id: JobId,
        /// Why.
        #[source]
        reason: Unavailable,
    },
    /// The job was sent and no answer came in time.
    #[error(
        "unknown: job {id} may or may not have been accepted within {within:?}; submit it again with the same id"
    )]
    Unknown {
        /// The job.
        id: JobId,
        /// The deadline.
        within: Duration,
    },
    /// ZooKeeper refused it.
    #[error("ZooKeeper refused job {id}")]
    Refused {
        /// The job that was not accepted.
        id: JobId,
        /// Why.
        #[source]
        reason: Reason,
    },
    /// Something has this id, and its stored bytes cannot be read.
    #[error("job id {id} is taken, and what has it cannot be read")]
    Unreadable {
        /// Which id.
        id: JobId,
        /// Why.
        #[source]
        reason: WireError,
    },
}

/// Why a wait has no end to tell.
#[derive(Debug, Clone, thiserror::Error)]
pub enum WaitError {
    /// The job is not over yet.
    #[error("job {id} is not over after {within:?}{}", .last.as_ref().map(|view| format!(": {}", view.status())).unwrap_or_default())]
    TimedOut {
        /// Which job.
        id: JobId,
        /// How long it was waited for.
        within: Duration,
        /// What it was last seen as.
        last: Option<Box<JobView>>,
    },
    /// The question could not be asked.
    #[error(transparent)]
    Client(#[from] Error),
}

/// Why there is no typed result.
#[derive(Debug, thiserror::Error)]
pub enum ResultError {
    /// The job is not over, or could not be asked for.
    #[error(transparent)]
    Wait(#[from] WaitError),
    /// The job ended without a result.
    #[error("job {} ended without a result: {}", .0.id, .0.status())]
    Ended(Box<JobView>),
    /// The result is of another type.
    #[error("the result of job {id} is not of the expected type")]
    Type {
        /// Which job.
        id: JobId,
        /// What is wrong with it.
        #[source]
        source: serde_json::Error,
    },
}
