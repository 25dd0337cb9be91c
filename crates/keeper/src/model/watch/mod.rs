//! The watches of all connections.
//!
//! A watch belongs to a connection and is deleted with it; clients set their watches again on the next connection. A
//! connection is notified once of a change of a znode, even if several of its watches match.
//!
//! A real server has two tables, one for data and existence and one for lists of children. A lasting watch is in both,
//! which clients can observe because they can remove one half. Up to 3.8 a connection has one watch per table and path,
//! and a later watch replaces it; since 3.9 it has any set of watches.

mod modes;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::path;
use super::{Compat, ConnectionId};
use crate::by_path::ByPath;
use crate::proto::EventKind;

pub(super) use modes::Modes;

#[derive(Debug, Default)]
pub(super) struct Watches {
    compat: Compat,
    by_path: ByPath<BTreeMap<ConnectionId, Modes>>,
    by_connection: BTreeMap<ConnectionId, BTreeSet<Arc<str>>>,
    /// The number of (path, connection) pairs with a recursive watch. If it is 0, ancestors are not searched.
    recursive: usize,
    size: Size,
}

/// The number of (path, connection) pairs, and the total length of their paths.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Size {
    pub(super) watches: usize,
    pub(super) bytes: usize,
}

impl Size {
    pub(super) fn add(&mut self, path: &str) {
        self.watches += 1;
        self.bytes += path.len();
    }

    fn remove(&mut self, path: &str) {
        self.watches -= 1;
        self.bytes -= path.len();
    }
}

impl Watches {
    pub(super) fn is_empty(&self) -> bool {
        self.by_path.is_empty()
    }

    pub(super) fn new(compat: Compat) -> Self {
        Self { compat, ..Self::default() }
    }

    pub(super) fn add(&mut self, path: &str, connection: ConnectionId, modes: Modes) {
        let path = match self.by_path.get_key_value(path) {
            Some((path, _watchers)) => Arc::clone(path),
            None => Arc::from(path),
        };
        let watchers = self.by_path.entry(Arc::clone(&path)).or_default();
        let own = watchers.entry(connection).or_insert(Modes::NONE);
        let before = *own;
        let kept = match self.compat {
            Compat::V3_9 => before,
            Compat::V3_8_0 => before.without(modes.tables()),
        };
        *own = kept.and(modes);
        self.recursive += usize::from(own.intersects(Modes::RECURSIVE));
        self.recursive -= usize::from(before.intersects(Modes::RECURSIVE));
        if before.is_empty() {
            self.size.add(&path);
            self.by_connection.entry(connection).or_default().insert(path);
        }
    }

    /// Removes watches; returns whether there were any.
    pub(super) fn remove(&mut self, path: &str, connection: ConnectionId, modes: Modes) -> bool {
        let Some(watchers) = self.by_path.get_mut(path) else { return false };
        let Some(own) = watchers.get_mut(&connection) else { return false };
        let before = *own;
        *own = before.without(modes);
        self.recursive += usize::from(own.intersects(Modes::RECURSIVE));
        self.recursive -= usize::from(before.intersects(Modes::RECURSIVE));
        if own.is_empty() {
            watchers.remove(&connection);
            if watchers.is_empty() {
                self.by_path.remove(path);
            }
            self.forget(path, connection);
        }
        before.intersects(modes)
    }

    /// Returns whether the connection has one of these watches. ZooKeeper 3.8 returns
    /// whether any connection has one.
    pub(super) fn contains(&self, path: &str, connection: ConnectionId, modes: Modes) -> bool {
        let Some(watchers) = self.by_path.get(path) else { return false };
        match self.compat {
            Compat::V3_9 => watchers.get(&connection).is_some_and(|own| own.intersects(modes)),
            Compat::V3_8_0 => watchers.values().any(|any| any.intersects(modes)),
        }
    }

    pub(super) fn remove_connection(&mut self, connection: ConnectionId) {
        for path in self.by_connection.remove(&connection).unwrap_or_default() {
            self.size.remove(&path);
            let Some(watchers) = self.by_path.get_mut(&path) else { continue };
            if let Some(modes) = watchers.remove(&connection)
                && modes.intersects(Modes::RECURSIVE)
            {
                self.recursive -= 1;
            }
            if watchers.is_empty() {
                self.by_path.remove(&path);
            }
        }
    }

    /// Collects the watchers of this event, sorted and without duplicates, and removes their one-shot watches.
    pub(super) fn fire(&mut self, kind: EventKind, path: &str, hearers: &mut Vec<ConnectionId>) {
        hearers.clear();
        let hearing = Modes::that_hear(kind);
        let mut spent = Vec::new();
        if let Some(watchers) = self.by_path.get_mut(path) {
            watchers.retain(|&connection, own| {
                if !own.intersects(hearing) {
                    return true;
                }
                hearers.push(connection);
                *own = own.without(hearing.common(Modes::ONE_SHOT));
                if own.is_empty() {
                    spent.push(connection);
                }
                !own.is_empty()
            });
            if watchers.is_empty() {
                self.by_path.remove(path);
            }
        }
        for connection in spent {
            self.forget(path, connection);
        }
        let hearing_above = Modes::that_hear_above(kind);
        if self.recursive > 0 && !hearing_above.is_empty() {
            let on_path = hearers.len();
            for above in path::ancestors(path) {
                let watchers = self.by_path.get(above).into_iter().flatten();
                let recursive = watchers.filter(|(_, own)| own.intersects(hearing_above));
                hearers.extend(recursive.map(|(&connection, _)| connection));
            }
            if hearers.len() > on_path {
                hearers.sort_unstable();
                hearers.dedup();
            }
        }
    }

    fn forget(&mut self, path: &str, connection: ConnectionId) {
        if let Some(paths) = self.by_connection.get_mut(&connection) {
            if paths.remove(path) {
                self.size.remove(path);
            }
            if paths.is_empty() {
                self.by_connection.remove(&connection);
            }
        }
    }

    /// Returns the watched paths of each connection.
    pub(super) fn of_connections(&self) -> impl Iterator<Item = (ConnectionId, &BTreeSet<Arc<str>>)> {
        self.by_connection.iter().map(|(&connection, paths)| (connection, paths))
    }

    /// Returns the size of all watches.
    pub(super) fn size(&self) -> Size {
        self.size
    }

    /// Returns the number of watched paths.
    pub(super) fn paths(&self) -> usize {
        self.by_path.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::AddWatchMode;

    const A: ConnectionId = ConnectionId(1);
    const B: ConnectionId = ConnectionId(2);

    fn fire(watches: &mut Watches, kind: EventKind, path: &str) -> Vec<ConnectionId> {
        let mut hearers = Vec::new();
        watches.fire(kind, path, &mut hearers);
        hearers
    }

    #[test]
    fn a_one_shot_watch_fires_once_and_is_removed() {
        let mut watches = Watches::default();
        watches.add("/a", A, Modes::DATA);
        watches.add("/a", A, Modes::CHILD);
        assert_eq!(fire(&mut watches, EventKind::NodeDataChanged, "/a"), [A]);
        assert_eq!(fire(&mut watches, EventKind::NodeDataChanged, "/a"), []);
        assert_eq!(fire(&mut watches, EventKind::NodeChildrenChanged, "/a"), [A]);
        assert!(watches.is_empty() && watches.by_connection.is_empty());
        assert_eq!(watches.size(), Size::default());
    }

    #[test]
    fn a_deletion_fires_both_one_shot_watches_with_one_notification() {
        let mut watches = Watches::default();
        watches.add("/a", A, Modes::DATA.and(Modes::CHILD));
        watches.add("/a", B, Modes::CHILD);
        assert_eq!(fire(&mut watches, EventKind::NodeDeleted, "/a"), [A, B]);
        assert!(watches.is_empty());
    }

    #[test]
    fn a_recursive_watch_fires_for_all_descendants_but_not_for_lists_of_children() {
        let mut watches = Watches::default();
        watches.add("/", A, Modes::RECURSIVE);
        watches.add("/a/b", A, Modes::RECURSIVE.and(Modes::DATA));
        assert_eq!(fire(&mut watches, EventKind::NodeCreated, "/a/b"), [A]);
        assert_eq!(fire(&mut watches, EventKind::NodeCreated, "/c"), [A]);
        assert_eq!(fire(&mut watches, EventKind::NodeChildrenChanged, "/a/b"), []);
        assert!(watches.remove("/a/b", A, Modes::ANY) && watches.remove("/", A, Modes::RECURSIVE));
        assert!(!watches.remove("/", A, Modes::ANY));
        assert_eq!((watches.recursive, watches.is_empty()), (0, true));
    }

    #[test]
    fn release_3_8_keeps_one_watch_per_table_and_path() {
        let recursive = Modes::lasting(AddWatchMode::PersistentRecursive, Compat::V3_8_0);
        let mut watches = Watches::new(Compat::V3_8_0);
        watches.add("/a", A, recursive);
        watches.add("/a", A, Modes::DATA);
        assert_eq!(
            fire(&mut watches, EventKind::NodeCreated, "/a/b"),
            [],
            "the one-shot watch replaced one half"
        );
        assert_eq!(fire(&mut watches, EventKind::NodeDeleted, "/a/b"), [A], "the other half is kept");
        assert_eq!(fire(&mut watches, EventKind::NodeDataChanged, "/a"), [A]);
        assert_eq!(fire(&mut watches, EventKind::NodeDataChanged, "/a"), []);
        watches.add("/a", A, recursive);
        assert!(watches.remove("/a", A, Modes::DATA_TABLE));
        assert_eq!(fire(&mut watches, EventKind::NodeCreated, "/a/b"), []);
        assert!(watches.remove("/a", A, Modes::ANY));
        assert_eq!((watches.recursive, watches.is_empty()), (0, true));
    }

    #[test]
    fn removing_a_connection_removes_its_watches() {
        let mut watches = Watches::default();
        watches.add("/a", A, Modes::RECURSIVE);
        watches.add("/a", A, Modes::RECURSIVE.and(Modes::PERSISTENT));
        watches.add("/a", B, Modes::PERSISTENT);
        assert_eq!(watches.size(), Size { watches: 2, bytes: 4 });
        watches.remove_connection(A);
        assert_eq!(watches.size(), Size { watches: 1, bytes: 2 });
        assert_eq!(watches.recursive, 0);
        assert_eq!(fire(&mut watches, EventKind::NodeDeleted, "/a"), [B]);
        assert_eq!(fire(&mut watches, EventKind::NodeCreated, "/a"), [B], "a persistent watch stays");
    }
}
