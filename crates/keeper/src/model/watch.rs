//! Who wants to hear of which znode.
//!
//! A watch belongs to a connection and dies with it; clients set theirs again on the next connection. A connection
//! hears of one change of one znode once, however many of its watches match.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::ConnectionId;
use super::path;
use super::tree::ByPath;
use crate::proto::EventKind;

/// Kinds of watches, as a set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Modes(u8);

impl Modes {
    /// One-shot, on data and existence.
    pub(super) const DATA: Self = Self(1);
    /// One-shot, on the list of children.
    pub(super) const CHILD: Self = Self(2);
    /// Both of it, and it stays.
    pub(super) const PERSISTENT: Self = Self(4);
    /// Stays, and is on all below, too; not on lists of children, which follow from what it tells.
    pub(super) const RECURSIVE: Self = Self(8);
    pub(super) const ANY: Self = Self(15);
    const ONE_SHOT: Self = Self::DATA.and(Self::CHILD);

    pub(super) const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    fn common(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Which watches on the very path hear of this.
    fn that_hear(kind: EventKind) -> Self {
        match kind {
            EventKind::NodeCreated | EventKind::NodeDataChanged => {
                Self::DATA.and(Self::PERSISTENT).and(Self::RECURSIVE)
            }
            EventKind::NodeDeleted => Self::ANY,
            EventKind::NodeChildrenChanged => Self::CHILD.and(Self::PERSISTENT),
            // Nothing that happens to a znode.
            EventKind::PersistentWatchRemoved => Self(0),
        }
    }
}

/// All watches of all connections.
#[derive(Debug, Default)]
pub(super) struct Watches {
    by_path: ByPath<BTreeMap<ConnectionId, Modes>>,
    by_connection: BTreeMap<ConnectionId, BTreeSet<Arc<str>>>,
    /// Paths times connections with a recursive watch: without any, nobody looks at ancestors.
    recursive: usize,
}

impl Watches {
    pub(super) fn is_empty(&self) -> bool {
        self.by_path.is_empty()
    }

    pub(super) fn add(&mut self, path: &str, connection: ConnectionId, modes: Modes) {
        let path = match self.by_path.get_key_value(path) {
            Some((path, _watchers)) => Arc::clone(path),
            None => Arc::from(path),
        };
        let own = self.by_path.entry(Arc::clone(&path)).or_default().entry(connection).or_insert(Modes(0));
        let before = *own;
        *own = own.and(modes);
        if before.is_empty() {
            self.by_connection.entry(connection).or_default().insert(path);
        }
        if !modes.without(before).common(Modes::RECURSIVE).is_empty() {
            self.recursive += 1;
        }
    }

    /// Takes watches away; answers whether there were any.
    pub(super) fn remove(&mut self, path: &str, connection: ConnectionId, modes: Modes) -> bool {
        let Some(watchers) = self.by_path.get_mut(path) else { return false };
        let Some(own) = watchers.get_mut(&connection) else { return false };
        let removed = own.common(modes);
        *own = own.without(modes);
        if !removed.common(Modes::RECURSIVE).is_empty() {
            self.recursive -= 1;
        }
        if own.is_empty() {
            watchers.remove(&connection);
            if watchers.is_empty() {
                self.by_path.remove(path);
            }
            self.forget(path, connection);
        }
        !removed.is_empty()
    }

    pub(super) fn contains(&self, path: &str, connection: ConnectionId, modes: Modes) -> bool {
        let own = self.by_path.get(path).and_then(|watchers| watchers.get(&connection));
        own.is_some_and(|own| !own.common(modes).is_empty())
    }

    pub(super) fn remove_connection(&mut self, connection: ConnectionId) {
        for path in self.by_connection.remove(&connection).unwrap_or_default() {
            let Some(watchers) = self.by_path.get_mut(&path) else { continue };
            if let Some(modes) = watchers.remove(&connection)
                && !modes.common(Modes::RECURSIVE).is_empty()
            {
                self.recursive -= 1;
            }
            if watchers.is_empty() {
                self.by_path.remove(&path);
            }
        }
    }

    /// Gathers who hears of this, each once and in order, and uses up their one-shot watches.
    pub(super) fn fire(&mut self, kind: EventKind, path: &str, hearers: &mut Vec<ConnectionId>) {
        hearers.clear();
        let hearing = Modes::that_hear(kind);
        let mut spent = Vec::new();
        if let Some(watchers) = self.by_path.get_mut(path) {
            watchers.retain(|&connection, own| {
                if own.common(hearing).is_empty() {
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
        if self.recursive > 0 && kind != EventKind::NodeChildrenChanged {
            let on_path = hearers.len();
            for above in path::ancestors(path) {
                let watchers = self.by_path.get(above).into_iter().flatten();
                let recursive = watchers.filter(|(_, own)| !own.common(Modes::RECURSIVE).is_empty());
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
            paths.remove(path);
            if paths.is_empty() {
                self.by_connection.remove(&connection);
            }
        }
    }

    /// Watched paths of each connection.
    pub(super) fn of_connections(&self) -> impl Iterator<Item = (ConnectionId, &BTreeSet<Arc<str>>)> {
        self.by_connection.iter().map(|(&connection, paths)| (connection, paths))
    }

    /// How many paths are watched.
    pub(super) fn paths(&self) -> usize {
        self.by_path.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: ConnectionId = ConnectionId(1);
    const B: ConnectionId = ConnectionId(2);

    fn fire(watches: &mut Watches, kind: EventKind, path: &str) -> Vec<ConnectionId> {
        let mut hearers = Vec::new();
        watches.fire(kind, path, &mut hearers);
        hearers
    }

    #[test]
    fn a_one_shot_watch_hears_once_and_leaves_nothing_behind() {
        let mut watches = Watches::default();
        watches.add("/a", A, Modes::DATA);
        watches.add("/a", A, Modes::CHILD);
        assert_eq!(fire(&mut watches, EventKind::NodeDataChanged, "/a"), [A]);
        assert_eq!(fire(&mut watches, EventKind::NodeDataChanged, "/a"), []);
        assert_eq!(fire(&mut watches, EventKind::NodeChildrenChanged, "/a"), [A]);
        assert!(watches.is_empty() && watches.by_connection.is_empty());
    }

    #[test]
    fn a_deletion_uses_up_both_one_shot_watches_with_one_notification() {
        let mut watches = Watches::default();
        watches.add("/a", A, Modes::DATA.and(Modes::CHILD));
        watches.add("/a", B, Modes::CHILD);
        assert_eq!(fire(&mut watches, EventKind::NodeDeleted, "/a"), [A, B]);
        assert!(watches.is_empty());
    }

    #[test]
    fn a_recursive_watch_hears_of_all_below_but_of_no_lists() {
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
    fn a_connection_takes_its_watches_along() {
        let mut watches = Watches::default();
        watches.add("/a", A, Modes::RECURSIVE);
        watches.add("/a", A, Modes::RECURSIVE.and(Modes::PERSISTENT));
        watches.add("/a", B, Modes::PERSISTENT);
        watches.remove_connection(A);
        assert_eq!(watches.recursive, 0);
        assert_eq!(fire(&mut watches, EventKind::NodeDeleted, "/a"), [B]);
        assert_eq!(fire(&mut watches, EventKind::NodeCreated, "/a"), [B], "a persistent watch stays");
    }
}
