//! A real session as core's interface of one.

use bellwether_core::outcome::Outcome;
use bellwether_core::port::{Node, ReadResult, Reply, Requests};
use bellwether_core::txn::Op;

use crate::session::Zk;

impl Requests for Zk {
    fn commit(&self, ops: Vec<Op>) -> Reply<Outcome<()>> {
        Box::pin(self.commit(ops))
    }

    fn create_container(&self, path: String) -> Reply<Outcome<()>> {
        Box::pin(self.create_container(path))
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
