//! Which transactions there were, for whoever checks a history. Not in a server that is shipped.
//!
//! The store keeps rows, not transactions, so that nobody can tell afterwards who did what in which order. A test that
//! wants to know asks for a log before it begins.

use std::sync::Arc;

use super::{ConnectionId, Model, Now};
use crate::proto::{ErrorCode, Op, OpResult, Request, Response};

/// A transaction that was made, or refused and numbered all the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transaction {
    /// Its number.
    pub zxid: i64,
    /// Whose request it was; 0 for the server's own.
    pub session: i64,
    /// The request's number; 0 without one.
    pub xid: i32,
    /// Milliseconds since 1970; 0 for the end of a session.
    pub wall_ms: i64,
    /// What it was.
    pub entry: Entry,
}

/// What a transaction was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Entry {
    /// A single write or a multi, and what became of each operation. An error among them means that none was done.
    Writes(Vec<(Op, OpResult)>),
    /// A single write that was refused.
    Refused(Op, ErrorCode),
    /// A session ended, and with it these ephemeral znodes.
    SessionEnded(Vec<String>),
    /// A container or TTL znode had outlived its use.
    Removed(String),
}

/// The transactions since they were taken last; none while nobody wants them.
#[derive(Debug, Default)]
pub(super) struct Log {
    wanted: bool,
    transactions: Vec<Transaction>,
}

impl Model {
    /// Keeps a log from now on, for [`take_log`](Self::take_log).
    pub fn keep_log(&mut self) {
        self.log.wanted = true;
    }

    /// The transactions since the last call.
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
            // Reads; and what changes no data.
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

/// The answer to a single write, as a multi would have spelled it.
fn single(response: &Response) -> OpResult {
    match response {
        Response::Path(path) => OpResult::Create { path: path.clone() },
        Response::PathStat(path, stat) => OpResult::Create2 { path: path.clone(), stat: *stat },
        Response::Stat(stat) => OpResult::SetData(*stat),
        _ => OpResult::Delete,
    }
}
