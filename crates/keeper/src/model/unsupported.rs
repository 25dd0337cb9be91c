//! Credentials, malformed requests and unsupported requests.

use super::{Compat, ConnectionId, Effect, Model};
use crate::proto::{ErrorCode, Intent, Op, Reply, Request, Response};

/// The zxid of the reply to `auth`.
const AUTH_ZXID: i64 = 0;
/// The zxid of the reply to an unknown request.
const UNKNOWN_ZXID: i64 = -1;
/// The code of `check`.
const CHECK: i32 = 13;
/// The code of `createTTL`.
const CREATE_TTL: i32 = 21;
/// The code of `reconfig`.
const RECONFIG: i32 = 16;
/// The code of ZooKeeper's internal request to remove a container; not allowed for clients.
const DELETE_CONTAINER: i32 = 20;

/// Returns the request as this release reads it. 3.9 refuses some requests that 3.8 executes: a check outside a multi,
/// and a whole multi if a create in it has unknown flags. Both releases execute a `createTTL` with unknown flags.
pub(super) fn as_read_by(compat: Compat, request: Request) -> Request {
    match (compat, request) {
        (Compat::V3_9, Request::Write(Op::Check { .. }) | Request::Malformed(Intent::Check)) => {
            Request::Unsupported { code: CHECK }
        }
        (Compat::V3_9, Request::Multi(ops)) if ops.iter().any(has_unknown_flags) => {
            Request::Malformed(Intent::Multi)
        }
        (Compat::V3_9 | Compat::V3_8_0, request) => request,
    }
}

fn has_unknown_flags(op: &Op) -> bool {
    matches!(op, Op::Unknown { code } if *code != CREATE_TTL)
}

impl Model {
    /// Adds an identity to the connection. A failure closes the connection.
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

    /// Replies to a malformed request. A malformed `auth` closes the connection without a reply.
    pub(super) fn refuse_malformed(
        &mut self,
        connection: ConnectionId,
        xid: i32,
        intent: Intent,
        out: &mut Vec<Effect>,
    ) {
        match (intent, self.config.compat) {
            (Intent::Auth, Compat::V3_9 | Compat::V3_8_0) => return self.hang_up(connection, out),
            // ZooKeeper assigns the zxid before it decodes these.
            (Intent::Multi, Compat::V3_9 | Compat::V3_8_0)
            | (Intent::Write | Intent::Check, Compat::V3_8_0) => self.zxid += 1,
            (Intent::Write | Intent::Check, Compat::V3_9) | (Intent::Read, Compat::V3_9 | Compat::V3_8_0) => {
            }
        }
        let result = Err(ErrorCode::MarshallingError);
        out.push(Effect::Reply(connection, Reply { xid, zxid: self.zxid, result }));
    }

    /// Rejects requests that a single server does not support, and unknown requests.
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
            // Like every failed write, it consumes a zxid.
            self.zxid += 1;
            out.push(Effect::Reply(connection, Reply { xid, zxid: self.zxid, result: Err(refusal) }));
            return;
        }
        let result = Err(ErrorCode::Unimplemented);
        out.push(Effect::Reply(connection, Reply { xid, zxid: UNKNOWN_ZXID, result }));
        self.hang_up(connection, out);
    }
}
