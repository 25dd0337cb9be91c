//! The errors of a client's calls.

use std::fmt;

use bellwether_core::group::GroupError;
use bellwether_core::name::{GroupId, JobId, Kind, WorkerId};
use bellwether_core::outcome::Reason;
use bellwether_core::remedy::ErrorClass;
use bellwether_core::wire::WireError;

use super::Unavailable;
use crate::codec::{CodecError, Part};

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
    /// The client's codec cannot decode a payload or a result. The job itself is not affected.
    #[error(
        "the {part} of job {id} cannot be decoded: give the client the codec and the key that encoded it; a client without \
         a codec reads the stored bytes"
    )]
    Undecodable {
        /// The job.
        id: JobId,
        /// The payload or the result.
        part: Part,
        /// The reason.
        #[source]
        source: CodecError,
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
            Self::Undecodable { source, .. } => source.class(),
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
            | Self::Undecodable { id, .. }
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
    /// The placement strategy of the namespace.
    Placement,
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
            Self::Placement => f.write_str("the placement strategy"),
            Self::Page => f.write_str("a page of records"),
        }
    }
}

bellwether_core::impl_remedy!(Error);
