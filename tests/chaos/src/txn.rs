//! A transaction, whichever server made it, and its way into a history.

use bellwether_sim::history::{Event, EventKind, TxnOp};
use serde::{Deserialize, Serialize};

/// A transaction of a server's log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Txn {
    pub(crate) zxid: i64,
    /// 0 for the server's own.
    pub(crate) session: i64,
    /// The number that the client gave its request.
    pub(crate) xid: i32,
    /// 0 if the log does not tell.
    pub(crate) wall_ms: u64,
    pub(crate) done: Done,
}

/// What became of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Done {
    /// All of it, on paths from the server's root.
    Committed(Vec<TxnOp>),
    /// Nothing: this operation failed with this code.
    Refused(usize, i32),
    /// It is about no znode: a session began.
    Else,
}

/// What stands between the server's clock and the history's, and between its root and the namespace's.
#[derive(Debug, Clone)]
pub(crate) struct Frame {
    pub(crate) chroot: String,
    /// The same instant on both clocks.
    pub(crate) wall: u64,
    pub(crate) boot: u64,
}

impl Frame {
    /// The transactions as events, in their order. ZooKeeper's time is when the leader took the request: before any of
    /// its effects.
    pub(crate) fn events(&self, log: &[Txn], why: impl Fn(&Txn, usize, i32) -> String) -> Vec<Event> {
        let mut events = Vec::with_capacity(log.len());
        let mut last = 0;
        for txn in log {
            let at = match txn.wall_ms {
                0 => last,
                wall => (wall + self.boot).saturating_sub(self.wall).max(last),
            };
            last = at;
            let (zxid, session) = (txn.zxid, txn.session);
            let what = match &txn.done {
                Done::Committed(ops) => {
                    let ops = ops.iter().filter_map(|op| self.inside(op)).collect::<Vec<_>>();
                    if ops.is_empty() {
                        continue;
                    }
                    EventKind::Txn { zxid, session, ops }
                }
                Done::Refused(index, code) => {
                    EventKind::Refused { zxid, session, why: why(txn, *index, *code) }
                }
                Done::Else => continue,
            };
            events.push(Event { at, what });
        }
        events
    }

    fn inside(&self, op: &TxnOp) -> Option<TxnOp> {
        let mut op = op.clone();
        match &mut op {
            TxnOp::Check { path, .. }
            | TxnOp::Create { path, .. }
            | TxnOp::Set { path, .. }
            | TxnOp::Delete { path } => {
                let inside = path.strip_prefix(&self.chroot)?;
                if !inside.starts_with('/') {
                    return None;
                }
                *path = inside.to_owned();
            }
            TxnOp::CloseSession => {}
        }
        Some(op)
    }
}
