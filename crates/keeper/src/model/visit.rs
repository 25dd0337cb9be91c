//! Connections come, with or without a session, and go.

use std::net::IpAddr;

use super::acl::Identities;
use super::engine::Connection;
use super::{ConnectionId, Effect, Model, Now};
use crate::proto::{ConnectRequest, ConnectResponse};

/// What a client gets whose session is over: nothing of it, in the usual lengths.
const NO_PASSWORD: [u8; 16] = [0; 16];

impl Model {
    /// A new session, an old one that moves to this connection, or none.
    ///
    /// A session that moves closes the connection that served it, and what that had asked and was not answered is
    /// lost to it. Unlike the real server, ours looks at the password first: a stranger closes nothing.
    pub(super) fn connect(
        &mut self,
        now: Now,
        connection: ConnectionId,
        request: &ConnectRequest,
        peer: IpAddr,
        password: [u8; 16],
        out: &mut Vec<Effect>,
    ) {
        // A client that saw newer transactions spoke to another server, or to one whose disk is lost.
        if request.last_zxid_seen > self.zxid {
            out.push(Effect::Close(connection));
            return;
        }
        let timeout_ms = self.config.negotiate(request.timeout_ms);
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
        let known = self.sessions.get_mut(session).expect("it began or was found above");
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

    /// The socket is gone: its session waits for another, its watches do not.
    pub(super) fn disconnected(&mut self, connection: ConnectionId) {
        if let Some(known) = self.connections.get(&connection)
            && let Some(session) = self.sessions.get_mut(known.session)
        {
            session.connection = None;
        }
        self.forget(connection);
    }

    /// Whatever it sends from now on is not answered.
    pub(super) fn forget(&mut self, connection: ConnectionId) {
        self.connections.remove(&connection);
        self.watches.remove_connection(connection);
    }

    /// Closes a connection whose session goes on.
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
