//! A simulated session that implements core's session port.

use std::future::ready;
use std::pin::Pin;
use std::sync::Arc;

use bellwether_core::outcome::Outcome;
use bellwether_core::port::{
    Change, Glance, Glanced, Node, ReadResult, Reply, Requests, Session as Port, Transaction, Watch,
};
use bellwether_core::txn::{Delivery, Op, Parents};
use bellwether_keeper::proto::Request;
use futures::channel::{mpsc, oneshot};
use futures::{FutureExt, StreamExt};

use super::{Shared, Want};
use crate::zk::Zk;
use crate::zk::library::Part;
use crate::zk::protocol::{self, Answer};

/// One session of a process. It does not become a handle to a later session.
#[derive(Clone)]
pub(super) struct Session {
    pub(super) shared: Arc<Shared>,
    pub(super) zk: Zk,
}

impl Session {
    /// Sends nothing while the session is not connected, like the client library.
    fn ask<T: Send + 'static>(&self, request: Request, decode: fn(Answer) -> T) -> Reply<T> {
        if !self.is_connected() {
            return Box::pin(ready(decode(Answer::NotSent)));
        }
        let (answer, answered) = oneshot::channel();
        self.shared.want(Want::Ask { zk: self.zk, request, answer });
        Box::pin(async move { decode(received(answered).await) })
    }

    /// Commits a transaction with its missing containers, as `bellwether-zk` does.
    fn commit_of<T: Transaction + Send + 'static>(&self, transaction: T) -> Reply<Outcome<()>> {
        let Some(parents) = self.shared.parents(transaction.ops()) else {
            return self.multi(&transaction, &[]);
        };
        let first = self.multi(&transaction, &parents.creates());
        Box::pin(self.clone().deliver(transaction, parents, first))
    }

    async fn deliver<T: Transaction>(
        self,
        transaction: T,
        mut parents: Parents,
        mut sent: Reply<Outcome<()>>,
    ) -> Outcome<()> {
        loop {
            match self.shared.delivered(&mut parents, sent.await) {
                Delivery::Done(outcome) => return outcome,
                Delivery::Look => {
                    if let Err(outcome) = parents.look(&self).await {
                        return outcome;
                    }
                }
            }
            sent = self.multi(&transaction, &parents.creates());
        }
    }

    fn glance<T: Send + 'static>(
        &self,
        path: String,
        part: Part,
        decode: fn(Answer) -> ReadResult<Option<T>>,
    ) -> Reply<ReadResult<Glanced<T>>> {
        if !self.is_connected() {
            return Box::pin(ready(decode(Answer::NotSent).map(|_| None)));
        }
        let ((answer, answered), (changed, change)) = (oneshot::channel(), oneshot::channel());
        self.shared.want(Want::Glance { zk: self.zk, path, part, answer, changed });
        Box::pin(async move {
            let read = decode(received(answered).await)?;
            // The sender is dropped when the session ends.
            let glance: Glance = Box::pin(change.map(|_| ()));
            Ok(read.map(|read| (read, glance)))
        })
    }

    fn multi(&self, transaction: &impl Transaction, first: &[Op]) -> Reply<Outcome<()>> {
        self.ask(protocol::commit(first.iter().chain(transaction.ops())), protocol::written)
    }
}

/// Waits for the reply. The world drops its sender only when it ends the process.
async fn received(answer: oneshot::Receiver<Answer>) -> Answer {
    answer.await.unwrap_or(Answer::Lost)
}

impl Requests for Session {
    fn commit(&self, ops: Vec<Op>) -> Reply<Outcome<()>> {
        self.commit_of(ops)
    }

    fn create_sequential(&self, prefix: String, data: Vec<u8>) -> Reply<Outcome<String>> {
        self.ask(protocol::create_sequential(prefix, data), protocol::created)
    }

    fn sync(&self, path: String) -> Reply<ReadResult<()>> {
        self.ask(Request::Sync { path }, protocol::answered)
    }

    fn get(&self, path: String) -> Reply<ReadResult<Option<Node>>> {
        self.ask(protocol::get(path), protocol::got)
    }

    fn children(&self, path: String) -> Reply<ReadResult<Option<Vec<String>>>> {
        self.ask(protocol::children(path), protocol::listed)
    }

    fn get_many(&self, paths: Vec<String>) -> Reply<ReadResult<Vec<Option<Node>>>> {
        // Sends nothing for an empty list, like the client library.
        if paths.is_empty() {
            return Box::pin(ready(Ok(Vec::new())));
        }
        self.ask(protocol::get_many(paths), protocol::got_many)
    }

    fn children_many(&self, paths: Vec<String>) -> Reply<ReadResult<Vec<Option<Vec<String>>>>> {
        if paths.is_empty() {
            return Box::pin(ready(Ok(Vec::new())));
        }
        self.ask(protocol::children_many(paths), protocol::listed_many)
    }
}

impl Port for Session {
    fn is_connected(&self) -> bool {
        let view = self.shared.view();
        view.connected && view.generation == self.zk.0
    }

    /// Only the next session of the process shows that this one has ended.
    fn has_ended(&self) -> bool {
        self.shared.view().generation > self.zk.0
    }

    fn commit_shared(&self, transaction: Arc<dyn Transaction + Send + Sync>) -> Reply<Outcome<()>> {
        self.commit_of(transaction)
    }

    fn watch(&self, path: String) -> Reply<ReadResult<Box<dyn Watch>>> {
        if !self.is_connected() {
            return Box::pin(ready(
                protocol::answered(Answer::NotSent).map(|()| unreachable!("it was not sent")),
            ));
        }
        let ((set, answered), (changes, heard)) = (oneshot::channel(), mpsc::unbounded());
        self.shared.want(Want::Watch { zk: self.zk, path, set, changes });
        Box::pin(async move {
            protocol::answered(received(answered).await)?;
            Ok(Box::new(Changes(heard)) as Box<dyn Watch>)
        })
    }

    fn get_and_glance(&self, path: String) -> Reply<ReadResult<Glanced<Node>>> {
        self.glance(path, Part::Data, protocol::got)
    }

    fn children_and_glance(&self, path: String) -> Reply<ReadResult<Glanced<Vec<String>>>> {
        self.glance(path, Part::Children, protocol::listed)
    }
}

struct Changes(mpsc::UnboundedReceiver<Change>);

impl Watch for Changes {
    fn changes(&mut self) -> Pin<Box<dyn Future<Output = Option<Vec<Change>>> + Send + '_>> {
        Box::pin(async {
            let mut changes = vec![self.0.next().await?];
            while let Some(Some(change)) = self.0.next().now_or_never() {
                changes.push(change);
            }
            Some(changes)
        })
    }
}
