//! Rows that end with the process, for tests and for servers whose users want neither files nor promises.
//!
//! Data is shared with the model, so keeping the rows costs their paths and stats. They are kept at all so that a
//! test can start a second model from them, and so that a backup of a server without files is possible.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use super::{Backup, Change, Changes, NodeRow, Reader, SessionRow, Snapshot, Status, Store, StoreError};

/// A store without a file.
#[derive(Debug, Clone, Default)]
pub struct Memory {
    zxid: i64,
    nodes: BTreeMap<String, NodeRow>,
    data: BTreeMap<String, Arc<[u8]>>,
    sessions: BTreeMap<i64, SessionRow>,
    commits: u64,
}

impl Memory {
    /// An empty store.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Data without a znode, which only a test's random batches make.
    #[cfg(test)]
    pub(crate) fn orphans(&self) -> impl Iterator<Item = &str> {
        self.data.keys().filter(|path| !self.nodes.contains_key(*path)).map(String::as_str)
    }

    fn snapshot(&self) -> Snapshot {
        Snapshot {
            zxid: self.zxid,
            nodes: self
                .nodes
                .iter()
                .map(|(path, row)| (path.clone(), row.clone(), self.data.get(path).cloned()))
                .collect(),
            sessions: self.sessions.iter().map(|(id, row)| (*id, row.clone())).collect(),
        }
    }
}

impl Store for Memory {
    fn load(&mut self) -> Result<Snapshot, StoreError> {
        Ok(self.snapshot())
    }

    fn commit(&mut self, changes: &Changes) -> Result<(), StoreError> {
        for change in &changes.rows {
            match change {
                Change::PutNode(path, row) => drop(self.nodes.insert(path.clone(), row.clone())),
                Change::PutData(path, Some(data)) => drop(self.data.insert(path.clone(), Arc::clone(data))),
                Change::PutData(path, None) => drop(self.data.remove(path)),
                Change::DeleteNode(path) => {
                    self.nodes.remove(path);
                    self.data.remove(path);
                }
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
        super::disk::backup_snapshot(&self.0, to)
    }

    #[cfg(not(feature = "server"))]
    fn backup(self: Box<Self>, to: &Path) -> Result<Backup, StoreError> {
        Err(StoreError::Foreign { path: to.to_owned(), found: "a build without files".to_owned() })
    }
}
