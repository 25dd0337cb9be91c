//! In-memory storage, for tests and for servers without durability.
//!
//! Paths and data are shared with the model, so the rows only cost the memory of their stats. They are needed to
//! restore a second model from them in tests, and to make backups of a server without files.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use super::{
    Backup, Change, Changes, Data, NodeRow, Reader, SessionRow, Snapshot, Status, Store, StoreError,
};
use crate::by_path::ByPath;

/// A store without a file.
#[derive(Debug, Clone, Default)]
pub struct Memory {
    zxid: i64,
    /// Sorted only when read, which is rare: keeping the rows sorted would cost more than the rest of a commit.
    nodes: ByPath<Box<(NodeRow, Data)>>,
    sessions: BTreeMap<i64, SessionRow>,
    commits: u64,
}

impl Memory {
    /// Creates an empty store.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the data of a znode; `None` if it does not exist.
    #[cfg(test)]
    pub(crate) fn data(&self, path: &str) -> Option<Data> {
        self.nodes.get(path).map(|row| row.1.clone())
    }

    /// Returns the rows, unsorted.
    fn snapshot(&self) -> Snapshot {
        let nodes = self.nodes.iter();
        let nodes =
            nodes.map(|(path, row)| (path.as_ref().to_owned(), row.0.clone(), row.1.clone())).collect();
        let sessions = self.sessions.iter().map(|(id, row)| (*id, row.clone())).collect();
        Snapshot { zxid: self.zxid, nodes, sessions }
    }
}

fn sorted(mut snapshot: Snapshot) -> Snapshot {
    snapshot
        .nodes
        .sort_unstable_by(|(left, one, _), (right, other, _)| (one.czxid, left).cmp(&(other.czxid, right)));
    snapshot
}

impl Store for Memory {
    fn load(&mut self) -> Result<Snapshot, StoreError> {
        Ok(sorted(self.snapshot()))
    }

    fn commit(&mut self, changes: &Changes) -> Result<(), StoreError> {
        for change in &changes.rows {
            match change {
                Change::PutNode { path, row, data, data_changed: _ } => {
                    self.nodes.insert(Arc::clone(path), Box::new((row.clone(), data.clone())));
                }
                Change::DeleteNode { czxid, path } => {
                    if self.nodes.get(path).is_some_and(|row| row.0.czxid == *czxid) {
                        self.nodes.remove(path);
                    }
                }
                Change::PutSession(id, row) => drop(self.sessions.insert(*id, row.clone())),
                Change::DeleteSession(id) => drop(self.sessions.remove(id)),
            }
        }
        self.zxid = changes.zxid;
        self.commits += 1;
        Ok(())
    }

    /// Unlike the snapshot of a file, this one is a copy of the paths and stats.
    fn reader(&mut self) -> Result<Box<dyn Reader>, StoreError> {
        Ok(Box::new(View(self.snapshot())))
    }

    fn status(&self) -> Status {
        Status { file: None, bytes: 0, commits: self.commits }
    }
}

struct View(
    #[cfg_attr(not(feature = "server"), allow(dead_code, reason = "read only by backups to files"))] Snapshot,
);

impl Reader for View {
    #[cfg(feature = "server")]
    fn backup(self: Box<Self>, to: &Path) -> Result<Backup, StoreError> {
        super::disk::backup_snapshot(&sorted(self.0), to)
    }

    #[cfg(not(feature = "server"))]
    fn backup(self: Box<Self>, to: &Path) -> Result<Backup, StoreError> {
        Err(StoreError::Foreign { path: to.to_owned(), found: "a build without files".to_owned() })
    }
}
