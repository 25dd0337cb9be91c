//! The model as one member of an ensemble: it applies transactions that another member may have received.
//!
//! The keeper itself is a single server. The simulator of the workspace runs several models as an ensemble: it orders
//! the transactions, and each member applies them in that order with the methods below. Reads, watches and closed
//! sockets still go through [`Model::handle`]. The ensemble's leader decides when a session expires, so
//! [`Model::tick`] must not be called on a member.
//!
//! Members that apply the same transactions have the same tree and the same zxid. Their connections and watches differ.

use std::net::{IpAddr, Ipv4Addr};

use super::acl::Identities;
use super::engine::Connection;
use super::{ConnectionId, Effect, Model, Now};
use crate::proto::{ConnectResponse, ErrorCode, Request, Response};
use crate::store::SessionRow;

/// The connection of a session that another member serves. The driver's ids start at 0.
const ELSEWHERE: ConnectionId = ConnectionId(u64::MAX);

const PEER: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

impl Model {
    /// Applies the start of a session.
    pub fn begin_session(&mut self, now: Now, id: i64, timeout_ms: i32, password: Vec<u8>) {
        self.zxid += 1;
        self.sessions.restore(now.monotonic_ms, id, SessionRow { timeout_ms, password });
        self.dirty.session(id);
    }

    /// Serves a session on this connection. Returns `false` if the session does not exist or has another password.
    pub fn serve_session(
        &mut self,
        connection: ConnectionId,
        id: i64,
        password: &[u8],
        out: &mut Vec<Effect>,
    ) -> bool {
        let Some(session) = self.sessions.get_mut(id).filter(|session| session.password == password) else {
            return false;
        };
        let response = ConnectResponse {
            timeout_ms: session.timeout_ms,
            session_id: id,
            password: session.password.clone(),
            read_only: Some(false),
        };
        if let Some(before) = session.connection.replace(connection) {
            self.forget(before);
            out.push(Effect::Close(before));
        }
        self.connections
            .insert(connection, Connection { session: id, identities: Identities::of_peer(PEER) });
        out.push(Effect::Connected(connection, response));
        true
    }

    /// Applies a write of a session, whichever member serves it. It consumes a zxid even if it fails.
    ///
    /// # Errors
    /// As in the reply to the write.
    pub fn apply(
        &mut self,
        now: Now,
        session: i64,
        request: &Request,
        out: &mut Vec<Effect>,
    ) -> Result<Response, ErrorCode> {
        let Some(serving) = self.sessions.get(session).map(|known| known.connection) else {
            self.zxid += 1;
            return Err(ErrorCode::SessionExpired);
        };
        let connection = serving.unwrap_or(ELSEWHERE);
        if serving.is_none() {
            self.connections
                .insert(connection, Connection { session, identities: Identities::of_peer(PEER) });
        }
        let result = self.respond(now, connection, request, out);
        if serving.is_none() {
            self.connections.remove(&connection);
        }
        result
    }

    /// Applies the removal of empty containers and expired TTL znodes.
    pub fn remove_useless(&mut self, now: Now, out: &mut Vec<Effect>) {
        self.clean(now, out);
    }
}
