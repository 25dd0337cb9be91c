//! The inputs that a concern reads from its host, and the outputs that it requests.

use std::sync::Arc;
use std::time::Duration;

use bellwether_core::outcome::Outcome;
use bellwether_core::port::{Change, Node, ReadResult, Reply, Requests, Transaction};
use bellwether_core::time::{Millis, WallMillis};
use bellwether_core::txn::{Batch, Op};

use crate::Concern;

/// Turns an answer into a message; `None` when the concern does not need it. Bytes are decoded here, before the message
/// enters the mailbox.
pub type Answer<A, M> = Box<dyn FnOnce(A) -> Option<M> + Send>;

/// Several requests in a row on the concern's session; the output is its message.
pub type Task<M> = Box<dyn FnOnce(Arc<dyn Requests>) -> Reply<Option<M>> + Send>;

/// How long a session can be trusted to live.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Trust {
    /// The session's id.
    pub session: i64,
    /// The time of its last contact plus the time that its timeout guarantees.
    pub until: Millis,
}

/// A report of a recursive watch.
#[derive(Debug)]
pub enum Feed {
    /// The watch is set: a listing that is requested from now on misses no change.
    Watching,
    /// Changes, in order.
    Changes(Vec<Change>),
}

/// A transaction and the message that its outcome becomes.
pub trait Commit<M>: Transaction + Send {
    /// Turns the outcome into a message.
    fn answered(self: Box<Self>, outcome: Outcome<()>) -> Option<M>;
}

impl<M> Transaction for Box<dyn Commit<M>> {
    fn ops(&self) -> Box<dyn Iterator<Item = &Op> + '_> {
        (**self).ops()
    }
}

struct Committing<T, F> {
    transaction: T,
    answer: F,
}

impl<T: Transaction, F> Transaction for Committing<T, F> {
    fn ops(&self) -> Box<dyn Iterator<Item = &Op> + '_> {
        self.transaction.ops()
    }
}

impl<M, T, F> Commit<M> for Committing<T, F>
where
    T: Transaction + Send,
    F: FnOnce(T, Outcome<()>) -> Option<M> + Send,
{
    fn answered(self: Box<Self>, outcome: Outcome<()>) -> Option<M> {
        (self.answer)(self.transaction, outcome)
    }
}

/// A request to the concern's ZooKeeper session.
pub enum Ask<M> {
    /// One multi.
    Commit(Box<dyn Commit<M>>),
    /// Reads a znode.
    Get(String, Answer<ReadResult<Option<Node>>, M>),
    /// Lists the children of a znode.
    Children(String, Answer<ReadResult<Option<Vec<String>>>, M>),
    /// Reads znodes, at most `MAX_READ_BATCH`, or `MAX_STAT_BATCH` that have no data.
    GetMany(Vec<String>, Answer<ReadResult<Vec<Option<Node>>>, M>),
    /// Lists the children of znodes, at most `MAX_READ_BATCH`.
    ChildrenMany(Vec<String>, Answer<ReadResult<Vec<Option<Vec<String>>>>, M>),
}

/// One thing that the host does for a concern.
pub enum Out<C: Concern> {
    /// Sends a request now. While the session is not connected, the answer says that nothing was sent.
    Ask(Ask<C::Msg>),
    /// Starts a task: several requests, one after the other.
    Task(Task<C::Msg>),
    /// Sets a recursive watch, and then drops the one with the same key. A watch ends with its connection.
    Watch(C::Key, String, fn(Feed) -> C::Msg),
    /// Sets a one-shot watch on a znode's existence and data, and then drops the watch with the same key. The first
    /// message says whether the znode exists. The second is sent when the znode changes or the session ends.
    Glance(C::Key, String, Answer<ReadResult<bool>, C::Msg>, C::Msg),
    /// Drops the watch with this key.
    Unwatch(C::Key),
    /// Sends a message to the concern later; replaces the timer with the same key.
    After(C::Key, Duration, C::Msg),
    /// Like [`Out::After`], for a periodic listing. Tests can shorten its period.
    Sweep(C::Key, Duration, C::Msg),
    /// Drops the timer with this key.
    Disarm(C::Key),
    /// Replaces the concern's will: operations that the host commits when the concern ends for any reason. The host
    /// repeats the commit until its outcome is known or the session has ended.
    Will(Option<Vec<Op>>),
    /// Sends a message to a neighbour.
    Tell(C::Tell),
}

/// The inputs of a concern while it handles a message, and its outputs.
pub struct Context<'a, C: Concern> {
    /// This process's monotonic clock.
    pub now: Millis,
    /// The wall-clock time: ZooKeeper's, as far as the process has read it ([`bellwether_core::clock`]). All decisions use it.
    pub wall: WallMillis,
    /// This machine's wall clock, which may be wrong. Only for the comparison with ZooKeeper's.
    pub local: WallMillis,
    /// How long the concern's current session can be trusted; `None` without a session.
    pub trust: Option<Trust>,
    /// Randomness for jitter and ids. Not for secrets.
    pub rng: &'a mut fastrand::Rng,
    /// The outputs so far, in order.
    pub out: &'a mut Vec<Out<C>>,
}

impl<C: Concern> Context<'_, C> {
    /// Sends a message to a neighbour.
    pub fn tell(&mut self, tell: C::Tell) {
        self.out.push(Out::Tell(tell));
    }

    /// Replaces the operations that the host commits when this concern ends for any reason.
    pub fn will(&mut self, ops: Option<Vec<Op>>) {
        self.out.push(Out::Will(ops));
    }

    /// Commits all operations or none.
    pub fn commit(
        &mut self,
        ops: Vec<Op>,
        answer: impl FnOnce(Vec<Op>, Outcome<()>) -> Option<C::Msg> + Send + 'static,
    ) {
        self.out.push(Out::Ask(Ask::Commit(Box::new(Committing { transaction: ops, answer }))));
    }

    /// Commits a batch. The answer gets the batch back with its outcome.
    pub fn commit_batch<K: Send + 'static>(
        &mut self,
        batch: Batch<K>,
        answer: impl FnOnce(Batch<K>, Outcome<()>) -> C::Msg + Send + 'static,
    ) {
        let answer = |batch, outcome| Some(answer(batch, outcome));
        self.out.push(Out::Ask(Ask::Commit(Box::new(Committing { transaction: batch, answer }))));
    }

    /// Reads a znode.
    pub fn get(
        &mut self,
        path: String,
        answer: impl FnOnce(ReadResult<Option<Node>>) -> C::Msg + Send + 'static,
    ) {
        self.out.push(Out::Ask(Ask::Get(path, Box::new(|node| Some(answer(node))))));
    }

    /// Lists the children of a znode.
    pub fn children(
        &mut self,
        path: String,
        answer: impl FnOnce(ReadResult<Option<Vec<String>>>) -> C::Msg + Send + 'static,
    ) {
        self.out.push(Out::Ask(Ask::Children(path, Box::new(|names| Some(answer(names))))));
    }

    /// Reads znodes, at most `MAX_READ_BATCH`, or `MAX_STAT_BATCH` that have no data.
    pub fn get_many(
        &mut self,
        paths: Vec<String>,
        answer: impl FnOnce(ReadResult<Vec<Option<Node>>>) -> C::Msg + Send + 'static,
    ) {
        self.out.push(Out::Ask(Ask::GetMany(paths, Box::new(|nodes| Some(answer(nodes))))));
    }

    /// Lists the children of znodes, at most `MAX_READ_BATCH`.
    pub fn children_many(
        &mut self,
        paths: Vec<String>,
        answer: impl FnOnce(ReadResult<Vec<Option<Vec<String>>>>) -> C::Msg + Send + 'static,
    ) {
        self.out.push(Out::Ask(Ask::ChildrenMany(paths, Box::new(|lists| Some(answer(lists))))));
    }

    /// Starts a task: several requests, one after the other. Its message is sent when the task is done, and dropped
    /// when the concern has been stopped.
    pub fn task<F>(&mut self, task: impl FnOnce(Arc<dyn Requests>) -> F + Send + 'static)
    where
        F: Future<Output = C::Msg> + Send + 'static,
    {
        self.out.push(Out::Task(Box::new(|zk| {
            let task = task(zk);
            Box::pin(async { Some(task.await) })
        })));
    }

    /// Watches everything below a path until the connection is lost.
    pub fn watch(&mut self, key: C::Key, path: String, heard: fn(Feed) -> C::Msg) {
        self.out.push(Out::Watch(key, path, heard));
    }

    /// Watches the existence and data of a znode until it changes once.
    pub fn glance(
        &mut self,
        key: C::Key,
        path: String,
        exists: impl FnOnce(ReadResult<bool>) -> C::Msg + Send + 'static,
        changed: C::Msg,
    ) {
        self.out.push(Out::Glance(key, path, Box::new(|there| Some(exists(there))), changed));
    }

    /// Drops a watch.
    pub fn unwatch(&mut self, key: C::Key) {
        self.out.push(Out::Unwatch(key));
    }

    /// Sets a timer.
    pub fn after(&mut self, key: C::Key, wait: Duration, msg: C::Msg) {
        self.out.push(Out::After(key, wait, msg));
    }

    /// Sets a timer for a periodic listing. The handler sets it again, so a slow concern gets one message, not many.
    pub fn sweep(&mut self, key: C::Key, every: Duration, msg: C::Msg) {
        self.out.push(Out::Sweep(key, every, msg));
    }

    /// Drops a timer.
    pub fn disarm(&mut self, key: C::Key) {
        self.out.push(Out::Disarm(key));
    }
}
