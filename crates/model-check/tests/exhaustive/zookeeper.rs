//! A ZooKeeper small enough to be part of every state: versioned znodes, their owners, and multis.
//!
//! It rejects what a server rejects, with the same reason and index: a missing parent, an absent or existing znode,
//! another version (−1 matches any), a znode with children. The models implement sessions and time. Containers are not part of
//! it: the driver of a transaction creates them.

use std::collections::BTreeMap;

use bellwether_core::outcome::{Outcome, Reason, Rejection};
use bellwether_core::path::{self, Place};
use bellwether_core::txn::{Lifetime, Op, Subject};
use bellwether_core::wire::{self, Stored};

/// Counters of removals wrap around at this number, so that the number of states is finite.
const REMOVALS: i32 = 4;

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Znode {
    pub(crate) data: Vec<u8>,
    pub(crate) version: i32,
    /// The session that owns it, if it is ephemeral; otherwise 0.
    pub(crate) owner: i64,
    /// The number of the transaction that created it, counting only transactions that create turns; 0 for other znodes.
    /// Only the order of turns matters, and a number that grows with every write would split one state into many.
    pub(crate) created: i64,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(crate) struct ZooKeeper {
    pub(crate) znodes: BTreeMap<String, Znode>,
    sequence: u32,
    turns: i64,
}

impl ZooKeeper {
    /// Creates a tree with these znodes, persistent and empty.
    pub(crate) fn with(paths: impl IntoIterator<Item = String>) -> Self {
        let znode = Znode { data: Vec::new(), version: 0, owner: 0, created: 0 };
        Self { znodes: paths.into_iter().map(|path| (path, znode.clone())).collect(), ..Self::default() }
    }

    pub(crate) fn get(&self, path: &str) -> Option<(&[u8], i32)> {
        self.znodes.get(path).map(|znode| (znode.data.as_slice(), znode.version))
    }

    pub(crate) fn value<T: Stored>(&self, path: &str) -> Option<(T, i32)> {
        let (data, version) = self.get(path)?;
        Some((wire::decode(data).expect("every stored value is readable"), version))
    }

    pub(crate) fn children<'a>(&'a self, parent: &'a str) -> Option<Vec<&'a str>> {
        let names = self.names(parent).map(|(name, _)| name).collect();
        self.znodes.contains_key(parent).then_some(names)
    }

    pub(crate) fn names<'a>(&'a self, parent: &'a str) -> impl Iterator<Item = (&'a str, &'a Znode)> {
        let below = self.znodes.range(format!("{parent}/")..);
        let below = below
            .map_while(move |(path, znode)| Some((path.strip_prefix(parent)?.strip_prefix('/')?, znode)));
        below.filter(|(name, _)| !name.contains('/'))
    }

    /// Returns the next name of a sequential znode.
    pub(crate) fn sequential(&mut self, prefix: &str) -> String {
        self.sequence += 1;
        format!("{prefix}{:010}", self.sequence)
    }

    /// Returns the tree after a multi, or the rejection.
    pub(crate) fn after(&self, session: i64, ops: &[Op]) -> Result<Self, Rejection> {
        let mut after = self.clone();
        if ops.iter().any(makes_turn) {
            after.turns += 1;
        }
        for (at, op) in ops.iter().enumerate() {
            after.apply(session, op).map_err(|reason| Rejection { at, reason })?;
        }
        Ok(after)
    }

    /// Commits a multi.
    pub(crate) fn commit(&mut self, session: i64, ops: &[Op]) -> Outcome<()> {
        match self.after(session, ops) {
            Ok(after) => {
                *self = after;
                Outcome::Applied(())
            }
            Err(rejection) => Outcome::Rejected(rejection),
        }
    }

    /// Deletes the znodes of a session. Returns their paths.
    pub(crate) fn end_session(&mut self, session: i64) -> Vec<String> {
        let theirs = self.znodes.iter().filter(|(_, znode)| znode.owner == session);
        let theirs: Vec<_> = theirs.map(|(path, _)| path.clone()).collect();
        for path in &theirs {
            self.znodes.remove(path);
        }
        theirs
    }

    fn apply(&mut self, session: i64, op: &Op) -> Result<(), Reason> {
        match op {
            Op::Check { path, version } => self.at(path, *version).map(|_| ()),
            Op::Create { path, data, lifetime } => {
                let parent = path.rfind('/').map_or("", |end| &path[..end]);
                let has_parent = parent.is_empty()
                    || path::container_of(path).is_some()
                    || self.znodes.contains_key(parent);
                if !has_parent {
                    return Err(Reason::NoNode);
                }
                if self.znodes.contains_key(path) {
                    return Err(Reason::NodeExists);
                }
                let owner = match lifetime {
                    Lifetime::Persistent | Lifetime::Container => 0,
                    Lifetime::Ephemeral => session,
                };
                let created = if makes_turn(op) { self.turns } else { 0 };
                self.znodes.insert(path.clone(), Znode { data: data.clone(), version: 0, owner, created });
                Ok(())
            }
            Op::Set { path, data, version } => {
                let znode = self.at(path, *version)?;
                let version = znode.version + 1;
                // Records can be removed and submitted again without end. No removal waits for as many others.
                let counts = op.subject() == Subject::Removals;
                znode.version = if counts { version % REMOVALS } else { version };
                znode.data = data.clone();
                Ok(())
            }
            Op::Delete { path, version } => {
                self.at(path, version.unwrap_or(-1))?;
                if self.names(path).next().is_some() {
                    return Err(Reason::NotEmpty);
                }
                self.znodes.remove(path);
                Ok(())
            }
        }
    }

    fn at(&mut self, path: &str, version: i32) -> Result<&mut Znode, Reason> {
        match self.znodes.get_mut(path) {
            None => Err(Reason::NoNode),
            Some(znode) if version != -1 && znode.version != version => Err(Reason::BadVersion),
            Some(znode) => Ok(znode),
        }
    }
}

fn makes_turn(op: &Op) -> bool {
    matches!(op, Op::Create { path, .. } if matches!(path::parse(path), Place::Turn(..)))
}
