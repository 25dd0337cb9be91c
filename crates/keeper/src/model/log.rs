//! A log of transactions, for tests that check a history. Not compiled into shipped servers.
//!
//! The store keeps rows and not transactions, so the history cannot be read from it. A test must enable the log before
//! it starts.

use std::sync::Arc;

use super::{ConnectionId, Model, Now};
use crate::proto::{ErrorCode, Op, OpResult, Request, Response};

/// A transaction, including failed ones, which also consume a zxid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transaction {
    /// The zxid.
    pub zxid: i64,
    /// The session of the request; 0 for a transaction of the server.
    pub session: i64,
    /// The number of the request; 0 without a request.
    pub xid: i32,
    /// Milliseconds since 1970; 0 for the end of a session.
    pub wall_ms: i64,
    /// The kind and content.
    pub entry: Entry,
}

/// The kind and content of a transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Entry {
    /// A single write or a multi, with the result of each operation. If one result is an error, no operation was
    /// applied.
    Writes(Vec<(Op, OpResult)>),
    /// A single write that failed.
    Refused(Op, ErrorCode),
    /// A session ended, and these ephemeral znodes were deleted.
    SessionEnded(Vec<String>),
    /// An empty container or an expired TTL znode was removed.
    Removed(String),
}

/// The transactions since the last call of [`Model::take_log`]; empty unless enabled.
#[derive(Debug, Default)]
pub(super) struct Log {
    wanted: bool,
    transactions: Vec<Transaction>,
}

impl Model {
    /// Enables the log for [`take_log`](Self::take_log).
    pub fn keep_log(&mut self) {
        self.log.wanted = true;
    }

    /// Returns the transactions since the last call.
    pub fn take_log(&mut self) -> Vec<Transaction> {
        std::mem::take(&mut self.log.transactions)
    }

    pub(super) fn log_request(
        &mut self,
        now: Now,
        connection: ConnectionId,
        xid: i32,
        request: Request,
        result: &Result<Response, ErrorCode>,
    ) {
        if !self.log.wanted {
            return;
        }
        let entry = match (request, result) {
            (Request::Write(op), Err(code)) => Entry::Refused(op, *code),
            (Request::Write(op), Ok(response)) => Entry::Writes(vec![(op, single(response))]),
            (Request::Multi(ops), Ok(Response::Multi(results))) => {
                Entry::Writes(ops.into_iter().zip(results.iter().cloned()).collect())
            }
            // Reads, and requests that change no data.
            _ => return,
        };
        let Some(session) = self.session_of(connection) else { return };
        self.log.transactions.push(Transaction {
            zxid: self.zxid,
            session,
            xid,
            wall_ms: now.wall_ms,
            entry,
        });
    }

    pub(super) fn log_end(&mut self, session: i64, paths: &[Arc<str>]) {
        if self.log.wanted {
            let entry = Entry::SessionEnded(paths.iter().map(|path| path.as_ref().to_owned()).collect());
            let zxid = self.zxid;
            self.log.transactions.push(Transaction { zxid, session, xid: 0, wall_ms: 0, entry });
        }
    }

    pub(super) fn log_removal(&mut self, now: Now, path: &str) {
        if self.log.wanted {
            let entry = Entry::Removed(path.to_owned());
            let (zxid, wall_ms) = (self.zxid, now.wall_ms);
            self.log.transactions.push(Transaction { zxid, session: 0, xid: 0, wall_ms, entry });
        }
    }
}

/// Converts the reply to a single write to the result of a multi.
fn single(response: &Response) -> OpResult {
    match response {
        Response::Path(path) => OpResult::Create { path: path.clone() },
        Response::PathStat(path, stat) => OpResult::Create2 { path: path.clone(), stat: *stat },
        Response::Stat(stat) => OpResult::SetData(*stat),
        _ => OpResult::Delete,
    }
}
