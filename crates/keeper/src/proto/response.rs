//! What clients are answered and notified of.

use std::sync::Arc;

use super::{Acl, ErrorCode, Id};

/// The answer to a [`ConnectRequest`](super::ConnectRequest).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectResponse {
    /// In milliseconds, after clamping; 0 tells that the session is over.
    pub timeout_ms: i32,
    /// 0 when it is over.
    pub session_id: i64,
    /// 16 bytes.
    pub password: Vec<u8>,
    /// Echoed only to clients that sent the flag.
    pub read_only: Option<bool>,
}

/// A znode's stat, as it is on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[allow(missing_docs, reason = "the protocol's own names")]
pub struct Stat {
    pub czxid: i64,
    pub mzxid: i64,
    pub ctime: i64,
    pub mtime: i64,
    pub version: i32,
    pub cversion: i32,
    pub aversion: i32,
    pub ephemeral_owner: i64,
    pub data_length: i32,
    pub num_children: i32,
    pub pzxid: i64,
}

/// What one operation of a multi, or a read of a multi-read, came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OpResult {
    /// `create`
    Create {
        /// The path, with the number of a sequential one.
        path: String,
    },
    /// `create2` and its kin.
    Create2 {
        /// The path, with the number of a sequential one.
        path: String,
        /// Its stat.
        stat: Stat,
    },
    /// `delete`
    Delete,
    /// `setData`
    SetData(Stat),
    /// `check`
    Check,
    /// `getData` in a multi-read.
    GetData {
        /// Its data.
        data: Option<Arc<[u8]>>,
        /// Its stat.
        stat: Stat,
    },
    /// `getChildren` in a multi-read.
    GetChildren(Vec<String>),
    /// The number of a code: 0 for an operation before the one that failed.
    Error(i32),
}

/// The body of an answer; the header's error is 0.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Response {
    /// Nothing behind the header.
    Empty,
    /// `addWatch`: a zero, where others have nothing.
    WatchAdded,
    /// `create`
    Path(String),
    /// `create2` and its kin.
    PathStat(String, Stat),
    /// `exists`, `setData`, `setACL`
    Stat(Stat),
    /// `getData`
    Data(Option<Arc<[u8]>>, Stat),
    /// `getChildren`, `getEphemerals`
    Names(Vec<String>),
    /// `getChildren2`
    NamesStat(Vec<String>, Stat),
    /// `getACL`
    Acl(Vec<Acl>, Stat),
    /// `getAllChildrenNumber`
    Count(i32),
    /// `multi`, `multiRead`
    Multi(Vec<OpResult>),
    /// `sync`
    Synced(String),
    /// `whoAmI`
    Identities(Vec<Id>),
}

/// An answer: its header and its body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// The request's number: −2 for pings, −4 for auth, −8 for setWatches.
    pub xid: i32,
    /// The newest transaction when it was answered (as real servers fill it: see the differential test).
    pub zxid: i64,
    /// The body, or why there is none.
    pub result: Result<Response, ErrorCode>,
}

/// What happened to a watched znode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventKind {
    /// It was created.
    NodeCreated,
    /// It was deleted.
    NodeDeleted,
    /// Its data changed.
    NodeDataChanged,
    /// Its list of children changed.
    NodeChildrenChanged,
    /// A persistent watch was removed (3.9 tells nobody; kept for completeness of the numbers).
    PersistentWatchRemoved,
}

/// A notification.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WatchedEvent {
    /// What happened.
    pub kind: EventKind,
    /// To which znode.
    pub path: String,
    /// The transaction; −1 from servers before 3.9.
    pub zxid: i64,
}
