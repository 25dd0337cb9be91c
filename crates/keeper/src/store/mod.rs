//! Durable storage: the changed rows of each batch are committed before the batch is acknowledged.
//!
//! The model keeps the whole tree in memory and hands over the rows that a batch changed. A store writes all of them or
//! none, and returns when they would survive a power loss. It uses one file and the transactions of its database. There
//! is no separate log file, so there is no torn tail and no write order between two files.
//!
//! | need | use |
//! | --- | --- |
//! | survive a power loss | [`Disk`]: one file in a data directory |
//! | no files, no durability | [`Memory`] |
//! | a backup while the server runs | [`Store::reader`]: a snapshot of one commit, copied on another thread |
//!
//! **A failed commit has an unknown outcome.** Its requests must not be answered, and the process must end. A restart
//! reads the actual state, and clients learn that the outcome of their writes is unknown. After a failure a store
//! rejects every call, so that a server cannot continue by mistake.

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

/// The data of a znode. `None` is the null buffer, which differs from the empty one.
pub type Data = Option<Arc<[u8]>>;

/// A znode's row without its data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeRow {
    /// The transaction that created the znode.
    pub czxid: i64,
    /// The transaction that last changed the data.
    pub mzxid: i64,
    /// The transaction that last changed the children.
    pub pzxid: i64,
    /// Milliseconds since 1970.
    pub ctime: i64,
    /// Milliseconds since 1970.
    pub mtime: i64,
    /// The number of changes of the data.
    pub version: i32,
    /// The number of created children: the source of sequence numbers and of `cversion` in the stat.
    pub creates: i32,
    /// The number of changes of the ACL.
    pub aversion: i32,
    /// A session id, the marker of a container or a TTL, or 0.
    pub ephemeral_owner: i64,
    /// The ACL.
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

/// A changed row of a batch. For one row, later changes of a batch override earlier ones. A row belongs to a znode, not to a path: a
/// znode that is deleted and created again has another `czxid` and another row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// A znode was created or changed.
    PutNode {
        /// The path.
        path: Arc<str>,
        /// All fields except the data.
        row: NodeRow,
        /// The current data.
        data: Data,
        /// Whether the data differs from the stored data. If a thousand children are created, a store does not have to
        /// write the data of their parent a thousand times.
        data_changed: bool,
    },
    /// A znode was deleted.
    DeleteNode {
        /// The transaction that created it.
        czxid: i64,
        /// The path.
        path: Arc<str>,
    },
    /// A session was created, or its timeout was negotiated again.
    PutSession(i64, SessionRow),
    /// A session ended.
    DeleteSession(i64),
}

/// All changes of a batch of requests.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Changes {
    /// The newest transaction. It increases even if no row changes, because failed writes consume a number.
    pub zxid: i64,
    /// The rows, in the order of their changes.
    pub rows: Vec<Change>,
}

/// A stored znode: path, row, data.
pub type StoredNode = (String, NodeRow, Data);

/// The whole content of a store.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Snapshot {
    /// The newest transaction.
    pub zxid: i64,
    /// In the order of their creation. Znodes of one transaction are sorted by path. So parents come before their children.
    pub nodes: Vec<StoredNode>,
    /// Id, row.
    pub sessions: Vec<(i64, SessionRow)>,
}

/// Storage of the rows.
pub trait Store: Send {
    /// Reads all rows, once, before the first commit.
    ///
    /// # Errors
    /// If a row cannot be read. No row is skipped: an incomplete tree is never served.
    fn load(&mut self) -> Result<Snapshot, StoreError>;

    /// Writes a batch, all rows or none. On return it survives a power loss.
    ///
    /// # Errors
    /// The outcome is unknown, and every later call fails with [`StoreError::Failed`]: end the process.
    fn commit(&mut self, changes: &Changes) -> Result<(), StoreError>;

    /// Does a part of the store's deferred work; returns whether there is more. Call it when no commit is waiting: it
    /// can take as long as a long commit.
    ///
    /// # Errors
    /// See [`commit`](Self::commit).
    fn tidy(&mut self) -> Result<bool, StoreError> {
        Ok(false)
    }

    /// Returns an immutable snapshot of the last commit, for a backup on another thread. The cost is that of the
    /// deferred work and, for a file, does not depend on the size of the tree. Commits continue in the meantime; until
    /// the snapshot is dropped, the file grows by the pages that they change.
    ///
    /// # Errors
    /// If the file cannot be read.
    fn reader(&mut self) -> Result<Box<dyn Reader>, StoreError>;

    /// Returns the status for operators. Cheap enough to call every second.
    fn status(&self) -> Status;
}

/// An immutable snapshot of one commit.
pub trait Reader: Send {
    /// Writes the snapshot to a new file for [`restore`]. The file is atomic and durable on return.
    ///
    /// # Errors
    /// If the file exists or cannot be written.
    fn backup(self: Box<Self>, to: &Path) -> Result<Backup, StoreError>;
}

/// The content of a backup.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backup {
    /// The newest transaction.
    pub zxid: i64,
    /// The number of znodes.
    pub nodes: u64,
    /// The length of the file.
    pub bytes: u64,
}

/// The status of a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    /// The file; `None` if the data ends with the process.
    pub file: Option<PathBuf>,
    /// The length of the file, or 0.
    pub bytes: u64,
    /// Batches committed since the start.
    pub commits: u64,
}
