//! Which rows changed since the store was last handed any.
//!
//! Rows are remembered by name and read when they are handed over: a znode that changed a thousand times in a batch
//! is written once.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::session::Sessions;
use super::tree::Tree;
use crate::store::{Change, Changes};

/// What of a znode changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Part {
    /// Its stat or ACL.
    Row,
    /// Its data, and its stat with it.
    RowAndData,
}

#[derive(Debug, Default)]
pub(super) struct Dirty {
    nodes: BTreeMap<Arc<str>, Part>,
    sessions: BTreeSet<i64>,
}

impl Dirty {
    pub(super) fn node(&mut self, path: &Arc<str>, part: Part) {
        match self.nodes.get_mut(path) {
            Some(known) => *known = part.max(*known),
            None => {
                self.nodes.insert(Arc::clone(path), part);
            }
        }
    }

    pub(super) fn session(&mut self, id: i64) {
        self.sessions.insert(id);
    }

    /// How many znodes changed.
    pub(super) fn nodes(&self) -> usize {
        self.nodes.len()
    }

    /// The rows as they are now, in the order of their names: no row depends on another.
    pub(super) fn take(&mut self, zxid: i64, tree: &Tree, sessions: &Sessions) -> Changes {
        let mut rows = Vec::with_capacity(2 * self.nodes.len() + self.sessions.len());
        for (path, part) in std::mem::take(&mut self.nodes) {
            let Some(node) = tree.get(&path) else {
                rows.push(Change::DeleteNode(path.as_ref().to_owned()));
                continue;
            };
            rows.push(Change::PutNode(path.as_ref().to_owned(), node.row()));
            if part == Part::RowAndData {
                rows.push(Change::PutData(path.as_ref().to_owned(), node.data.clone()));
            }
        }
        for id in std::mem::take(&mut self.sessions) {
            rows.push(match sessions.get(id) {
                Some(session) => Change::PutSession(id, session.row()),
                None => Change::DeleteSession(id),
            });
        }
        Changes { zxid, rows }
    }
}
