//! The model: consumes inputs and time, produces effects.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::acl::Identities;
use super::changes::Dirty;
use super::node::Lifetime;
use super::session::Sessions;
use super::tree::Tree;
use super::unsupported::as_read_by;
use super::watch::Watches;
use super::write::{Author, Event, Journal, remove};
use super::{Compat, Config, ConnectionId, Effect, Input, Now};
use crate::proto::{ErrorCode, Reply, Request, Response, WatchedEvent};
use crate::store::Changes;

/// One ZooKeeper server without sockets, disk and clock.
#[derive(Debug)]
pub struct Model {
    pub(super) config: Config,
    /// The zxid of the newest transaction.
    pub(super) zxid: i64,
    pub(super) tree: Tree,
    pub(super) sessions: Sessions,
    pub(super) connections: BTreeMap<ConnectionId, Connection>,
    pub(super) watches: Watches,
    pub(super) dirty: Dirty,
    pub(super) next_cleaning: u64,
    /// The watchers of one event; a field to reuse its memory.
    hearers: Vec<ConnectionId>,
    #[cfg(feature = "testing")]
    pub(super) log: super::log::Log,
}

/// A connection with a session.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) session: i64,
    pub(super) identities: Identities,
}

/// The zxid of notifications before 3.9, and of notifications that belong to no transaction.
pub(super) const NO_ZXID: i64 = -1;

/// The xid of every reply to a ping, whatever xid the ping had.
const PING_XID: i32 = -2;

impl Model {
    pub(super) fn with_tree(config: Config, zxid: i64, tree: Tree, now: Now) -> Self {
        let sessions = Sessions::new(config.tick_ms, now.wall_ms);
        let next_cleaning = now.monotonic_ms.saturating_add(config.cleaning_interval_ms);
        Self {
            zxid,
            tree,
            sessions,
            connections: BTreeMap::new(),
            watches: Watches::new(config.compat),
            dirty: Dirty::since(zxid),
            next_cleaning,
            hearers: Vec::new(),
            #[cfg(feature = "testing")]
            log: super::log::Log::default(),
            config,
        }
    }

    /// Handles one input. Inputs of unknown connections are ignored: a client may still have sent requests before its
    /// connection was closed.
    pub fn handle(&mut self, now: Now, connection: ConnectionId, input: Input, out: &mut Vec<Effect>) {
        match input {
            Input::Connect { request, peer, password } => {
                self.connect(now, connection, &request, peer, password, out);
            }
            Input::Request { xid, request } => {
                if self.heard_of(now, connection) {
                    self.answer(now, connection, xid, request, out);
                }
            }
            Input::Disconnected => self.disconnected(connection),
        }
    }

    /// Keeps the session of a connection alive; returns whether the connection is known. [`handle`](Self::handle) does
    /// so for every request. Call this for a request that is parked before it is handled.
    pub fn heard_of(&mut self, now: Now, connection: ConnectionId) -> bool {
        let Some(known) = self.connections.get(&connection) else { return false };
        self.sessions.touch(now.monotonic_ms, known.session);
        true
    }

    fn answer(
        &mut self,
        now: Now,
        connection: ConnectionId,
        xid: i32,
        request: Request,
        out: &mut Vec<Effect>,
    ) {
        match as_read_by(self.config.compat, request) {
            Request::Auth { scheme, auth } => self.authenticate(connection, xid, &scheme, &auth, out),
            Request::CloseSession => {
                let Some(session) = self.connections.get(&connection).map(|known| known.session) else {
                    return;
                };
                self.end_session(session, out);
                let result = Ok(Response::Empty);
                out.push(Effect::Reply(connection, Reply { xid, zxid: self.zxid, result }));
                out.push(Effect::Close(connection));
            }
            // Clients ignore an error of this request, and would wait for events of watches that do not exist.
            Request::SetWatches { data, exist, child, persistent, recursive, .. }
                if !self
                    .has_room_for([&data, &exist, &child, &persistent, &recursive].into_iter().flatten()) =>
            {
                self.hang_up(connection, out);
            }
            Request::Malformed(intent) => self.refuse_malformed(connection, xid, intent, out),
            Request::Unsupported { code } => self.refuse_unsupported(connection, xid, code, out),
            request => {
                let result = self.respond(now, connection, &request, out);
                #[cfg(feature = "testing")]
                self.log_request(now, connection, xid, request.clone(), &result);
                let xid = if matches!(request, Request::Ping) { PING_XID } else { xid };
                out.push(Effect::Reply(connection, Reply { xid, zxid: self.zxid, result }));
            }
        }
    }

    /// Runs one transaction for a connection. It consumes a zxid even if it fails.
    pub(super) fn transact<T>(
        &mut self,
        now: Now,
        connection: ConnectionId,
        out: &mut Vec<Effect>,
        work: impl FnOnce(Author<'_>, &mut Tree, &mut Journal) -> Result<T, ErrorCode>,
    ) -> Result<T, ErrorCode> {
        self.zxid += 1;
        let known = self.connections.get(&connection).expect("only known connections are answered");
        let author = Author {
            config: &self.config,
            identities: &known.identities,
            session: known.session,
            zxid: self.zxid,
            wall_ms: now.wall_ms,
        };
        let mut journal = Journal::default();
        match work(author, &mut self.tree, &mut journal) {
            Ok(done) => {
                self.commit(journal, out);
                Ok(done)
            }
            Err(code) => {
                journal.revert(&mut self.tree);
                Err(code)
            }
        }
    }

    fn commit(&mut self, journal: Journal, out: &mut Vec<Effect>) {
        for event in journal.commit(&mut self.dirty) {
            self.tell(&event, out);
        }
    }

    /// Notifies the watchers that are allowed to read the znode.
    fn tell(&mut self, event: &Event, out: &mut Vec<Effect>) {
        if self.watches.is_empty() {
            return;
        }
        let Event { kind, path, acl } = event;
        self.watches.fire(*kind, path, &mut self.hearers);
        let zxid = match self.config.compat {
            Compat::V3_9 => self.zxid,
            Compat::V3_8_0 => NO_ZXID,
        };
        let may_read =
            |id: &ConnectionId| self.connections.get(id).is_some_and(|known| known.identities.may_read(acl));
        let hearers: Vec<_> = self.hearers.iter().copied().filter(may_read).collect();
        if !hearers.is_empty() {
            let event = WatchedEvent { kind: *kind, path: path.as_ref().to_owned(), zxid };
            out.push(Effect::Notify(hearers, event));
        }
    }

    /// Ends a session and deletes its ephemeral znodes in one transaction, in the order of their paths.
    pub(super) fn end_session(&mut self, session: i64, out: &mut Vec<Effect>) {
        self.zxid += 1;
        let paths: Vec<_> = self.tree.ephemerals_of(session).cloned().collect();
        let mut journal = Journal::default();
        #[cfg(feature = "testing")]
        self.log_end(session, &paths);
        for path in paths {
            remove(&mut self.tree, &mut journal, self.zxid, &path);
        }
        self.commit(journal, out);
        self.dirty.session(session);
        if let Some(ended) = self.sessions.remove(session)
            && let Some(connection) = ended.connection
        {
            self.forget(connection);
        }
    }

    /// Advances the time: expires sessions, and removes empty containers and expired TTL znodes.
    pub fn tick(&mut self, now: Now, out: &mut Vec<Effect>) {
        while let Some(session) = self.sessions.next_ended(now.monotonic_ms) {
            self.expire_session(session, out);
        }
        if self.next_cleaning <= now.monotonic_ms {
            self.next_cleaning = now.monotonic_ms.saturating_add(self.config.cleaning_interval_ms.max(1));
            self.clean(now, out);
        }
    }

    /// Returns when [`tick`](Self::tick) is due next, in monotonic milliseconds.
    #[must_use]
    pub fn next_tick(&self) -> Option<u64> {
        let cleaning = self.tree.perishable().next().map(|_| self.next_cleaning);
        self.sessions.next_end().into_iter().chain(cleaning).min()
    }

    /// Expires a session immediately. Not available to clients.
    pub fn expire_session(&mut self, session: i64, out: &mut Vec<Effect>) {
        let Some(connection) = self.sessions.get(session).map(|session| session.connection) else { return };
        self.end_session(session, out);
        if let Some(connection) = connection {
            out.push(Effect::Close(connection));
        }
    }

    /// Removes containers that had children and have none, and childless znodes that were not written for their TTL.
    pub(super) fn clean(&mut self, now: Now, out: &mut Vec<Effect>) {
        let useless = |path: &&Arc<str>| {
            self.tree.get(path).is_some_and(|node| {
                node.child_count() == 0
                    && match node.owner.lifetime() {
                        Lifetime::Container => node.creates > 0,
                        Lifetime::Ttl(ms) => now.wall_ms.saturating_sub(node.mtime) > ms,
                        // Excluded from `perishable`.
                        Lifetime::Persistent | Lifetime::Session(_) => false,
                    }
            })
        };
        let useless: Vec<_> = self.tree.perishable().filter(useless).cloned().collect();
        for path in useless {
            self.zxid += 1;
            let mut journal = Journal::default();
            remove(&mut self.tree, &mut journal, self.zxid, &path);
            self.commit(journal, out);
            #[cfg(feature = "testing")]
            self.log_removal(now, &path);
        }
    }

    /// Returns the number of znodes changed since the last [`take_changes`](Self::take_changes).
    #[must_use]
    pub fn changed_nodes(&self) -> usize {
        self.dirty.nodes()
    }

    /// Returns whether there is anything to store since the last [`take_changes`](Self::take_changes), which returned
    /// `zxid`.
    #[must_use]
    pub fn changed_since(&self, zxid: i64) -> bool {
        self.zxid != zxid || !self.dirty.is_empty()
    }

    /// Returns the changes since the last call. A driver must store them before it executes the effects of the same
    /// inputs.
    pub fn take_changes(&mut self) -> Changes {
        self.dirty.take(self.zxid, &self.tree, &self.sessions)
    }
}
