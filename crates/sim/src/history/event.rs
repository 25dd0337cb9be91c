//! The events of a history.

use std::fmt;
use std::sync::Arc;

use bellwether_core::name::{JobId, Kind, Lane, NodeId, WorkerId};
use serde::{Deserialize, Serialize};

use super::Digest;

/// One line of a history.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// When, in milliseconds on a monotonic clock that all recorders share: on one machine, the time since boot.
    pub at: u64,
    /// The event.
    #[serde(flatten)]
    pub what: EventKind,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum EventKind {
    /// A client makes a call. Recorded before the call.
    Invoke {
        /// The client. Calls of one client may overlap.
        client: u32,
        /// The number of the call, unique in the history.
        call: u64,
        /// The request.
        what: Call,
        /// Deadline of the answer, if there is one (L7).
        #[serde(default, skip_serializing_if = "Option::is_none")]
        deadline: Option<u64>,
    },
    /// A call returns. Recorded after the answer.
    Return {
        /// The number of its [`EventKind::Invoke`].
        call: u64,
        /// The answer.
        answer: Answer,
    },
    /// A node reports its leadership state. Recorded at each change.
    Leadership {
        /// The node.
        node: NodeId,
        /// The ZooKeeper session of its term.
        session: i64,
        /// The epoch of its term; 0 without one.
        epoch: i32,
        /// The leadership state.
        state: Leading,
        /// While active or paused: the time until which the node trusts its term without further answers. A recorder
        /// that does not know it leaves it out; then the state holds until the next report.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        until: Option<u64>,
    },
    /// A member of a node's leader wing sends a write, fenced by this epoch. A recorder that does not see this leaves it
    /// out.
    LeaderWrites {
        /// The node.
        node: NodeId,
        /// The epoch.
        epoch: i32,
    },
    /// A node sees that its session has lost its connection, or is connected again. A recorder that does not see this
    /// leaves it out.
    Link {
        /// The node.
        node: NodeId,
        /// The session.
        session: i64,
        /// Whether it is connected.
        up: bool,
    },
    /// A process starts, ends, is frozen or continues. Recorded by the party that causes it.
    Node {
        /// The node.
        node: NodeId,
        /// The new state of the process.
        is: Life,
    },
    /// A handler starts, reports a checkpoint, or ends.
    Run {
        /// The worker whose slot it uses.
        worker: WorkerId,
        /// The job.
        job: JobId,
        /// Its generation.
        generation: u32,
        /// Its attempt.
        attempt: u32,
        /// The fencing token that the handler received.
        token: i32,
        /// The digest of the payload that the handler received.
        payload: Digest,
        /// The step.
        step: RunStep,
    },
    /// ZooKeeper committed a transaction. All transactions are recorded, in the order of their numbers.
    Txn {
        /// Its number.
        zxid: i64,
        /// The session that sent it; 0 for ZooKeeper's own transactions, such as the removal of a container.
        session: i64,
        /// Its operations, in order, on paths relative to the namespace. Operations outside the namespace are left out.
        ops: Vec<TxnOp>,
    },
    /// ZooKeeper rejected a transaction, which changed nothing. No rule needs it; it helps to read a history.
    Refused {
        /// Its number.
        zxid: i64,
        /// The session that sent it.
        session: i64,
        /// The operation that failed, and the reason, as far as they are known.
        why: String,
    },
    /// A session was ended before its timeout, which no network fault does. The guarantees that rely on the session
    /// timeout (S5, and the runs of S6) do not hold for its owner until the owner notices.
    Evicted {
        /// The session.
        session: i64,
    },
    /// From here on no fault is injected, and every node, server and link is up. The liveness invariants count from
    /// here.
    Healed,
}

/// A request of a client.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "call", rename_all = "snake_case")]
pub enum Call {
    /// Submit a job.
    Submit {
        /// Its id.
        job: JobId,
        /// Its kind.
        kind: Kind,
        /// The digest of its payload.
        payload: Digest,
        /// Its lane.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        lane: Option<Lane>,
    },
    /// Cancel a job.
    Cancel {
        /// The job.
        job: JobId,
    },
    /// Retry a dead or cancelled job.
    Retry {
        /// The job.
        job: JobId,
    },
    /// Read a job, or wait for its end.
    Read {
        /// The job.
        job: JobId,
        /// The generation that the caller knows of, if it passes one: an earlier one is no answer (S23).
        #[serde(default, skip_serializing_if = "Option::is_none")]
        generation: Option<u32>,
    },
    /// Drain a worker.
    Drain {
        /// The worker.
        worker: WorkerId,
    },
    /// Remove records of terminal jobs.
    Purge,
}

impl Call {
    /// Returns the job that the call is about, if it is about one.
    #[must_use]
    pub fn job(&self) -> Option<&JobId> {
        match self {
            Self::Submit { job, .. }
            | Self::Cancel { job }
            | Self::Retry { job }
            | Self::Read { job, .. } => Some(job),
            Self::Drain { .. } | Self::Purge => None,
        }
    }
}

/// The answer to a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "snake_case")]
pub enum Answer {
    /// The job is accepted, by this or by an earlier identical submission.
    Accepted,
    /// The id belongs to another job, and the caller asked to ignore an existing job.
    Ignored,
    /// The id belongs to another job.
    Conflict,
    /// The job was waiting, and is cancelled.
    Cancelled,
    /// The job is assigned, and its worker was requested to stop it.
    CancelRequested,
    /// The job is queued again in this generation.
    Reopened {
        /// The generation.
        generation: u32,
    },
    /// The worker drains, because of this or an earlier request, or has left since.
    Drains,
    /// The worker does not exist.
    WorkerGone,
    /// Records were removed.
    Purged {
        /// Number of records.
        removed: u64,
    },
    /// The state of the job, from a read or from a call without anything to do.
    Seen {
        /// The state as the client saw it.
        job: JobSight,
    },
    /// The call had no effect and will have none: Jepsen's `fail`.
    Failed {
        /// The error.
        why: String,
    },
    /// The call may have had an effect, or may have one later: Jepsen's `info`.
    Unknown {
        /// The error.
        why: String,
    },
}

/// A job as a client saw it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum JobSight {
    /// The job does not exist.
    Absent,
    /// The job cannot be read.
    Quarantined,
    /// The job exists.
    There {
        /// Its generation.
        generation: u32,
        /// Its state.
        is: Seen,
    },
}

/// The state of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Seen {
    /// Queued, delayed or assigned.
    Open,
    /// Terminal, with a result.
    Succeeded,
    /// Terminal, cancelled by a client.
    Cancelled,
    /// Terminal, without a result.
    Dead,
}

/// The variant of a [`LeadershipState`](bellwether_core::machine::election::leadership::LeadershipState). The session,
/// epoch and time of all three are fields of the event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Leading {
    /// The node does not lead.
    Inactive,
    /// The node leads but has lost its connection.
    Paused,
    /// The node leads.
    Active,
}

/// The state of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Life {
    /// It has started.
    Started,
    /// It was stopped gracefully.
    Stopped,
    /// It was killed.
    Killed,
    /// It exited without being stopped, which is a bug.
    Failed,
    /// It is frozen (SIGSTOP).
    Frozen,
    /// It continues (SIGCONT).
    Thawed,
    /// Its election handles no messages.
    ElectionStalled,
    /// Its election handles messages again.
    ElectionGoesOn,
}

/// A step of a handler's run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunStep {
    /// The handler has started. It records this first.
    Started,
    /// The handler reported this checkpoint, and its attempt had not been given up.
    Said(u8),
    /// The run has ended, for any reason. Without this step the run lasts until its node is killed.
    Ended,
}

/// An operation of a transaction, as it was applied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case")]
pub enum TxnOp {
    /// The znode had this version. ZooKeeper's log shows the version plus one.
    Check {
        /// The znode.
        path: String,
        /// Its version.
        version: i32,
    },
    /// The znode was created.
    Create {
        /// The znode, with its sequence number if it has one.
        path: String,
        /// Its data.
        data: Bytes,
        /// Whether it is deleted with the session.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        ephemeral: bool,
    },
    /// The znode's data was set.
    Set {
        /// The znode.
        path: String,
        /// Its data.
        data: Bytes,
        /// Its version after the operation.
        version: i32,
    },
    /// The znode was deleted.
    Delete {
        /// The znode.
        path: String,
    },
    /// The session ended, and its ephemeral znodes were deleted.
    CloseSession,
}

/// The data of a znode; hexadecimal digits in JSON.
#[derive(Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Bytes(pub Arc<[u8]>);

impl fmt::Debug for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.0.len())
    }
}

impl From<Vec<u8>> for Bytes {
    fn from(bytes: Vec<u8>) -> Self {
        Self(bytes.into())
    }
}

impl From<Bytes> for String {
    fn from(bytes: Bytes) -> Self {
        bytes.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

impl TryFrom<String> for Bytes {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let digits = text.as_bytes();
        let byte = |pair: &[u8]| {
            let pair = std::str::from_utf8(pair).ok().filter(|_| pair.len() == 2)?;
            u8::from_str_radix(pair, 16).ok()
        };
        let bytes: Option<Vec<u8>> = digits.chunks(2).map(byte).collect();
        bytes
            .map(Self::from)
            .ok_or_else(|| format!("{} characters that are not hexadecimal bytes", text.len()))
    }
}

/// The error of a line that is not an event.
#[derive(Debug)]
pub struct LineError(serde_json::Error);

impl fmt::Display for LineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not an event: {}", self.0)
    }
}

impl std::error::Error for LineError {}

impl Event {
    /// Returns the event as one line of JSON, without a line break.
    #[must_use]
    pub fn to_line(&self) -> String {
        serde_json::to_string(self).expect("plain fields and string keys are always JSON")
    }

    /// Parses such a line.
    ///
    /// # Errors
    /// When the line is not an event.
    pub fn from_line(line: &str) -> Result<Self, LineError> {
        serde_json::from_str(line).map_err(LineError)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Recorded histories outlive builds, so the format of the lines must not change.
    #[test]
    fn the_line_format_is_unchanged() {
        let lines = [
            r#"{"at":5,"event":"invoke","client":1,"call":7,"what":{"call":"submit","job":"a","kind":"sum","payload":"1349cde127705c16"},"deadline":15005}"#,
            r#"{"at":9,"event":"return","call":7,"answer":{"answer":"seen","job":{"state":"there","generation":1,"is":"succeeded"}}}"#,
            r#"{"at":9,"event":"leadership","node":"n1","session":72,"epoch":3,"state":"active"}"#,
            r#"{"at":10,"event":"txn","zxid":17,"session":72,"ops":[{"op":"check","path":"/epoch","version":3},{"op":"create","path":"/x","data":"00ff"},{"op":"delete","path":"/y"},{"op":"close_session"}]}"#,
            r#"{"at":11,"event":"run","worker":"00000000-0000-0000-0000-000000000009","job":"a","generation":1,"attempt":1,"token":0,"payload":"1349cde127705c16","step":"started"}"#,
            r#"{"at":12,"event":"node","node":"n1","is":"killed"}"#,
            r#"{"at":13,"event":"healed"}"#,
        ];
        for line in lines {
            assert_eq!(Event::from_line(line).unwrap().to_line(), line);
        }
        assert!(lines[0].contains(&Digest::of(b"{}").to_string()), "{}", Digest::of(b"{}"));
    }

    #[test]
    fn a_line_that_is_not_an_event_is_rejected() {
        for line in ["", "{}", r#"{"at":1,"event":"else"}"#] {
            assert!(Event::from_line(line).is_err(), "{line}");
        }
        assert!(Bytes::try_from("0".to_owned()).is_err());
        assert!(Bytes::try_from("é".to_owned()).is_err());
        assert!(Bytes::try_from("0é".to_owned()).is_err());
    }
}
