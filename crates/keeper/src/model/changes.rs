//! Tracks the rows that changed since the last hand-over to the store.
//!
//! Only the keys of rows are recorded; the rows are read when they are handed over, so a znode that changed a thousand
//! times in a batch is written once.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::session::Sessions;
use super::tree::Tree;
use crate::by_path::ByPath;
use crate::store::{Change, Changes};

/// The changed part of a znode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Part {
    /// The stat or the ACL.
    Row,
    /// The data and the stat.
    RowAndData,
}

#[derive(Debug)]
pub(super) struct Dirty {
    /// The transaction of the last hand-over. No znode of a later one is stored.
    stored: i64,
    nodes: ByPath<Part>,
    /// The keys of `nodes` in the order of their first changes. The map has no stable order, and a sorted map would
    /// compare long, similar paths for each change.
    order: Vec<Arc<str>>,
    /// The stored znodes that were deleted: the transactions that created them, and their paths.
    deleted: Vec<(i64, Arc<str>)>,
    sessions: BTreeSet<i64>,
}

impl Dirty {
    /// Tracks the changes after a transaction.
    pub(super) fn since(zxid: i64) -> Self {
        Self {
            stored: zxid,
            nodes: ByPath::default(),
            order: Vec::new(),
            deleted: Vec::new(),
            sessions: BTreeSet::new(),
        }
    }

    pub(super) fn node(&mut self, path: &Arc<str>, part: Part) {
        match self.nodes.get_mut(path) {
            Some(known) => *known = part.max(*known),
            None => {
                self.nodes.insert(Arc::clone(path), part);
                self.order.push(Arc::clone(path));
            }
        }
    }

    /// Records that a znode was deleted. Another one may have its path by the time of the hand-over.
    pub(super) fn deleted(&mut self, path: &Arc<str>, czxid: i64) {
        self.node(path, Part::RowAndData);
        if czxid <= self.stored {
            self.deleted.push((czxid, Arc::clone(path)));
        }
    }

    pub(super) fn session(&mut self, id: i64) {
        self.sessions.insert(id);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.order.is_empty() && self.sessions.is_empty()
    }

    /// Returns the number of changed znodes.
    pub(super) fn nodes(&self) -> usize {
        self.nodes.len()
    }

    /// Returns the current rows of changed znodes and the deleted rows. Rows are independent of each other.
    pub(super) fn take(&mut self, zxid: i64, tree: &Tree, sessions: &Sessions) -> Changes {
        self.stored = zxid;
        let mut rows = Vec::with_capacity(self.nodes.len() + self.sessions.len());
        rows.extend(self.deleted.drain(..).map(|(czxid, path)| Change::DeleteNode { czxid, path }));
        for path in self.order.drain(..) {
            let Some(node) = tree.get(&path) else { continue };
            rows.push(Change::PutNode {
                row: node.row(),
                data: node.data.clone(),
                data_changed: self.nodes.get(&path) == Some(&Part::RowAndData),
                path,
            });
        }
        self.nodes.clear();
        for id in std::mem::take(&mut self.sessions) {
            rows.push(match sessions.get(id) {
                Some(session) => Change::PutSession(id, session.row()),
                None => Change::DeleteSession(id),
            });
        }
        Changes { zxid, rows }
    }
}
