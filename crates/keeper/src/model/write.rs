//! Writes: each one validates, applies immediately, and records in a journal how to undo it.
//!
//! A write that fails has changed nothing. A multi that fails is undone from the journal, last step first, and causes
//! no notification. The order of the checks is that of ZooKeeper: it determines which of several errors a client sees,
//! and whether a client can learn that a znode exists.

use std::sync::Arc;

use super::Config;
use super::acl::{Identities, permission};
use super::changes::{Dirty, Part};
use super::node::{Lifetime, Node, Owner};
use super::path;
use super::tree::Tree;
use crate::proto::{Acl, CreateMode, ErrorCode, EventKind, Op, Stat};

/// The client, time and transaction of a write.
#[derive(Debug, Clone, Copy)]
pub(super) struct Author<'a> {
    pub(super) config: &'a Config,
    pub(super) identities: &'a Identities,
    pub(super) session: i64,
    pub(super) zxid: i64,
    pub(super) wall_ms: i64,
}

/// The result of one operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Done {
    Created { path: Arc<str>, stat: Stat },
    Deleted,
    DataSet(Stat),
    Checked,
}

/// An event for the watchers that can read the znode.
#[derive(Debug)]
pub(super) struct Event {
    pub(super) kind: EventKind,
    pub(super) path: Arc<str>,
    pub(super) acl: Arc<[Acl]>,
}

/// Undoes one step.
#[derive(Debug)]
enum Step {
    Created { path: Arc<str>, parent: Arc<str>, parent_pzxid: i64 },
    Deleted { path: Arc<str>, node: Box<Node>, parent: Arc<str>, parent_pzxid: i64 },
    DataSet { path: Arc<str>, data: Option<Arc<[u8]>>, mzxid: i64, mtime: i64, version: i32 },
    AclSet { path: Arc<str>, acl: Arc<[Acl]>, aversion: i32 },
}

/// The steps and events of a transaction.
#[derive(Debug, Default)]
pub(super) struct Journal {
    steps: Vec<Step>,
    events: Vec<Event>,
}

impl Journal {
    /// Undoes all steps exactly.
    pub(super) fn revert(self, tree: &mut Tree) {
        for step in self.steps.into_iter().rev() {
            match step {
                Step::Created { path, parent, parent_pzxid } => {
                    tree.detach(&path);
                    if let Some(parent) = tree.get_mut(&parent) {
                        parent.creates = parent.creates.wrapping_sub(1);
                        parent.pzxid = parent_pzxid;
                    }
                }
                Step::Deleted { path, node, parent, parent_pzxid } => {
                    tree.attach(path, node);
                    if let Some(parent) = tree.get_mut(&parent) {
                        parent.pzxid = parent_pzxid;
                    }
                }
                Step::DataSet { path, data, mzxid, mtime, version } => {
                    tree.set_data(&path, data);
                    if let Some(node) = tree.get_mut(&path) {
                        (node.mzxid, node.mtime, node.version) = (mzxid, mtime, version);
                    }
                }
                Step::AclSet { path, acl, aversion } => {
                    if let Some(node) = tree.get_mut(&path) {
                        (node.acl, node.aversion) = (acl, aversion);
                    }
                }
            }
        }
    }

    /// Records the changed rows; returns the events for watchers.
    pub(super) fn commit(self, dirty: &mut Dirty) -> Vec<Event> {
        for step in &self.steps {
            match step {
                Step::Created { path, parent, .. } => {
                    dirty.node(path, Part::RowAndData);
                    dirty.node(parent, Part::Row);
                }
                Step::Deleted { path, node, parent, .. } => {
                    dirty.deleted(path, node.czxid);
                    dirty.node(parent, Part::Row);
                }
                Step::DataSet { path, .. } => dirty.node(path, Part::RowAndData),
                Step::AclSet { path, .. } => dirty.node(path, Part::Row),
            }
        }
        self.events
    }

    fn event(&mut self, kind: EventKind, path: &Arc<str>, acl: &Arc<[Acl]>) {
        self.events.push(Event { kind, path: Arc::clone(path), acl: Arc::clone(acl) });
    }
}

impl Author<'_> {
    /// Executes one operation; changes nothing if it fails.
    pub(super) fn write(self, tree: &mut Tree, journal: &mut Journal, op: &Op) -> Result<Done, ErrorCode> {
        match op {
            Op::Create { path, data, acl, mode, stat: _ } => {
                self.create(tree, journal, path, data.clone(), acl, *mode)
            }
            Op::Delete { path, version } => self.delete(tree, journal, path, *version),
            Op::SetData { path, data, version } => self.set_data(tree, journal, path, data.clone(), *version),
            Op::Check { path, version } => self.check(tree, path, *version),
            Op::Unknown { code: _ } => Err(ErrorCode::BadArguments),
        }
    }

    fn create(
        self,
        tree: &mut Tree,
        journal: &mut Journal,
        asked: &str,
        data: Option<Arc<[u8]>>,
        acl: &[Acl],
        mode: CreateMode,
    ) -> Result<Done, ErrorCode> {
        let (owner, sequential) = self.owner(mode)?;
        let parent = path::parent(asked).ok_or(ErrorCode::BadArguments)?;
        let acl = tree.acls.resolve(self.identities, acl)?;
        let (parent_path, parent) = tree.entry(parent).ok_or(ErrorCode::NoNode)?;
        self.identities.check(permission::CREATE, &parent.acl)?;
        let path: Arc<str> =
            if sequential { format!("{asked}{:010}", parent.creates).into() } else { Arc::from(asked) };
        if !path::is_valid(&path) {
            return Err(ErrorCode::BadArguments);
        }
        if tree.get(&path).is_some() {
            return Err(ErrorCode::NodeExists);
        }
        if matches!(parent.owner.lifetime(), Lifetime::Session(_)) {
            return Err(ErrorCode::NoChildrenForEphemerals);
        }

        let length = path.len() + data.as_ref().map_or(0, |data| data.len());
        if tree.len() >= self.config.bounds.znodes || self.exceeds(tree, 0, length) {
            return Err(ErrorCode::QuotaExceeded);
        }

        let (parent_path, parent_pzxid) = (Arc::clone(parent_path), parent.pzxid);
        let parent_acl = Arc::clone(&parent.acl);
        let node = Node::new(self.zxid, self.wall_ms, owner, Arc::clone(&acl), data);
        let stat = node.stat();
        if let Some(parent) = tree.attach(Arc::clone(&path), Box::new(node)) {
            parent.creates = parent.creates.wrapping_add(1);
            parent.pzxid = self.zxid;
        }
        journal.event(EventKind::NodeCreated, &path, &acl);
        journal.event(EventKind::NodeChildrenChanged, &parent_path, &parent_acl);
        journal.steps.push(Step::Created { path: Arc::clone(&path), parent: parent_path, parent_pzxid });
        Ok(Done::Created { path, stat })
    }

    /// Returns whether `after` bytes instead of `before` exceed the bound. Fewer bytes than before never do.
    fn exceeds(self, tree: &Tree, before: usize, after: usize) -> bool {
        let growth = after.saturating_sub(before) as u64;
        growth > 0 && tree.bytes() + growth > self.config.bounds.data_bytes
    }

    fn owner(self, mode: CreateMode) -> Result<(Owner, bool), ErrorCode> {
        let ttl = |ms| {
            if !self.config.extended_types {
                return Err(ErrorCode::Unimplemented);
            }
            Owner::ttl(ms).ok_or(ErrorCode::BadArguments)
        };
        Ok(match mode {
            CreateMode::Persistent => (Owner::PERSISTENT, false),
            CreateMode::PersistentSequential => (Owner::PERSISTENT, true),
            CreateMode::Ephemeral => (Owner(self.session), false),
            CreateMode::EphemeralSequential => (Owner(self.session), true),
            CreateMode::Container => (Owner::CONTAINER, false),
            CreateMode::ContainerSequential => (Owner::CONTAINER, true),
            CreateMode::Ttl(ms) => (ttl(ms)?, false),
            CreateMode::TtlSequential(ms) => (ttl(ms)?, true),
        })
    }

    fn delete(
        self,
        tree: &mut Tree,
        journal: &mut Journal,
        path: &str,
        version: i32,
    ) -> Result<Done, ErrorCode> {
        let parent = path::parent(path).filter(|_| !path::is_special(path)).ok_or(ErrorCode::BadArguments)?;
        let parent = tree.get(parent).ok_or(ErrorCode::NoNode)?;
        self.identities.check(permission::DELETE, &parent.acl)?;
        let node = tree.get(path).ok_or(ErrorCode::NoNode)?;
        next_version(node.version, version)?;
        if node.child_count() > 0 {
            return Err(ErrorCode::NotEmpty);
        }
        remove(tree, journal, self.zxid, path);
        Ok(Done::Deleted)
    }

    fn set_data(
        self,
        tree: &mut Tree,
        journal: &mut Journal,
        path: &str,
        data: Option<Arc<[u8]>>,
        version: i32,
    ) -> Result<Done, ErrorCode> {
        let (path, node) = valid(tree, path)?;
        self.identities.check(permission::WRITE, &node.acl)?;
        let version = next_version(node.version, version)?;
        if self.exceeds(tree, node.data_length(), data.as_ref().map_or(0, |data| data.len())) {
            return Err(ErrorCode::QuotaExceeded);
        }

        let path = Arc::clone(path);
        journal.event(EventKind::NodeDataChanged, &path, &node.acl);
        let (mzxid, mtime, old_version) = (node.mzxid, node.mtime, node.version);
        let data = tree.set_data(&path, data);
        let node = tree.get_mut(&path).expect("the znode exists: its version was read above");
        (node.mzxid, node.mtime, node.version) = (self.zxid, self.wall_ms, version);
        let stat = node.stat();
        journal.steps.push(Step::DataSet { path, data, mzxid, mtime, version: old_version });
        Ok(Done::DataSet(stat))
    }

    fn check(self, tree: &Tree, path: &str, version: i32) -> Result<Done, ErrorCode> {
        let (_path, node) = valid(tree, path)?;
        self.identities.check(permission::READ, &node.acl)?;
        next_version(node.version, version)?;
        Ok(Done::Checked)
    }

    /// Replaces an ACL. Watchers are not notified.
    pub(super) fn set_acl(
        self,
        tree: &mut Tree,
        journal: &mut Journal,
        path: &str,
        acl: &[Acl],
        version: i32,
    ) -> Result<Stat, ErrorCode> {
        if !path::is_valid(path) {
            return Err(ErrorCode::BadArguments);
        }
        let acl = tree.acls.resolve(self.identities, acl)?;
        let (path, node) = valid(tree, path)?;
        self.identities.check(permission::ADMIN, &node.acl)?;
        let aversion = next_version(node.aversion, version)?;

        let path = Arc::clone(path);
        let node = tree.get_mut(&path).expect("the znode exists: its version was read above");
        let old_acl = std::mem::replace(&mut node.acl, acl);
        let old_aversion = std::mem::replace(&mut node.aversion, aversion);
        let stat = node.stat();
        journal.steps.push(Step::AclSet { path, acl: old_acl, aversion: old_aversion });
        Ok(stat)
    }
}

/// Removes a znode without children, on behalf of a client or of the server.
pub(super) fn remove(tree: &mut Tree, journal: &mut Journal, zxid: i64, path: &str) {
    let Some((path, node)) = tree.detach(path) else { return };
    journal.event(EventKind::NodeDeleted, &path, &node.acl);
    let Some((parent, above)) = path::ancestors(&path).next().and_then(|parent| tree.entry(parent)) else {
        return;
    };
    let (parent, parent_pzxid) = (Arc::clone(parent), above.pzxid);
    journal.event(EventKind::NodeChildrenChanged, &parent, &above.acl);
    if let Some(parent) = tree.get_mut(&parent) {
        parent.pzxid = zxid;
    }
    journal.steps.push(Step::Deleted { path, node, parent, parent_pzxid });
}

fn valid<'t>(tree: &'t Tree, path: &str) -> Result<(&'t Arc<str>, &'t Node), ErrorCode> {
    if !path::is_valid(path) {
        return Err(ErrorCode::BadArguments);
    }
    tree.entry(path).ok_or(ErrorCode::NoNode)
}

/// The version in a request that matches any version.
const ANY: i32 = -1;

/// Checks a version and returns the next one, which is never [`ANY`].
fn next_version(current: i32, expected: i32) -> Result<i32, ErrorCode> {
    if expected != ANY && expected != current {
        return Err(ErrorCode::BadVersion);
    }
    let next = current.wrapping_add(1);
    Ok(if next == ANY { 0 } else { next })
}
