//! A session whose replies the test chooses.

use std::future::{pending, ready};
use std::pin::Pin;
use std::sync::Arc;

use bellwether_core::outcome::{Outcome, Rejection};
use bellwether_core::port::{
    Change, Glance, Glanced, Node, ReadError, ReadResult, Reply, Requests, Session, Transaction, Watch,
};
use bellwether_core::txn::Op;
use futures::FutureExt;
use tokio::sync::{mpsc, oneshot};

use super::{Answer, Part, Request, Tree, World};

pub(super) struct InMemory(pub(super) Arc<World>);

impl InMemory {
    fn write(&self, ops: Vec<Op>) -> Reply<Outcome<()>> {
        let answer = self.0.asked(Request::Commit(ops.clone()));
        let outcome = match answer {
            Answer::Serve => match self.0.applied(&ops) {
                Ok(()) => Outcome::Applied(()),
                Err(rejection) => Outcome::Rejected(rejection),
            },
            Answer::LoseReply => {
                // A rejected write whose reply is lost is unknown, too.
                let _ = self.0.applied(&ops);
                Outcome::Unknown
            }
            Answer::LoseRequest => Outcome::Unknown,
            Answer::Refuse(at, reason) => Outcome::Rejected(Rejection { at, reason }),
            Answer::Hang => return Box::pin(pending()),
        };
        Box::pin(ready(outcome))
    }

    fn read<T: Send + 'static>(
        &self,
        request: Request,
        read: impl FnOnce(&World) -> T,
    ) -> Reply<ReadResult<T>> {
        match self.0.asked(request) {
            Answer::Serve => Box::pin(ready(Ok(read(&self.0)))),
            Answer::LoseReply | Answer::LoseRequest => Box::pin(ready(Err(ReadError::Disconnected))),
            Answer::Refuse(_, reason) => Box::pin(ready(Err(ReadError::Refused(reason)))),
            Answer::Hang => Box::pin(pending()),
        }
    }

    fn glance<T: Send + 'static>(
        &self,
        path: String,
        part: Part,
        read: fn(&Tree, &str) -> Option<T>,
    ) -> Reply<ReadResult<Glanced<T>>> {
        let (changed, change) = oneshot::channel();
        let read = self.read(Request::Glance(path.clone()), |world| {
            let read = read(&world.tree(), &path)?;
            world.add_glance((path, part), changed);
            Some(read)
        });
        let glance: Glance = Box::pin(change.map(drop));
        Box::pin(read.map(|found| found.map(|found| found.map(|found| (found, glance)))))
    }
}

impl Requests for InMemory {
    fn commit(&self, ops: Vec<Op>) -> Reply<Outcome<()>> {
        self.write(ops)
    }

    fn create_sequential(&self, prefix: String, _: Vec<u8>) -> Reply<Outcome<String>> {
        unreachable!("a client creates no sequential znode such as {prefix}")
    }

    fn sync(&self, _: String) -> Reply<ReadResult<()>> {
        self.read(Request::Sync, |_| ())
    }

    fn get(&self, path: String) -> Reply<ReadResult<Option<Node>>> {
        self.read(Request::Get(vec![path.clone()]), |world| world.tree().get(&path))
    }

    fn children(&self, path: String) -> Reply<ReadResult<Option<Vec<String>>>> {
        self.read(Request::List(vec![path.clone()]), |world| world.tree().children(&path))
    }

    fn get_many(&self, paths: Vec<String>) -> Reply<ReadResult<Vec<Option<Node>>>> {
        if paths.is_empty() {
            return Box::pin(ready(Ok(Vec::new())));
        }
        self.read(Request::Get(paths.clone()), |world| {
            let tree = world.tree();
            paths.iter().map(|path| tree.get(path)).collect()
        })
    }

    fn children_many(&self, paths: Vec<String>) -> Reply<ReadResult<Vec<Option<Vec<String>>>>> {
        if paths.is_empty() {
            return Box::pin(ready(Ok(Vec::new())));
        }
        self.read(Request::List(paths.clone()), |world| {
            let tree = world.tree();
            paths.iter().map(|path| tree.children(path)).collect()
        })
    }
}

impl Session for InMemory {
    fn is_connected(&self) -> bool {
        self.0.is_connected()
    }

    fn has_ended(&self) -> bool {
        false
    }

    fn commit_shared(&self, transaction: Arc<dyn Transaction + Send + Sync>) -> Reply<Outcome<()>> {
        let ops = transaction.ops().cloned().collect();
        drop(transaction);
        self.write(ops)
    }

    fn watch(&self, _: String) -> Reply<ReadResult<Box<dyn Watch>>> {
        let (changes, heard) = mpsc::unbounded_channel();
        let set = self.read(Request::Watch, |world| world.add_watch(changes));
        Box::pin(set.map(|set| set.map(|()| Box::new(Changes(heard)) as Box<dyn Watch>)))
    }

    fn get_and_glance(&self, path: String) -> Reply<ReadResult<Glanced<Node>>> {
        self.glance(path, Part::Data, Tree::get)
    }

    fn children_and_glance(&self, path: String) -> Reply<ReadResult<Glanced<Vec<String>>>> {
        self.glance(path, Part::Children, Tree::children)
    }
}

struct Changes(mpsc::UnboundedReceiver<Vec<Change>>);

impl Watch for Changes {
    fn changes(&mut self) -> Pin<Box<dyn Future<Output = Option<Vec<Change>>> + Send + '_>> {
        Box::pin(self.0.recv())
    }
}
