//! What survives: the changed rows of each batch, committed before anybody hears of them.
//!
//! The model keeps the whole tree in memory and hands over the rows that a batch changed; a store writes them
//! all or none, and returns once they would survive a power loss. There is one file, whose transactions are the
//! database's: no log file of our own beside it, so no torn tail and no order of two files.
//!
//! | a server wants | it takes |
//! | --- | --- |
//! | to survive a power loss | [`Disk`]: one file in a data directory |
//! | neither files nor promises | [`Memory`] |
//! | a backup while it serves | [`Store::reader`]: a view of one commit, copied on another thread |
//!
//! **What a failed commit means:** nobody knows whether the batch is there. Its requests must not be answered, and the
//! process has to end: a restart reads what really is there, and clients learn that their writes' outcome is unknown.
//! A store refuses everything after a failure, so that a server cannot forget this.

#[cfg(feature = "server")]
mod disk;
mod error;
mod memory;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::proto::Acl;

#[cfg(feature = "server")]
pub use disk::{Disk, RowError, restore};
pub use error::StoreError;
pub use memory::Memory;

/// A znode's data; `None` is the null buffer, which is not the empty one.
pub type Data = Option<Arc<[u8]>>;

/// A znode's row without its data.
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
    /// A znode was made, or something of it changed.
    PutNode {
        /// Its path.
        path: Arc<str>,
        /// All but its data.
        row: NodeRow,
        /// Its data as it is now.
        data: Data,
        /// Whether the data is other than the store has it. When a thousand children come, a store need not write
        /// their parent's data a thousand times.
        data_changed: bool,
    },
    /// A znode went.
    DeleteNode(Arc<str>),
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

/// A znode as it is read back: path, row, data.
pub type StoredNode = (String, NodeRow, Data);

/// All that a store holds.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Snapshot {
    /// The newest transaction.
    pub zxid: i64,
    /// Sorted by path: parents come before their children.
    pub nodes: Vec<StoredNode>,
    /// Id, row.
    pub sessions: Vec<(i64, SessionRow)>,
}

/// Where the rows go.
pub trait Store: Send {
    /// Reads all rows, once, before the first commit.
    ///
    /// # Errors
    /// When a row cannot be read. Nothing is skipped: a tree with a hole is not served.
    fn load(&mut self) -> Result<Snapshot, StoreError>;

    /// Writes a batch, all or none. On return it survives a power loss.
    ///
    /// # Errors
    /// The outcome is unknown, and every later call fails with [`StoreError::Failed`]: end the process.
    fn commit(&mut self, changes: &Changes) -> Result<(), StoreError>;

    /// Does a little of what this store puts off, and answers whether there is more of it. To be called when nobody
    /// waits for a commit; it takes as long as a long one.
    ///
    /// # Errors
    /// As [`commit`](Self::commit).
    fn tidy(&mut self) -> Result<bool, StoreError> {
        Ok(false)
    }

    /// A view of the last commit that does not change, for a backup on another thread. Taking it costs what the store has
    /// put off, and, in a file, nothing that grows with the tree; commits go on beside it; the file grows by what they
    /// change until it is dropped.
    ///
    /// # Errors
    /// When the file cannot be read.
    fn reader(&mut self) -> Result<Box<dyn Reader>, StoreError>;

    /// What an operator wants to know. Cheap enough to be asked every second.
    fn status(&self) -> Status;
}

/// One commit, as it was.
pub trait Reader: Send {
    /// Writes it to a new file, which [`restore`] reads: whole or not at all, and durable on return.
    ///
    /// # Errors
    /// When there is a file of that name, or it cannot be written.
    fn backup(self: Box<Self>, to: &Path) -> Result<Backup, StoreError>;
}

/// What a backup holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backup {
    /// The newest transaction in it.
    pub zxid: i64,
    /// Its znodes.
    pub nodes: u64,
    /// The file's length.
    pub bytes: u64,
}

/// A store, to an operator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    /// Its file; `None` when nothing survives the process.
    pub file: Option<PathBuf>,
    /// The file's length, or 0.
    pub bytes: u64,
    /// Batches committed since the start.
    pub commits: u64,
}
