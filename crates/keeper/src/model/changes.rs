//! Which rows changed since the store was last handed any.
//!
//! Rows are remembered by name and read when they are handed over: a znode that changed a thousand times in a batch
//! is written once.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::session::Sessions;
use super::tree::Tree;
use crate::by_path::ByPath;
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
    nodes: ByPath<Part>,
    /// The keys of `nodes`, in the order of their first changes: a map of strings is no order, and a sorted one costs
    /// each change some comparisons of long and similar paths.
    order: Vec<Arc<str>>,
    sessions: BTreeSet<i64>,
}

impl Dirty {
    pub(super) fn node(&mut self, path: &Arc<str>, part: Part) {
        match self.nodes.get_mut(path) {
            Some(known) => *known = part.max(*known),
            None => {
                self.nodes.insert(Arc::clone(path), part);
                self.order.push(Arc::clone(path));
            }
        }
    }

    pub(super) fn session(&mut self, id: i64) {
        self.sessions.insert(id);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.order.is_empty() && self.sessions.is_empty()
    }

    /// How many znodes changed.
    pub(super) fn nodes(&self) -> usize {
        self.nodes.len()
    }

    /// The rows as they are now: no row depends on another.
    pub(super) fn take(&mut self, zxid: i64, tree: &Tree, sessions: &Sessions) -> Changes {
        let mut rows = Vec::with_capacity(self.nodes.len() + self.sessions.len());
        for path in self.order.drain(..) {
            rows.push(match tree.get(&path) {
                Some(node) => Change::PutNode {
                    row: node.row(),
                    data: node.data.clone(),
                    data_changed: self.nodes.get(&path) == Some(&Part::RowAndData),
                    path,
                },
                None => Change::DeleteNode(path),
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
