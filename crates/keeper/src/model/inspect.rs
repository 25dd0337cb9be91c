//! What four-letter words and tests may look at.

use super::{ConnectionId, Model};
use crate::store::Snapshot;

/// A session, as the outside sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionView {
    /// Its id.
    pub id: i64,
    /// Its negotiated timeout.
    pub timeout_ms: i32,
    /// When it ends unless it is heard of, in monotonic milliseconds.
    pub ends_at_ms: u64,
    /// Who serves it.
    pub connection: Option<ConnectionId>,
}

/// A connection's watches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WatchView<'a> {
    /// Whose.
    pub connection: ConnectionId,
    /// Of which session.
    pub session: i64,
    /// On which paths, in order.
    pub paths: Vec<&'a str>,
}

impl Model {
    /// The newest transaction.
    #[must_use]
    pub fn zxid(&self) -> i64 {
        self.zxid
    }

    /// How many znodes there are, the root and `/zookeeper` among them.
    #[must_use]
    pub fn node_count(&self) -> usize {
        self.tree.len()
    }

    /// Lengths of all paths and data.
    #[must_use]
    pub fn data_bytes(&self) -> u64 {
        self.tree.bytes()
    }

    /// All sessions, in the order of their ids.
    pub fn sessions(&self) -> impl Iterator<Item = SessionView> {
        self.sessions.iter().map(|(id, session)| SessionView {
            id,
            timeout_ms: session.timeout_ms,
            ends_at_ms: session.ends_at(),
            connection: session.connection,
        })
    }

    /// The session that a connection serves.
    #[must_use]
    pub fn session_of(&self, connection: ConnectionId) -> Option<i64> {
        self.connections.get(&connection).map(|known| known.session)
    }

    /// A session's ephemeral znodes, in the order of their paths.
    pub fn ephemerals_of(&self, session: i64) -> impl Iterator<Item = &str> {
        self.tree.ephemerals_of(session).map(|path| path.as_ref())
    }

    /// Sessions that have ephemeral znodes, and how many.
    pub fn ephemeral_owners(&self) -> impl Iterator<Item = (i64, usize)> {
        self.tree.ephemeral_owners()
    }

    /// Connections that watch, and what they watch.
    pub fn watches(&self) -> impl Iterator<Item = WatchView<'_>> {
        self.watches.of_connections().filter_map(|(connection, paths)| {
            let session = self.session_of(connection)?;
            Some(WatchView { connection, session, paths: paths.iter().map(|path| path.as_ref()).collect() })
        })
    }

    /// How many paths are watched.
    #[must_use]
    pub fn watched_paths(&self) -> usize {
        self.watches.paths()
    }

    /// How many watches are set: paths by connections.
    #[must_use]
    pub fn watch_count(&self) -> usize {
        self.watches.of_connections().map(|(_connection, paths)| paths.len()).sum()
    }

    /// All rows, as a store that was handed every change holds them, in order.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        let mut nodes: Vec<_> = self
            .tree
            .iter()
            .map(|(path, node)| (path.as_ref().to_owned(), node.row(), node.data.clone()))
            .collect();
        nodes.sort_unstable_by(|(left, ..), (right, ..)| left.cmp(right));
        let sessions = self.sessions.iter().map(|(id, session)| (id, session.row())).collect();
        Snapshot { zxid: self.zxid, nodes, sessions }
    }
}
