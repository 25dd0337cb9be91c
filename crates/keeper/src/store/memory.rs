//! Rows that end with the process, for tests and for servers whose users want neither files nor promises.
//!
//! Paths and data are shared with the model, so keeping the rows costs their stats. They are kept at all so that a
//! test can start a second model from them, and so that a backup of a server without files is possible.

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
    /// Sorted when they are read, which is seldom: to keep many paths sorted costs more than all the rest of a commit.
    nodes: ByPath<Box<(NodeRow, Data)>>,
    sessions: BTreeMap<i64, SessionRow>,
    commits: u64,
}

impl Memory {
    /// An empty store.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The data of a znode, if there is one of this path.
    #[cfg(test)]
    pub(crate) fn data(&self, path: &str) -> Option<Data> {
        self.nodes.get(path).map(|row| row.1.clone())
    }

    /// In no order.
    fn snapshot(&self) -> Snapshot {
        let nodes = self.nodes.iter();
        let nodes =
            nodes.map(|(path, row)| (path.as_ref().to_owned(), row.0.clone(), row.1.clone())).collect();
        let sessions = self.sessions.iter().map(|(id, row)| (*id, row.clone())).collect();
        Snapshot { zxid: self.zxid, nodes, sessions }
    }
}

fn sorted(mut snapshot: Snapshot) -> Snapshot {
    snapshot.nodes.sort_unstable_by(|one, other| one.0.cmp(&other.0));
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
                Change::DeleteNode(path) => drop(self.nodes.remove(path)),
                Change::PutSession(id, row) => drop(self.sessions.insert(*id, row.clone())),
                Change::DeleteSession(id) => drop(self.sessions.remove(id)),
            }
        }
        self.zxid = changes.zxid;
        self.commits += 1;
        Ok(())
    }

    /// Unlike a file's, this view is a copy of the paths and stats.
    fn reader(&mut self) -> Result<Box<dyn Reader>, StoreError> {
        Ok(Box::new(View(self.snapshot())))
    }

    fn status(&self) -> Status {
        Status { file: None, bytes: 0, commits: self.commits }
    }
}

/// A copy of the rows.
struct View(#[cfg_attr(not(feature = "server"), allow(dead_code, reason = "only files read it"))] Snapshot);

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
