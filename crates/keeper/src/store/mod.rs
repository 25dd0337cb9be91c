//! What survives: the changed rows of each batch, committed before anybody hears of them.
//!
//! The model keeps the whole tree in memory and hands over the rows that a batch changed; a store writes them
//! all or none, and returns once they would survive a power loss. There is no log to replay and none to truncate.

use std::sync::Arc;

use crate::proto::Acl;

/// A znode's row without its data. A znode of a thousand children is not to rewrite its data for each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeRow {
    /// The transaction that created it.
    pub czxid: i64,
    /// The transaction that changed its data last.
    pub mzxid: i64,
    /// The transaction that changed its children last.
    pub pzxid: i64,
    /// Milliseconds since 1970.
    pub ctime: i64,
    /// Milliseconds since 1970.
    pub mtime: i64,
    /// Changes of its data.
    pub version: i32,
    /// Creations of children: the source of the sequence numbers and of the stat's `cversion`.
    pub creates: i32,
    /// Changes of its ACL.
    pub aversion: i32,
    /// A session, a container's or a TTL's mark, or 0.
    pub ephemeral_owner: i64,
    /// Who may do what.
    pub acl: Arc<[Acl]>,
}

/// A session's row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionRow {
    /// The negotiated timeout in milliseconds.
    pub timeout_ms: i32,
    /// 16 bytes.
    pub password: Vec<u8>,
}

/// One row that a batch changed. Later changes of a batch win over earlier ones of the same row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// A znode was made, or its stat or ACL changed.
    PutNode(String, NodeRow),
    /// A znode's data changed; `None` is the null buffer.
    PutData(String, Option<Arc<[u8]>>),
    /// A znode and its data went.
    DeleteNode(String),
    /// A session began, or its timeout was negotiated anew.
    PutSession(i64, SessionRow),
    /// A session ended.
    DeleteSession(i64),
}

/// All that a batch of requests changed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Changes {
    /// The newest transaction. It moves even when no row does: failed writes take a number, too.
    pub zxid: i64,
    /// The rows, in the order in which they changed.
    pub rows: Vec<Change>,
}

/// All that a store holds.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Snapshot {
    /// The newest transaction.
    pub zxid: i64,
    /// Path, row, data.
    pub nodes: Vec<(String, NodeRow, Option<Arc<[u8]>>)>,
    /// Id, row.
    pub sessions: Vec<(i64, SessionRow)>,
}
