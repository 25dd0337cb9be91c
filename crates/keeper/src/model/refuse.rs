//! What ends a connection, or comes to nothing: credentials, and requests that are none of ours.

use super::{Compat, ConnectionId, Effect, Model};
use crate::proto::{ErrorCode, Intent, Reply, Response};

/// What the answer to `auth` has for a transaction.
const AUTH_ZXID: i64 = 0;
/// What the answer to an unknown request has for a transaction.
const UNKNOWN_ZXID: i64 = -1;
/// The code of `reconfig`.
const RECONFIG: i32 = 16;
/// The code by which a real server asks itself to remove a container; it is no client's business.
const DELETE_CONTAINER: i32 = 20;

impl Model {
    /// Adds what is proven to who the connection is. Who fails does not get a second try.
    pub(super) fn authenticate(
        &mut self,
        connection: ConnectionId,
        xid: i32,
        scheme: &str,
        auth: &[u8],
        out: &mut Vec<Effect>,
    ) {
        let Some(known) = self.connections.get_mut(&connection) else { return };
        let zxid = AUTH_ZXID;
        if known.identities.authenticate(scheme, auth, self.config.super_digest.as_deref()) {
            out.push(Effect::Reply(connection, Reply { xid, zxid, result: Ok(Response::Empty) }));
        } else {
            let result = Err(ErrorCode::AuthFailed);
            out.push(Effect::Reply(connection, Reply { xid, zxid, result }));
            self.hang_up(connection, out);
        }
    }

    /// What could not be read is answered, but for `auth`.
    pub(super) fn refuse_malformed(
        &mut self,
        connection: ConnectionId,
        xid: i32,
        intent: Intent,
        out: &mut Vec<Effect>,
    ) {
        match (intent, self.config.compat) {
            (Intent::Auth, Compat::V3_9 | Compat::V3_8_0) => return self.hang_up(connection, out),
            // Numbered before it was read.
            (Intent::Multi, Compat::V3_9 | Compat::V3_8_0) | (Intent::Write, Compat::V3_8_0) => {
                self.zxid += 1
            }
            (Intent::Write, Compat::V3_9) | (Intent::Read, Compat::V3_9 | Compat::V3_8_0) => {}
        }
        let result = Err(ErrorCode::MarshallingError);
        out.push(Effect::Reply(connection, Reply { xid, zxid: self.zxid, result }));
    }

    /// What one server alone cannot do, and what nobody knows.
    pub(super) fn refuse_unsupported(
        &mut self,
        connection: ConnectionId,
        xid: i32,
        code: i32,
        out: &mut Vec<Effect>,
    ) {
        let refusal = match code {
            RECONFIG => Some(ErrorCode::ReconfigDisabled),
            DELETE_CONTAINER => Some(ErrorCode::BadArguments),
            _unknown => None,
        };
        if let Some(refusal) = refusal {
            // A write like any other: its failure has a number.
            self.zxid += 1;
            out.push(Effect::Reply(connection, Reply { xid, zxid: self.zxid, result: Err(refusal) }));
            return;
        }
        let result = Err(ErrorCode::Unimplemented);
        out.push(Effect::Reply(connection, Reply { xid, zxid: UNKNOWN_ZXID, result }));
        self.hang_up(connection, out);
    }
}
