//! What a test cannot bring about from outside. Not in a server that is shipped.

use std::time::Duration;

use tokio::sync::oneshot;

use super::builder::Builder;
use super::inbox::{Closed, Message};
use super::keeper::Keeper;
use crate::model::Transaction;

/// What a log is told.
#[derive(Debug)]
pub enum Logged {
    /// The server begins, with all transactions up to this one. Those above it that were told before did not survive.
    Begins(i64),
    /// A transaction, which is not durable yet. What the server answers, it answers after this was told.
    Transaction(Transaction),
}

/// Hears of every transaction.
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
    /// Tells `log` of every transaction, on the server's own thread.
    #[must_use]
    pub fn log(mut self, log: impl FnMut(Logged) + Send + 'static) -> Self {
        self.log = Some(Log(Box::new(log)));
        self
    }
}

impl Keeper {
    /// Ends a session as if its time were over: its ephemeral znodes go, its connection is closed. `false` when
    /// there is no such session, or the server has stopped.
    pub async fn expire(&self, session: i64) -> bool {
        let (answer, expired) = oneshot::channel();
        match self.inbox.tell(Message::Expire(session, answer)) {
            Ok(()) => expired.await.unwrap_or(false),
            Err(Closed) => false,
        }
    }

    /// Lets `time` pass at once for the server: sessions that do not send in it expire, as do TTL znodes.
    pub fn skip(&self, time: Duration) {
        // A server that has stopped has no time.
        let (Ok(()) | Err(Closed)) = self.inbox.tell(Message::Skip(time));
    }
}
