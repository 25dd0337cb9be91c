//! Errors of the client, grouped by how the caller can react.

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

/// No session can be used. Nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unavailable {
    /// No session could be used within the deadline. The client keeps trying for later calls.
    #[error("ZooKeeper did not serve within {within:?}: {reason}")]
    NotInTime {
        /// The deadline.
        within: Duration,
        /// Each server's address and why it did not serve.
        reason: String,
        /// Whether there was a session at the end, and only the reply was late.
        served: bool,
    },
    /// The namespace is absent, foreign, of another layout version or closed to this client. The client has ended.
    #[error(transparent)]
    Refused(NamespaceError),
    /// The client was closed.
    #[error("the client is closed")]
    Closed,
}

/// A client could not be created.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConnectError {
    /// The connect string is malformed.
    #[error(transparent)]
    ConnectString(#[from] ConnectStringError),
    /// The session timeout is out of bounds. No connection was made.
    #[error(transparent)]
    SessionTimeout(#[from] SessionTimeoutError),
    /// No session, or no usable namespace.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
}

/// A call of the client failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// No session can be used.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
    /// ZooKeeper refused a request.
    #[error("ZooKeeper refused the request")]
    Refused(#[source] Reason),
    /// The job does not exist: it was never submitted to this namespace, or its record was removed after its end.
    #[error("there is no job {0}: it was never submitted to this namespace, or its record was removed")]
    NotFound(JobId),
    /// An argument is out of bounds. Nothing was sent.
    #[error("{field} must be {allowed}, not {given}")]
    Invalid {
        /// The argument.
        field: &'static str,
        /// The allowed values.
        allowed: String,
        /// The given value.
        given: String,
    },
    /// The pause of a kind was changed repeatedly by other clients during the call.
    #[error("the pause of kind {0} changed repeatedly during the call: try again")]
    PauseContended(Kind),
    /// The job's stored record cannot be read, so the job cannot be changed either.
    #[error("the stored record of job {id} cannot be read")]
    Unreadable {
        /// The job.
        id: JobId,
        /// The reason.
        #[source]
        reason: WireError,
    },
    /// A worker's registration cannot be read, so it cannot be changed either.
    #[error("the registration of worker {worker} cannot be read")]
    WorkerUnreadable {
        /// The worker.
        worker: WorkerId,
        /// The reason.
        #[source]
        reason: WireError,
    },
    /// A setting of the namespace cannot be read.
    #[error("the settings in {path} cannot be read")]
    Settings {
        /// The path of the setting.
        path: &'static str,
        /// The reason.
        #[source]
        reason: WireError,
    },
    /// A job or group violates a rule of groups.
    #[error(transparent)]
    Group(#[from] GroupError),
    /// The group's stored record cannot be read, so the group cannot be changed either.
    #[error("the stored record of group {group} cannot be read")]
    GroupUnreadable {
        /// The group.
        group: GroupId,
        /// The reason.
        #[source]
        reason: WireError,
    },
    /// A znode was changed repeatedly by other clients during the call.
    #[error("{what} changed {tries} times during the call: try again")]
    Busy {
        /// The object of the change.
        what: &'static str,
        /// The number of attempts.
        tries: u32,
    },
    /// The group was changed repeatedly by others during the call.
    #[error("group {group} changed {tries} times during the call: try again")]
    GroupContended {
        /// The group.
        group: GroupId,
        /// The number of attempts.
        tries: u32,
    },
    /// The job was changed repeatedly by others during the call.
    #[error("job {id} changed {tries} times during the call: try again")]
    Contended {
        /// The job.
        id: JobId,
        /// The number of attempts.
        tries: u32,
    },
}

/// A job was not accepted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SubmitError {
    /// The job is invalid. Nothing was sent.
    #[error(transparent)]
    Invalid(#[from] JobError),
    /// The group does not accept the member. Nothing was written.
    #[error(transparent)]
    Group(#[from] GroupError),
    /// The group could not be sealed. Nothing was submitted.
    #[error(transparent)]
    Client(Error),
    /// Another job has this id.
    #[error("job id {id} belongs to another job, of kind {kind}{}: choose another id", if *.same_kind { " and another payload" } else { "" })]
    Conflict {
        /// The id.
        id: JobId,
        /// The kind of the existing job.
        kind: Kind,
        /// Whether both jobs have this kind, so that only the payloads differ.
        same_kind: bool,
    },
    /// The bucket that this id belongs to holds the maximum number of jobs. Nothing was sent.
    #[error(
        "overloaded: the bucket of job {id} holds {entries} jobs of at most {MAX_BUCKET_ENTRIES}: \
         use another namespace, keep records for a shorter time, or purge records of ended jobs"
    )]
    Overloaded {
        /// The job that was not accepted.
        id: JobId,
        /// The number of jobs in the bucket.
        entries: usize,
    },
    /// The minute of this job's start holds the maximum number of delayed jobs. Nothing was sent.
    #[error(
        "overloaded: {entries} jobs of at most {MAX_BUCKET_ENTRIES} wait for the minute in which job {id} starts: \
         choose another minute, or spread the jobs over several minutes"
    )]
    MinuteFull {
        /// The job that was not accepted.
        id: JobId,
        /// The number of jobs in that minute.
        entries: usize,
    },
    /// The maximum number of minutes hold delayed jobs, and the minute of this job would be another one. Nothing was
    /// sent.
    #[error(
        "overloaded: delayed jobs use {minutes} minutes of at most {MAX_MINUTES}, and job {id} needs another: \
         let several jobs share a minute, or submit jobs of the far future later"
    )]
    TooManyMinutes {
        /// The job that was not accepted.
        id: JobId,
        /// The number of minutes.
        minutes: usize,
    },
    /// There was no session in time. Nothing was sent.
    #[error("job {id} was not submitted")]
    NotSent {
        /// The job that was not accepted.
        id: JobId,
        /// The reason.
        #[source]
        reason: Unavailable,
    },
    /// The job was sent and no reply came in time: it may or may not have been accepted.
    #[error(
        "unknown: job {id} may or may not have been accepted within {within:?}; submit it again with the same id"
    )]
    Unknown {
        /// The job.
        id: JobId,
        /// The deadline.
        within: Duration,
    },
    /// ZooKeeper refused the job.
    #[error("ZooKeeper refused job {id}")]
    Refused {
        /// The job that was not accepted.
        id: JobId,
        /// The reason.
        #[source]
        reason: Reason,
    },
    /// The id is in use, and the stored record cannot be read.
    #[error("job id {id} is in use, and its stored record cannot be read")]
    Unreadable {
        /// The id.
        id: JobId,
        /// The reason.
        #[source]
        reason: WireError,
    },
}

/// A wait did not reach the end of the job.
#[derive(Debug, Clone, thiserror::Error)]
pub enum WaitError {
    /// The job has not ended in time.
    #[error("job {id} has not ended after {within:?}{}", .last.as_ref().map(|view| format!(": {}", view.status())).unwrap_or_default())]
    TimedOut {
        /// The job.
        id: JobId,
        /// How long the call waited.
        within: Duration,
        /// The last seen state of the job.
        last: Option<Box<JobView>>,
    },
    /// A request failed.
    #[error(transparent)]
    Client(#[from] Error),
}

/// There is no typed result.
#[derive(Debug, thiserror::Error)]
pub enum ResultError {
    /// The job has not ended, or could not be read.
    #[error(transparent)]
    Wait(#[from] WaitError),
    /// The job ended without a result.
    #[error("job {} ended without a result: {}", .0.id, .0.status())]
    Ended(Box<JobView>),
    /// The result has another type.
    #[error("the result of job {id} is not of the expected type")]
    Type {
        /// The job.
        id: JobId,
        /// The decoding error.
        #[source]
        source: serde_json::Error,
    },
}
