//! Replies and notifications.

use std::sync::Arc;

use super::{Acl, ErrorCode, Id};

/// The reply to a [`ConnectRequest`](super::ConnectRequest).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectResponse {
    /// The session timeout in milliseconds, after clamping; 0 if the session has expired.
    pub timeout_ms: i32,
    /// The session; 0 if it has expired.
    pub session_id: i64,
    /// 16 bytes.
    pub password: Vec<u8>,
    /// Echoed only to clients that sent the flag.
    pub read_only: Option<bool>,
}

/// The stat of a znode, as on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[allow(missing_docs, reason = "the names of the protocol")]
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

/// The result of one operation of a multi, or of one read of a multi-read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OpResult {
    /// `create`
    Create {
        /// The path, with the sequence number if there is one.
        path: String,
    },
    /// `create2`, `createContainer`, `createTTL`.
    Create2 {
        /// The path, with the sequence number if there is one.
        path: String,
        /// The stat.
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
        /// The data.
        data: Option<Arc<[u8]>>,
        /// The stat.
        stat: Stat,
    },
    /// `getChildren` in a multi-read.
    GetChildren(Vec<String>),
    /// An error code; 0 for an operation before the one that failed.
    Error(i32),
}

/// The body of a reply without an error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Response {
    /// No body.
    Empty,
    /// `addWatch`: a zero.
    WatchAdded,
    /// `create`
    Path(String),
    /// `create2`, `createContainer`, `createTTL`.
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

/// A reply: header and body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// The number of the request; clients use −2 for pings, −4 for auth, −8 for setWatches.
    pub xid: i32,
    /// The newest transaction at the time of the reply (for exceptions of ZooKeeper see the differential test).
    pub zxid: i64,
    /// The body or the error.
    pub result: Result<Response, ErrorCode>,
}

/// The kind of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventKind {
    /// The znode was created.
    NodeCreated,
    /// The znode was deleted.
    NodeDeleted,
    /// The data of the znode changed.
    NodeDataChanged,
    /// The list of children changed.
    NodeChildrenChanged,
    /// A persistent watch was removed. 3.9 never sends it; it is here to complete the numbers.
    PersistentWatchRemoved,
}

/// A notification.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WatchedEvent {
    /// The kind.
    pub kind: EventKind,
    /// The path.
    pub path: String,
    /// The zxid of the transaction; −1 from servers before 3.9.
    pub zxid: i64,
}
