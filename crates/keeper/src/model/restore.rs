//! From nothing, or from what a store holds, to a model.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::changes::Part;
use super::node::{Lifetime, Node};
use super::path;
use super::tree::Tree;
use super::{Config, Model, Now};
use crate::store::Snapshot;

/// A snapshot that no model can have written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RestoreError {
    /// It is no path, or it is there twice.
    #[error("the stored path {path:?} is malformed or doubled")]
    Path {
        /// The path.
        path: String,
    },
    /// Its parent is missing.
    #[error("the stored znode {path} has no parent")]
    Orphan {
        /// Its path.
        path: String,
    },
    /// Its session is missing: it would never go.
    #[error("the stored ephemeral znode {path} belongs to no session")]
    Ownerless {
        /// Its path.
        path: String,
    },
}

impl Model {
    /// A server that never ran.
    #[must_use]
    pub fn new(config: Config, now: Now) -> Self {
        let mut model = Self::with_tree(config, 0, Tree::new(), now);
        for special in ["/", path::SYSTEM, path::QUOTA, path::CONFIG] {
            model.dirty.node(&Arc::from(special), Part::RowAndData);
        }
        model
    }

    /// The server that handed out these rows. An empty snapshot makes a new one. Sessions have their whole timeouts
    /// to come back.
    pub fn restore(config: Config, snapshot: Snapshot, now: Now) -> Result<Self, RestoreError> {
        let Snapshot { zxid, mut nodes, sessions } = snapshot;
        if nodes.is_empty() {
            return Ok(Self::new(config, now));
        }
        // A parent's path is the beginning of its children's, and so comes first.
        nodes.sort_unstable_by(|(left, ..), (right, ..)| left.cmp(right));
        let mut tree = Tree::bare();
        let owners: BTreeSet<i64> = sessions.iter().map(|&(id, _)| id).collect();
        for (path, row, data) in nodes {
            if !path::is_valid(&path) || tree.get(&path).is_some() {
                return Err(RestoreError::Path { path });
            }
            if path::ancestors(&path).next().is_some_and(|parent| tree.get(parent).is_none()) {
                return Err(RestoreError::Orphan { path });
            }
            let acl = tree.intern(row.acl.to_vec());
            let node = Node::from_row(&row, acl, data);
            if matches!(node.owner.lifetime(), Lifetime::Session(owner) if !owners.contains(&owner)) {
                return Err(RestoreError::Ownerless { path });
            }
            tree.attach(path.into(), Box::new(node));
        }
        let mut model = Self::with_tree(config, zxid, tree, now);
        for (id, row) in sessions {
            model.sessions.restore(now.monotonic_ms, id, row);
        }
        Ok(model)
    }
}
