//! Connects and disconnects connections.

use std::net::IpAddr;

use super::acl::Identities;
use super::engine::Connection;
use super::{ConnectionId, Effect, Model, Now};
use crate::proto::{ConnectRequest, ConnectResponse};

/// The password in the reply to a client whose session has expired: zeros of the usual length.
const NO_PASSWORD: [u8; 16] = [0; 16];

impl Model {
    /// Starts a session, moves an existing one to this connection, or rejects the client.
    ///
    /// Moving a session closes its previous connection, and replies that were not sent on it are lost. Unlike
    /// ZooKeeper, the password is checked first, so that a client with a wrong password cannot close another
    /// connection.
    pub(super) fn connect(
        &mut self,
        now: Now,
        connection: ConnectionId,
        request: &ConnectRequest,
        peer: IpAddr,
        password: [u8; 16],
        out: &mut Vec<Effect>,
    ) {
        // A client that has seen newer transactions was connected to another server, or to a server that lost its disk.
        if request.last_zxid_seen > self.zxid {
            out.push(Effect::Close(connection));
            return;
        }
        let timeout_ms = self.config.negotiate(request.timeout_ms);
        if request.session_id == 0 && self.sessions.len() >= self.config.bounds.sessions {
            // The protocol has no answer for it; the client tries again.
            out.push(Effect::Close(connection));
            return;
        }
        let session = if request.session_id == 0 {
            self.zxid += 1;
            let id = self.sessions.begin(now.monotonic_ms, timeout_ms, password.to_vec());
            self.dirty.session(id);
            id
        } else if self.re_attach(now, request, timeout_ms, out) {
            request.session_id
        } else {
            out.push(Effect::Connected(connection, over(request)));
            out.push(Effect::Close(connection));
            return;
        };
        let known = self.sessions.get_mut(session).expect("the session was started or found above");
        known.connection = Some(connection);
        let response = ConnectResponse {
            timeout_ms,
            session_id: session,
            password: known.password.clone(),
            read_only: request.read_only.map(|_| false),
        };
        self.connections.insert(connection, Connection { session, identities: Identities::of_peer(peer) });
        out.push(Effect::Connected(connection, response));
    }

    fn re_attach(
        &mut self,
        now: Now,
        request: &ConnectRequest,
        timeout_ms: i32,
        out: &mut Vec<Effect>,
    ) -> bool {
        let id = request.session_id;
        let Some(session) = self.sessions.get_mut(id).filter(|session| session.password == request.password)
        else {
            return false;
        };
        let before = session.connection.take();
        if session.timeout_ms != timeout_ms {
            session.timeout_ms = timeout_ms;
            self.dirty.session(id);
        }
        self.sessions.touch(now.monotonic_ms, id);
        if let Some(before) = before {
            self.forget(before);
            out.push(Effect::Close(before));
        }
        true
    }

    /// Handles a closed socket: the session is kept for another connection, the watches are deleted.
    pub(super) fn disconnected(&mut self, connection: ConnectionId) {
        if let Some(known) = self.connections.get(&connection)
            && let Some(session) = self.sessions.get_mut(known.session)
        {
            session.connection = None;
        }
        self.forget(connection);
    }

    /// Forgets a connection; further requests from it are ignored.
    pub(super) fn forget(&mut self, connection: ConnectionId) {
        self.connections.remove(&connection);
        self.watches.remove_connection(connection);
    }

    /// Closes a connection and keeps its session.
    pub(super) fn hang_up(&mut self, connection: ConnectionId, out: &mut Vec<Effect>) {
        self.disconnected(connection);
        out.push(Effect::Close(connection));
    }
}

fn over(request: &ConnectRequest) -> ConnectResponse {
    ConnectResponse {
        timeout_ms: 0,
        session_id: 0,
        password: NO_PASSWORD.to_vec(),
        read_only: request.read_only.map(|_| false),
    }
}
