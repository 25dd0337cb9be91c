//! Operations for tests that have no equivalent in the protocol. Not compiled into shipped servers.

use std::time::Duration;

use tokio::sync::oneshot;

use super::builder::Builder;
use super::inbox::{Closed, Message};
use super::keeper::Keeper;
use crate::model::Transaction;

/// An entry for the transaction log of a test.
#[derive(Debug)]
pub enum Logged {
    /// The server starts with all transactions up to this one. Logged transactions with a higher number were lost.
    Begins(i64),
    /// A transaction that is not durable yet. It is logged before its reply is sent.
    Transaction(Transaction),
}

/// A callback for every transaction.
pub(super) struct Log(Box<dyn FnMut(Logged) + Send>);

impl std::fmt::Debug for Log {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Log")
    }
}

impl Log {
    pub(super) fn begin(&mut self, zxid: i64) {
        (self.0)(Logged::Begins(zxid));
    }

    pub(super) fn append(&mut self, transactions: Vec<Transaction>) {
        transactions.into_iter().map(Logged::Transaction).for_each(&mut self.0);
    }
}

impl Builder {
    /// Calls `log` for every transaction, on the engine thread.
    #[must_use]
    pub fn log(mut self, log: impl FnMut(Logged) + Send + 'static) -> Self {
        self.log = Some(Log(Box::new(log)));
        self
    }
}

impl Keeper {
    /// Expires a session: deletes its ephemeral znodes and closes its connection. Returns `false` if the session does
    /// not exist or the server has stopped.
    pub async fn expire(&self, session: i64) -> bool {
        let (answer, expired) = oneshot::channel();
        match self.inbox.tell(Message::Expire(session, answer)) {
            Ok(()) => expired.await.unwrap_or(false),
            Err(Closed) => false,
        }
    }

    /// Moves the server's clock forward by `time`: sessions that send no request in that time expire, and so do TTL
    /// znodes.
    pub fn skip(&self, time: Duration) {
        // A stopped server has no clock to move.
        let (Ok(()) | Err(Closed)) = self.inbox.tell(Message::Skip(time));
    }
}
