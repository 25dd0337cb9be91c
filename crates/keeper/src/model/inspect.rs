//! Read access for four-letter words and tests.

use super::{ConnectionId, Model};
use crate::store::Snapshot;

/// A session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionView {
    /// The id.
    pub id: i64,
    /// The negotiated timeout.
    pub timeout_ms: i32,
    /// When the session expires without a request, in monotonic milliseconds.
    pub ends_at_ms: u64,
    /// The current connection.
    pub connection: Option<ConnectionId>,
}

/// The watches of a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WatchView<'a> {
    /// The connection.
    pub connection: ConnectionId,
    /// The session.
    pub session: i64,
    /// The watched paths, sorted.
    pub paths: Vec<&'a str>,
}

impl Model {
    /// Returns the zxid of the newest transaction.
    #[must_use]
    pub fn zxid(&self) -> i64 {
        self.zxid
    }

    /// Returns the number of znodes, including the root and `/zookeeper`.
    #[must_use]
    pub fn node_count(&self) -> usize {
        self.tree.len()
    }

    /// Returns the total length of all paths and data.
    #[must_use]
    pub fn data_bytes(&self) -> u64 {
        self.tree.bytes()
    }

    /// Returns all sessions, sorted by id.
    pub fn sessions(&self) -> impl Iterator<Item = SessionView> {
        self.sessions.iter().map(|(id, session)| SessionView {
            id,
            timeout_ms: session.timeout_ms,
            ends_at_ms: session.ends_at(),
            connection: session.connection,
        })
    }

    /// Returns the session of a connection.
    #[must_use]
    pub fn session_of(&self, connection: ConnectionId) -> Option<i64> {
        self.connections.get(&connection).map(|known| known.session)
    }

    /// Returns the ephemeral znodes of a session, sorted by path.
    pub fn ephemerals_of(&self, session: i64) -> impl Iterator<Item = &str> {
        self.tree.ephemerals_of(session).map(|path| path.as_ref())
    }

    /// Returns the sessions with ephemeral znodes, and their number of ephemeral znodes.
    pub fn ephemeral_owners(&self) -> impl Iterator<Item = (i64, usize)> {
        self.tree.ephemeral_owners()
    }

    /// Returns the connections with watches, and their watches.
    pub fn watches(&self) -> impl Iterator<Item = WatchView<'_>> {
        self.watches.of_connections().filter_map(|(connection, paths)| {
            let session = self.session_of(connection)?;
            Some(WatchView { connection, session, paths: paths.iter().map(|path| path.as_ref()).collect() })
        })
    }

    /// Returns the number of watched paths.
    #[must_use]
    pub fn watched_paths(&self) -> usize {
        self.watches.paths()
    }

    /// Returns the number of (path, connection) pairs with a watch.
    #[must_use]
    pub fn watch_count(&self) -> usize {
        self.watches.of_connections().map(|(_connection, paths)| paths.len()).sum()
    }

    /// Returns all rows, in the order of their creation: the content of a store that received every change.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        let mut nodes: Vec<_> = self
            .tree
            .iter()
            .map(|(path, node)| (path.as_ref().to_owned(), node.row(), node.data.clone()))
            .collect();
        nodes.sort_unstable_by(|(left, one, _), (right, other, _)| {
            (one.czxid, left).cmp(&(other.czxid, right))
        });
        let sessions = self.sessions.iter().map(|(id, session)| (id, session.row())).collect();
        Snapshot { zxid: self.zxid, nodes, sessions }
    }
}
