//! The interface of a ZooKeeper session: requests, their answers and what a watch reports, without the session itself.
//!
//! `bellwether-zk` implements it on a real session, the simulator on its own.

use std::pin::Pin;
use std::sync::Arc;

use crate::machine::worker::Look;
use crate::outcome::{Outcome, Reason};
use crate::path::Place;
use crate::time::WallMillis;
use crate::txn::{Batch, Op};
use crate::wire::Stored;

/// Why a read has no answer. Reads change nothing, so there is no unknown: read again.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// The session is not connected now, or the connection was lost before the answer.
    #[error("the connection to ZooKeeper is lost")]
    Disconnected,
    /// The server refused.
    #[error("ZooKeeper refused the read: {0}")]
    Refused(Reason),
}

/// A read's answer, or why there is none.
pub type ReadResult<T> = Result<T, ReadError>;

/// A znode's data and what is needed to change it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// Its data.
    pub data: Vec<u8>,
    /// Its version: what a write checks on.
    pub version: i32,
    /// The session that owns it; 0 when it is not ephemeral.
    pub owner: i64,
    /// The transaction that created it: orders znodes by age.
    pub created: i64,
    /// The transaction that made it or last set its data: tells which of two znodes was written later.
    pub written: i64,
    /// When that was, by the clock of ZooKeeper's leader then.
    pub modified: WallMillis,
    /// How many children it has.
    pub children: usize,
    /// How many children it has ever had, those that are gone included.
    pub children_ever: Tally,
}

/// A count that a server keeps, modulo 2³¹: only differences mean something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tally(u32);

impl Tally {
    /// Beyond this a difference is taken for a count that began afresh: as many within one look is out of reach.
    const CREDIBLE: u32 = 1 << 30;

    /// Of a number of things, to be added or taken away.
    #[must_use]
    pub fn of(count: usize) -> Self {
        Self(u32::try_from(count & 0x7fff_ffff).expect("31 bits"))
    }

    /// A parent's children ever, from a stat. Its `cversion` is, on the wire, twice the creations less the children.
    #[must_use]
    pub fn children_ever(cversion: i32, children: i32) -> Self {
        Self(cversion.cast_unsigned().wrapping_add(children.cast_unsigned()) / 2)
    }

    /// How many more than then; `None` when there are fewer, as after the parent was made again.
    #[must_use]
    pub fn since(self, then: Self) -> Option<u32> {
        Some(self.less(then).0).filter(|more| *more < Self::CREDIBLE)
    }

    /// The two together.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self(self.0.wrapping_add(other.0) & (u32::MAX >> 1))
    }

    /// This without the other.
    #[must_use]
    pub fn less(self, other: Self) -> Self {
        Self(self.0.wrapping_sub(other.0) & (u32::MAX >> 1))
    }
}

/// What happened to a znode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangeKind {
    /// It was created.
    Created,
    /// It was deleted.
    Deleted,
    /// Its data was set.
    DataChanged,
}

/// A change below a watched path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Where.
    pub place: Place,
    /// What.
    pub kind: ChangeKind,
}

/// What is committed as one multi.
pub trait Transaction {
    /// Its operations, in order.
    fn ops(&self) -> Box<dyn Iterator<Item = &Op> + '_>;
}

impl<K> Transaction for Batch<K> {
    fn ops(&self) -> Box<dyn Iterator<Item = &Op> + '_> {
        Box::new(Self::ops(self))
    }
}

impl Transaction for Vec<Op> {
    fn ops(&self) -> Box<dyn Iterator<Item = &Op> + '_> {
        Box::new(self.iter())
    }
}

impl Transaction for Arc<dyn Transaction + Send + Sync> {
    fn ops(&self) -> Box<dyn Iterator<Item = &Op> + '_> {
        (**self).ops()
    }
}

impl Node {
    /// Decodes what a read found.
    pub fn look<T: Stored>(node: &Option<Self>) -> Look<T> {
        Look::of(node.as_ref().map(|node| (node.data.as_slice(), node.version)))
    }
}

/// A reply that is on its way. The request was sent when the method was called; dropping the reply cancels nothing.
pub type Reply<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// The requests of one ZooKeeper session. Each is sent when its method is called, in the order of the calls.
///
/// A write whose reply is lost is [`Outcome::Unknown`]; a read without an answer is a [`ReadError`]. While the session is
/// not connected, nothing is sent, and the answer says so at once.
pub trait Requests: Send + Sync {
    /// Commits all operations or none.
    fn commit(&self, ops: Vec<Op>) -> Reply<Outcome<()>>;
    /// Creates a container znode.
    fn create_container(&self, path: String) -> Reply<Outcome<()>>;
    /// Creates an ephemeral sequential znode; its path.
    fn create_sequential(&self, prefix: String, data: Vec<u8>) -> Reply<Outcome<String>>;
    /// Waits until the session's server has applied every write that was committed before.
    fn sync(&self, path: String) -> Reply<ReadResult<()>>;
    /// Reads a znode; `None` when it is absent.
    fn get(&self, path: String) -> Reply<ReadResult<Option<Node>>>;
    /// Lists the children of a znode; `None` when it is absent.
    fn children(&self, path: String) -> Reply<ReadResult<Option<Vec<String>>>>;
    /// Reads znodes, at most `MAX_READ_BATCH`.
    fn get_many(&self, paths: Vec<String>) -> Reply<ReadResult<Vec<Option<Node>>>>;
    /// Lists the children of znodes, at most `MAX_READ_BATCH`.
    fn children_many(&self, paths: Vec<String>) -> Reply<ReadResult<Vec<Option<Vec<String>>>>>;
}

/// A watch for one change: resolves at the change, or at the end of the session. Read again in either case.
pub type Glance = Reply<()>;

/// A recursive watch.
pub trait Watch: Send {
    /// All changes since the last call, in order; waits for the first. `None` when the connection was lost: the watch is
    /// dead then. Dropping the future loses nothing.
    fn changes(&mut self) -> Pin<Box<dyn Future<Output = Option<Vec<Change>>> + Send + '_>>;
}

/// One ZooKeeper session, as clients use it.
pub trait Session: Requests {
    /// Whether requests are served now.
    fn is_connected(&self) -> bool;

    /// Whether the session is known to be over: nothing is sent in it any more.
    fn has_ended(&self) -> bool;

    /// As [`Requests::commit`], for a transaction that the caller needs again. The session drops its reference before the
    /// reply resolves.
    fn commit_shared(&self, transaction: Arc<dyn Transaction + Send + Sync>) -> Reply<Outcome<()>>;

    /// Watches a path and everything below it until the connection is lost.
    fn watch(&self, path: String) -> Reply<ReadResult<Box<dyn Watch>>>;

    /// Reads a znode and watches for its next change; `None` when it is absent, without a watch.
    fn get_and_glance(&self, path: String) -> Reply<ReadResult<Option<(Node, Glance)>>>;
}

impl dyn Session {
    /// Commits a batch and gives it back with its outcome, without a copy of its operations.
    pub fn commit_batch<K: Send + Sync + 'static>(
        &self,
        batch: Batch<K>,
    ) -> impl Future<Output = (Batch<K>, Outcome<()>)> + Send + use<K> {
        let batch = Arc::new(batch);
        let reply = self.commit_shared(Arc::<Batch<K>>::clone(&batch));
        async move {
            let outcome = reply.await;
            let batch = Arc::into_inner(batch).expect("a session drops a transaction before it answers");
            (batch, outcome)
        }
    }
}
