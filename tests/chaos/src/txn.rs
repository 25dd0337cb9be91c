//! Transactions, independent of the server, and their conversion to a history.

use bellwether_sim::history::{Event, EventKind, TxnOp};
use serde::{Deserialize, Serialize};

use crate::record;

/// A transaction in a server's log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Txn {
    pub(crate) zxid: i64,
    /// 0 for the server's own transactions.
    pub(crate) session: i64,
    /// The xid of the client's request.
    pub(crate) xid: i32,
    /// 0 if the log does not contain it.
    pub(crate) wall_ms: u64,
    pub(crate) done: Done,
}

/// The result of a transaction.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Done {
    /// Committed, with paths from the server's root.
    Committed(Vec<TxnOp>),
    /// Rejected: the operation at this index failed with this code.
    Refused(usize, i32),
    /// A transaction without znodes, such as the start of a session.
    Else,
}

/// The offsets between the server's clock and the history's, and between its root and the namespace.
#[derive(Debug, Clone)]
pub(crate) struct Frame {
    chroot: String,
    /// Milliseconds to add to the server's time.
    offset: i64,
}

impl Frame {
    pub(crate) fn begin(chroot: &str) -> Self {
        Self { chroot: chroot.to_owned(), offset: record::offset() }
    }

    /// Measures the offset again at the end of the run. The smaller one counts, so that no transaction is placed after its
    /// effects although the wall clock is being adjusted.
    #[must_use]
    pub(crate) fn end(self) -> Self {
        Self { offset: self.offset.min(record::offset()), ..self }
    }

    /// Converts the transactions to events, in their order. ZooKeeper's time is when the leader received the request,
    /// so it is before the effects.
    pub(crate) fn events(&self, log: &[Txn], why: impl Fn(&Txn, usize, i32) -> String) -> Vec<Event> {
        let mut events = Vec::with_capacity(log.len());
        let mut last = 0;
        for txn in log {
            let at = match txn.wall_ms {
                0 => last,
                wall => wall.saturating_add_signed(self.offset).max(last),
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
