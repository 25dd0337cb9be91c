//! Implements the session interface of core on a real session.

use std::pin::Pin;
use std::sync::Arc;

use bellwether_core::outcome::Outcome;
use bellwether_core::port::{
    Change, Glance, Glanced, Node, ReadResult, Reply, Requests, Session, Transaction,
};
use bellwether_core::txn::Op;
use futures::FutureExt;

use crate::session::{SessionState, Zk};
use crate::watch::Watch;

impl Requests for Zk {
    fn commit(&self, ops: Vec<Op>) -> Reply<Outcome<()>> {
        Box::pin(self.commit(ops))
    }

    fn create_sequential(&self, prefix: String, data: Vec<u8>) -> Reply<Outcome<String>> {
        Box::pin(self.create_sequential(prefix, data))
    }

    fn sync(&self, path: String) -> Reply<ReadResult<()>> {
        Box::pin(self.sync(path))
    }

    fn get(&self, path: String) -> Reply<ReadResult<Option<Node>>> {
        Box::pin(self.get(path))
    }

    fn children(&self, path: String) -> Reply<ReadResult<Option<Vec<String>>>> {
        Box::pin(self.children(path))
    }

    fn get_many(&self, paths: Vec<String>) -> Reply<ReadResult<Vec<Option<Node>>>> {
        Box::pin(self.get_many(paths))
    }

    fn children_many(&self, paths: Vec<String>) -> Reply<ReadResult<Vec<Option<Vec<String>>>>> {
        Box::pin(self.children_many(paths))
    }
}

impl Session for Zk {
    fn is_connected(&self) -> bool {
        self.state() == SessionState::Connected
    }

    fn has_ended(&self) -> bool {
        self.state() == SessionState::Ended
    }

    fn commit_shared(&self, transaction: Arc<dyn Transaction + Send + Sync>) -> Reply<Outcome<()>> {
        // The returned reference is dropped here.
        Box::pin(self.commit_of(transaction).map(|(_, outcome)| outcome))
    }

    fn watch(&self, path: String) -> Reply<ReadResult<Box<dyn bellwether_core::port::Watch>>> {
        let watch = self.watch_path(path);
        Box::pin(watch.map(|watch| watch.map(|watch| Box::new(watch) as Box<_>)))
    }

    fn get_and_glance(&self, path: String) -> Reply<ReadResult<Glanced<Node>>> {
        let read = self.get_and_glance(path);
        Box::pin(read.map(|read| read.map(|found| found.map(boxed))))
    }

    fn children_and_glance(&self, path: String) -> Reply<ReadResult<Glanced<Vec<String>>>> {
        let read = self.children_and_glance(path);
        Box::pin(read.map(|read| read.map(|found| found.map(boxed))))
    }
}

fn boxed<T>((read, glance): (T, crate::watch::Glance)) -> (T, Glance) {
    (read, Box::pin(glance.changed()))
}

impl bellwether_core::port::Watch for Watch {
    fn changes(&mut self) -> Pin<Box<dyn Future<Output = Option<Vec<Change>>> + Send + '_>> {
        Box::pin(self.changes())
    }
}
