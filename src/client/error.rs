//! Errors of the client.
//!
//! Each error has a [`class`](Error::class), the type of the failure, and a [`remedy`](Error::remedy), the reaction
//! that is left to the caller.

use std::fmt;
use std::time::Duration;

use bellwether_core::budget::{MAX_BUCKET_ENTRIES, MAX_MINUTES};
use bellwether_core::group::GroupError;
use bellwether_core::name::{GroupId, JobId, Kind, WorkerId};
use bellwether_core::outcome::Reason;
use bellwether_core::remedy::{ErrorClass, Remedy};
use bellwether_core::wire::WireError;
use bellwether_zk::{ConnectStringError, NamespaceError};

use super::job::JobError;
use super::view::JobView;
use crate::session_timeout::SessionTimeoutError;

/// No session can be used. Nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
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
#[non_exhaustive]
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
#[non_exhaustive]
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
    /// The job is quarantined: retry it first, which releases it.
    #[error("job {0} is quarantined: retry it first")]
    Quarantined(JobId),
    /// Other clients, or the nodes, changed the same record during every attempt of the call.
    #[error("{subject} changed {tries} times during the call: try again")]
    Contended {
        /// The record.
        subject: Subject,
        /// The number of attempts.
        tries: u32,
    },
}

/// A stored record that several clients change.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Subject {
    /// The record of a job.
    Job(JobId),
    /// The record of a group.
    Group(GroupId),
    /// The pause of a kind.
    Pause(Kind),
    /// The registration of a worker.
    Worker(WorkerId),
    /// The retention of the namespace.
    Retention,
    /// A page of records.
    Page,
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Job(id) => write!(f, "job {id}"),
            Self::Group(id) => write!(f, "group {id}"),
            Self::Pause(kind) => write!(f, "the pause of kind {kind}"),
            Self::Worker(id) => write!(f, "the registration of worker {id}"),
            Self::Retention => f.write_str("the retention"),
            Self::Page => f.write_str("a page of records"),
        }
    }
}

/// A job was not accepted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SubmitError {
    /// The job is invalid. Nothing was sent.
    #[error(transparent)]
    Invalid(#[from] JobError),
    /// The group does not accept the member. Nothing was written.
    #[error(transparent)]
    Group(#[from] GroupError),
    /// The group could not be sealed, or its record cannot be read. Nothing was submitted.
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
    ///
    /// Submitting a job with an id again is safe: it is accepted at most once. Two kinds of jobs are different, and
    /// their remedy is [`Remedy::ReadBack`]: a job without an id gets another one with each submission, so read this
    /// id, or submit the job with it; and [`IfExists::Again`](super::IfExists::Again) would open a job again that was
    /// accepted and has ended in the meantime.
    #[error(
        "unknown: job {id} may or may not have been accepted within {within:?}; submit it again with the same id"
    )]
    Unknown {
        /// The job.
        id: JobId,
        /// Whether the same submission again is the same job, whatever happened to this one.
        repeatable: bool,
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
#[non_exhaustive]
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
#[non_exhaustive]
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

impl Unavailable {
    /// Returns the class of the error.
    #[must_use]
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::NotInTime { .. } => ErrorClass::Unavailable,
            Self::Refused(_) | Self::Closed => ErrorClass::Closed,
        }
    }
}

impl ConnectError {
    /// Returns the class of the error.
    #[must_use]
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::ConnectString(_) | Self::SessionTimeout(_) => ErrorClass::Invalid,
            Self::Unavailable(error) => error.class(),
        }
    }
}

impl Error {
    /// Returns the class of the error.
    #[must_use]
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::Unavailable(error) => error.class(),
            Self::Refused(reason) => reason.class(),
            Self::NotFound(_) => ErrorClass::NotFound,
            Self::Invalid { .. } => ErrorClass::Invalid,
            Self::Unreadable { .. }
            | Self::WorkerUnreadable { .. }
            | Self::Settings { .. }
            | Self::GroupUnreadable { .. } => ErrorClass::Unreadable,
            Self::Group(error) => error.class(),
            Self::Quarantined(_) => ErrorClass::Conflict,
            Self::Contended { .. } => ErrorClass::Contended,
        }
    }

    /// Returns the job that the error is about, if it is about one.
    #[must_use]
    pub fn job(&self) -> Option<&JobId> {
        match self {
            Self::NotFound(id)
            | Self::Unreadable { id, .. }
            | Self::Quarantined(id)
            | Self::Contended { subject: Subject::Job(id), .. } => Some(id),
            Self::Unavailable(_)
            | Self::Refused(_)
            | Self::Invalid { .. }
            | Self::WorkerUnreadable { .. }
            | Self::Settings { .. }
            | Self::Group(_)
            | Self::GroupUnreadable { .. }
            | Self::Contended { .. } => None,
        }
    }
}

impl SubmitError {
    /// Returns the class of the error.
    #[must_use]
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::Invalid(_) => ErrorClass::Invalid,
            Self::Group(error) => error.class(),
            Self::Client(error) => error.class(),
            Self::Conflict { .. } => ErrorClass::Conflict,
            Self::Overloaded { .. } | Self::MinuteFull { .. } | Self::TooManyMinutes { .. } => {
                ErrorClass::Overloaded
            }
            Self::NotSent { reason, .. } => reason.class(),
            Self::Unknown { .. } => ErrorClass::Unknown,
            Self::Refused { reason, .. } => reason.class(),
            Self::Unreadable { .. } => ErrorClass::Unreadable,
        }
    }

    /// Returns what the caller can do.
    #[must_use]
    pub fn remedy(&self) -> Remedy {
        match self {
            Self::Unknown { repeatable: false, .. } => Remedy::ReadBack,
            error => error.class().remedy(),
        }
    }

    /// Returns the job that the error is about, if its id is known.
    #[must_use]
    pub fn job(&self) -> Option<&JobId> {
        match self {
            Self::Conflict { id, .. }
            | Self::Overloaded { id, .. }
            | Self::MinuteFull { id, .. }
            | Self::TooManyMinutes { id, .. }
            | Self::NotSent { id, .. }
            | Self::Unknown { id, .. }
            | Self::Refused { id, .. }
            | Self::Unreadable { id, .. } => Some(id),
            Self::Client(error) => error.job(),
            Self::Invalid(_) | Self::Group(_) => None,
        }
    }
}

/// The error of a call that precedes the submission of a member.
impl From<Error> for SubmitError {
    fn from(error: Error) -> Self {
        match error {
            Error::Group(error) => Self::Group(error),
            other => Self::Client(other),
        }
    }
}

impl WaitError {
    /// Returns the class of the error.
    #[must_use]
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::TimedOut { .. } => ErrorClass::TimedOut,
            Self::Client(error) => error.class(),
        }
    }

    /// Returns the job that the error is about, if it is about one.
    #[must_use]
    pub fn job(&self) -> Option<&JobId> {
        match self {
            Self::TimedOut { id, .. } => Some(id),
            Self::Client(error) => error.job(),
        }
    }
}

impl ResultError {
    /// Returns the class of the error.
    #[must_use]
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::Wait(error) => error.class(),
            Self::Ended(_) => ErrorClass::Failed,
            Self::Type { .. } => ErrorClass::Invalid,
        }
    }
}

bellwether_core::impl_remedy!(Unavailable, ConnectError, Error, WaitError, ResultError);
bellwether_core::impl_remedy!(@retryable SubmitError);

#[cfg(test)]
mod tests {
    use bellwether_core::chain::chain;

    use super::*;

    fn id() -> JobId {
        JobId::new("a").expect("a letter")
    }

    #[test]
    fn only_an_error_whose_call_is_safe_to_repeat_is_retryable() {
        let late = Unavailable::NotInTime { within: Duration::ZERO, reason: String::new(), served: true };
        let unknown = |repeatable| SubmitError::Unknown { id: id(), repeatable, within: Duration::ZERO };
        let contended = Error::Contended { subject: Subject::Job(id()), tries: 16 };
        let table = [
            (unknown(true), Remedy::Retry),
            (unknown(false), Remedy::ReadBack),
            (SubmitError::NotSent { id: id(), reason: late.clone() }, Remedy::Retry),
            (SubmitError::NotSent { id: id(), reason: Unavailable::Closed }, Remedy::GiveUp),
            (SubmitError::Overloaded { id: id(), entries: 5_000 }, Remedy::Retry),
            (SubmitError::Refused { id: id(), reason: Reason::Refused("throttled".into()) }, Remedy::Retry),
            (SubmitError::Refused { id: id(), reason: Reason::NoAuth }, Remedy::GiveUp),
            (SubmitError::Invalid(JobError::AgainLater), Remedy::FixInput),
            (SubmitError::Unreadable { id: id(), reason: WireError::Magic }, Remedy::GiveUp),
            (contended.into(), Remedy::Retry),
            (Error::NotFound(id()).into(), Remedy::FixInput),
            (Error::from(late).into(), Remedy::Retry),
        ];
        for (error, remedy) in table {
            assert_eq!(error.remedy(), remedy, "{error}");
            assert_eq!(error.is_retryable(), remedy == Remedy::Retry, "{error}");
        }
    }

    #[test]
    fn the_chain_of_an_error_names_each_source_once() {
        let refused = Error::Refused(Reason::NoAuth);
        assert_eq!(chain(&refused), "ZooKeeper refused the request: not authorised");
        let name = GroupId::plain("a b").expect_err("a blank");
        let group =
            SubmitError::from(Error::Group(GroupError::Name { group: "g".into(), source: name.clone() }));
        assert_eq!(chain(&group), format!("the names of group g and its kind do not fit together: {name}"));
    }
}
