//! What is recorded, by whom.

use std::fmt;
use std::sync::Arc;

use bellwether_core::name::{JobId, Kind, Lane, NodeId, WorkerId};
use serde::{Deserialize, Serialize};

use super::Digest;

/// One line of a history.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// When, in milliseconds on a monotonic clock that all who record share: on one machine, the time since its boot.
    pub at: u64,
    /// What.
    #[serde(flatten)]
    pub what: EventKind,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum EventKind {
    /// A client calls. Recorded before the call.
    Invoke {
        /// Who calls. One client makes one call after the other, or its calls overlap: both are fine.
        client: u32,
        /// Numbers the call; unique in the history.
        call: u64,
        /// What is asked.
        what: Call,
        /// Until when an answer was promised (L7).
        #[serde(default, skip_serializing_if = "Option::is_none")]
        deadline: Option<u64>,
    },
    /// A call is answered. Recorded after the answer.
    Return {
        /// The number of its [`EventKind::Invoke`].
        call: u64,
        /// What was said.
        answer: Answer,
    },
    /// A node says how it stands in the election, at each change.
    Leadership {
        /// Which.
        node: NodeId,
        /// The ZooKeeper session of its term.
        session: i64,
        /// The epoch of its term; 0 without one.
        epoch: i32,
        /// How it stands.
        state: Leading,
        /// While active or paused: until when it would trust itself without further news. May be left out by a recorder
        /// that does not see it; then until it says otherwise.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        until: Option<u64>,
    },
    /// A node hears that its session lost its connection, or has one again. May be left out by a recorder that does not see
    /// it.
    Link {
        /// Which.
        node: NodeId,
        /// Which session.
        session: i64,
        /// Whether it is connected.
        up: bool,
    },
    /// A process begins, ends, or stands still: recorded by whoever does it to the process.
    Node {
        /// Which.
        node: NodeId,
        /// What became of it.
        is: Life,
    },
    /// A handler begins or ends the run of an attempt.
    Run {
        /// Whose slot it takes.
        worker: WorkerId,
        /// Which job.
        job: JobId,
        /// Which generation of it.
        generation: u32,
        /// Which attempt.
        attempt: u32,
        /// The fencing token that the handler was given.
        token: i32,
        /// Of the payload that the handler was given.
        payload: Digest,
        /// Whether it begins or ends.
        step: RunStep,
    },
    /// ZooKeeper committed a transaction. All of them are recorded, in the order of their numbers.
    Txn {
        /// Its number.
        zxid: i64,
        /// Whose request it was; 0 for ZooKeeper's own, such as the removal of a container.
        session: i64,
        /// What it did, in order, on paths below the namespace's root. Operations elsewhere are left out.
        ops: Vec<TxnOp>,
    },
    /// ZooKeeper refused a transaction: it changed nothing. Not needed to decide anything, and good to read.
    Refused {
        /// Its number.
        zxid: i64,
        /// Whose request it was.
        session: i64,
        /// Which operation failed and why, as far as it is known.
        why: String,
    },
    /// Somebody ended a session before its time, as no fault of a network does. What rests on a session's timeout (S5, and
    /// the runs of S6) promises nothing for its owner until it hears of it.
    Evicted {
        /// Which session.
        session: i64,
    },
    /// From here on no fault is injected, and every node, server and link is up: the liveness invariants count from here.
    Healed,
}

/// What a client asks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "call", rename_all = "snake_case")]
pub enum Call {
    /// To accept a job.
    Submit {
        /// Its id.
        job: JobId,
        /// Its kind.
        kind: Kind,
        /// Of its payload.
        payload: Digest,
        /// Its lane.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        lane: Option<Lane>,
    },
    /// To cancel a job.
    Cancel {
        /// Which.
        job: JobId,
    },
    /// To open a dead or cancelled job again.
    Retry {
        /// Which.
        job: JobId,
    },
    /// To tell how a job is, or to wait for its end.
    Read {
        /// Which.
        job: JobId,
    },
    /// To have a worker drain.
    Drain {
        /// Which.
        worker: WorkerId,
    },
    /// To remove the records of jobs that are over.
    Purge,
}

impl Call {
    /// The job that it is about, if it is about one.
    #[must_use]
    pub fn job(&self) -> Option<&JobId> {
        match self {
            Self::Submit { job, .. } | Self::Cancel { job } | Self::Retry { job } | Self::Read { job } => {
                Some(job)
            }
            Self::Drain { .. } | Self::Purge => None,
        }
    }
}

/// What a client is told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "snake_case")]
pub enum Answer {
    /// The job is accepted, now or by an earlier submission of the same.
    Accepted,
    /// The id belongs to another job, and the call was to let that be.
    Ignored,
    /// The id belongs to another job.
    Conflict,
    /// The job waited, and is cancelled.
    Cancelled,
    /// The job is assigned, and its worker is asked to stop it.
    CancelRequested,
    /// The job is queued again, as this generation.
    Reopened {
        /// Which.
        generation: u32,
    },
    /// The worker drains, told so by this call or before, or is gone since.
    Drains,
    /// There is no such worker.
    WorkerGone,
    /// So many records were removed.
    Purged {
        /// How many.
        removed: u64,
    },
    /// A read, or a call that found nothing to do: how the job is.
    Seen {
        /// As it was seen.
        job: JobSight,
    },
    /// It did not happen and will not: Jepsen's `fail`.
    Failed {
        /// The error.
        why: String,
    },
    /// It may have happened, or may yet: Jepsen's `info`.
    Unknown {
        /// The error.
        why: String,
    },
}

/// A job, as a client saw it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum JobSight {
    /// There is none.
    Absent,
    /// It cannot be read.
    Quarantined,
    /// It is there.
    There {
        /// Its generation.
        generation: u32,
        /// How far it is.
        is: Seen,
    },
}

/// How far a job is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Seen {
    /// Queued, delayed or assigned.
    Open,
    /// Over, with a result.
    Succeeded,
    /// Over, by a client's wish.
    Cancelled,
    /// Over, without a result.
    Dead,
}

/// A [`LeadershipState`](bellwether_core::machine::election::leadership::LeadershipState) as a history records it: only
/// which of the three. Session, epoch and time stand beside it, for all three alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Leading {
    /// It does not lead.
    Inactive,
    /// It leads and is cut off.
    Paused,
    /// It leads.
    Active,
}

/// What becomes of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Life {
    /// It begins.
    Started,
    /// It was told to leave, and is gone.
    Stopped,
    /// It was killed.
    Killed,
    /// It ended by itself, which it should not.
    Failed,
    /// It stands still (SIGSTOP).
    Frozen,
    /// It goes on (SIGCONT).
    Thawed,
    /// Its election handles no messages.
    ElectionStalled,
    /// Its election handles messages again.
    ElectionGoesOn,
}

/// What a run does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunStep {
    /// Recorded first thing by the handler.
    Started,
    /// It reported this checkpoint. Its attempt was not given up.
    Said(u8),
    /// Recorded when it is over, however. A run without it lasts until its node is killed.
    Ended,
}

/// An operation of a transaction, as it was carried out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case")]
pub enum TxnOp {
    /// The znode had this version. (ZooKeeper's log shows one more.)
    Check {
        /// Which znode.
        path: String,
        /// Its version.
        version: i32,
    },
    /// The znode was made.
    Create {
        /// Which, with its sequence number if it has one.
        path: String,
        /// Its data.
        data: Bytes,
        /// Whether it ends with the session.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        ephemeral: bool,
    },
    /// The znode's data was set.
    Set {
        /// Which.
        path: String,
        /// Its data.
        data: Bytes,
        /// The version that it has since.
        version: i32,
    },
    /// The znode was deleted.
    Delete {
        /// Which.
        path: String,
    },
    /// The session ended, and with it each of its ephemeral znodes.
    CloseSession,
}

/// A znode's data; in JSON, hexadecimal digits.
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
        bytes.map(Self::from).ok_or_else(|| format!("{} characters are no bytes in hexadecimal", text.len()))
    }
}

/// A line that is no event.
#[derive(Debug)]
pub struct LineError(serde_json::Error);

impl fmt::Display for LineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not an event: {}", self.0)
    }
}

impl std::error::Error for LineError {}

impl Event {
    /// As one line of JSON, without the line's end.
    #[must_use]
    pub fn to_line(&self) -> String {
        serde_json::to_string(self).expect("plain fields and string keys are always JSON")
    }

    /// Reads such a line.
    ///
    /// # Errors
    /// When it is no event.
    pub fn from_line(line: &str) -> Result<Self, LineError> {
        serde_json::from_str(line).map_err(LineError)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lines outlive builds: a recorded history must stay readable.
    #[test]
    fn the_lines_are_as_they_were() {
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
    fn what_is_no_event_is_refused() {
        for line in ["", "{}", r#"{"at":1,"event":"else"}"#] {
            assert!(Event::from_line(line).is_err(), "{line}");
        }
        assert!(Bytes::try_from("0".to_owned()).is_err());
        assert!(Bytes::try_from("é".to_owned()).is_err());
        assert!(Bytes::try_from("0é".to_owned()).is_err());
    }
}
