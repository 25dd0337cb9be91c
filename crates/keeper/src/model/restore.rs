//! Creates a model: a new one, or from stored rows.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::changes::Part;
use super::node::{Lifetime, Node};
use super::path;
use super::tree::Tree;
use super::{Config, Model, Now};
use crate::store::Snapshot;
use bellwether_remedy::{ErrorClass, impl_remedy};

/// A snapshot that is not a valid tree.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RestoreError {
    /// A path is invalid or occurs twice.
    #[error("the stored path {path:?} is invalid or occurs twice")]
    Path {
        /// The path.
        path: String,
    },
    /// The parent is missing.
    #[error("the stored znode {path} has no parent")]
    Orphan {
        /// The path.
        path: String,
    },
    /// The session is missing, so the znode would never be deleted.
    #[error("the stored ephemeral znode {path} belongs to no session")]
    Ownerless {
        /// The path.
        path: String,
    },
}

impl RestoreError {
    /// Returns the class of the error.
    #[must_use]
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::Path { .. } | Self::Orphan { .. } | Self::Ownerless { .. } => ErrorClass::Unreadable,
        }
    }
}

impl_remedy!(RestoreError);

impl Model {
    /// Creates the model of a new server.
    #[must_use]
    pub fn new(config: Config, now: Now) -> Self {
        let mut model = Self::with_tree(config, 0, Tree::new(), now);
        for special in ["/", path::SYSTEM, path::QUOTA, path::CONFIG] {
            model.dirty.node(&Arc::from(special), Part::RowAndData);
        }
        model
    }

    /// Restores the model from stored rows. An empty snapshot creates a new one. Every session gets its full timeout to
    /// re-attach.
    ///
    /// # Errors
    /// If the snapshot is not a valid tree.
    pub fn restore(config: Config, snapshot: Snapshot, now: Now) -> Result<Self, RestoreError> {
        let Snapshot { zxid, nodes, sessions } = snapshot;
        if nodes.is_empty() {
            return Ok(Self::new(config, now));
        }
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
