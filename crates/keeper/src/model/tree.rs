//! The znodes by path, with indexes and counts.
//!
//! Every method keeps the map, the child lists and the indexes consistent: the path of a znode is a key of the map, is
//! in its parent's list of children, and is in the index of its lifetime, or it is in none of them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::acl::AclPool;
use super::node::{Lifetime, Node, Owner};
use super::path;
use crate::by_path::ByPath;
use crate::proto::Acl;

#[derive(Debug)]
pub(super) struct Tree {
    nodes: ByPath<Box<Node>>,
    ephemerals: BTreeMap<i64, BTreeSet<Arc<str>>>,
    /// Containers and TTL znodes, which the server can remove.
    perishable: BTreeSet<Arc<str>>,
    /// The total length of all paths and data.
    bytes: u64,
    pub(super) acls: AclPool,
}

impl Tree {
    /// Creates the tree of a new server.
    pub(super) fn new() -> Self {
        let mut tree = Self {
            nodes: ByPath::default(),
            ephemerals: BTreeMap::new(),
            perishable: BTreeSet::new(),
            bytes: 0,
            acls: AclPool::default(),
        };
        let empty = || Some(Arc::from([]));
        let open = tree.acls.open();
        let read_only = tree.acls.read_only();
        for special in ["/", path::SYSTEM, path::QUOTA] {
            tree.attach(
                Arc::from(special),
                Box::new(Node::new(0, 0, Owner::PERSISTENT, open.clone(), empty())),
            );
        }
        let mut config = Node::new(0, 0, Owner::PERSISTENT, read_only, empty());
        config.aversion = -1;
        tree.attach(Arc::from(path::CONFIG), Box::new(config));
        tree
    }

    /// Creates an empty tree for a restore.
    pub(super) fn bare() -> Self {
        let mut tree = Self::new();
        tree.nodes.clear();
        tree.bytes = 0;
        tree
    }

    pub(super) fn get(&self, path: &str) -> Option<&Node> {
        self.nodes.get(path::canonical(path)).map(Box::as_ref)
    }

    /// Returns a znode with its key, which can be shared instead of copied.
    pub(super) fn entry(&self, path: &str) -> Option<(&Arc<str>, &Node)> {
        self.nodes.get_key_value(path::canonical(path)).map(|(path, node)| (path, node.as_ref()))
    }

    /// Returns a znode to change its stat or ACL. Use [`set_data`](Self::set_data) for data, which is counted.
    pub(super) fn get_mut(&mut self, path: &str) -> Option<&mut Node> {
        self.nodes.get_mut(path::canonical(path)).map(Box::as_mut)
    }

    /// Inserts a znode and returns its parent without changing the parent's stat. During a restore the caller must
    /// ensure that the parent exists.
    pub(super) fn attach(&mut self, path: Arc<str>, node: Box<Node>) -> Option<&mut Node> {
        self.bytes += (path.len() + node.data_length()) as u64;
        match node.owner.lifetime() {
            Lifetime::Persistent => {}
            Lifetime::Session(session) => {
                self.ephemerals.entry(session).or_default().insert(Arc::clone(&path));
            }
            Lifetime::Container | Lifetime::Ttl(_) => {
                self.perishable.insert(Arc::clone(&path));
            }
        }
        self.nodes.insert(Arc::clone(&path), node);
        let parent = self.nodes.get_mut(path::ancestors(&path).next()?)?;
        parent.add_child(path);
        Some(parent)
    }

    /// Removes a znode without changing its parent's stat.
    pub(super) fn detach(&mut self, path: &str) -> Option<(Arc<str>, Box<Node>)> {
        let (path, node) = self.nodes.remove_entry(path)?;
        self.bytes -= (path.len() + node.data_length()) as u64;
        match node.owner.lifetime() {
            Lifetime::Persistent => {}
            Lifetime::Session(session) => {
                if let Some(paths) = self.ephemerals.get_mut(&session) {
                    paths.remove(&path);
                    if paths.is_empty() {
                        self.ephemerals.remove(&session);
                    }
                }
            }
            Lifetime::Container | Lifetime::Ttl(_) => {
                self.perishable.remove(&path);
            }
        }
        if let Some(parent) = path::ancestors(&path).next().and_then(|parent| self.nodes.get_mut(parent)) {
            parent.remove_child(&path);
        }
        Some((path, node))
    }

    /// Replaces the data and returns the old data.
    pub(super) fn set_data(&mut self, path: &str, data: Option<Arc<[u8]>>) -> Option<Arc<[u8]>> {
        let node = self.nodes.get_mut(path::canonical(path))?;
        self.bytes -= node.data_length() as u64;
        let old = std::mem::replace(&mut node.data, data);
        self.bytes += node.data_length() as u64;
        old
    }

    /// Returns the shared copy of an ACL.
    pub(super) fn intern(&mut self, acl: Vec<Acl>) -> Arc<[Acl]> {
        self.acls.intern(acl)
    }

    /// Returns the number of znodes, including the root.
    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns all znodes, unsorted.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&Arc<str>, &Node)> {
        self.nodes.iter().map(|(path, node)| (path, node.as_ref()))
    }

    /// Returns the number of descendants. As in ZooKeeper, the path `""` counts the root itself.
    pub(super) fn descendants(&self, path: &str) -> usize {
        if path.is_empty() {
            return self.nodes.len();
        }
        if path == "/" {
            return self.nodes.len() - 1;
        }
        // A loop instead of recursion: a hostile path can be as deep as the length of a frame.
        let mut waiting: Vec<&str> = vec![path];
        let mut found = 0;
        while let Some(next) = waiting.pop() {
            let children = self.get(next).into_iter().flat_map(Node::children);
            let before = waiting.len();
            waiting.extend(children.map(|child| child.as_ref()));
            found += waiting.len() - before;
        }
        found
    }

    /// Returns the ephemeral znodes of a session, sorted by path.
    pub(super) fn ephemerals_of(&self, session: i64) -> impl Iterator<Item = &Arc<str>> {
        self.ephemerals.get(&session).into_iter().flatten()
    }

    /// Returns the sessions with ephemeral znodes, and their number of ephemeral znodes.
    pub(super) fn ephemeral_owners(&self) -> impl Iterator<Item = (i64, usize)> {
        self.ephemerals.iter().map(|(&session, paths)| (session, paths.len()))
    }

    /// Returns containers and TTL znodes, sorted by path.
    pub(super) fn perishable(&self) -> impl Iterator<Item = &Arc<str>> {
        self.perishable.iter()
    }
}
