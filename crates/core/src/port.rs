//! The interface of a ZooKeeper session: its requests, their replies and watch events.
//!
//! `bellwether-zk` implements it on a real session, the simulator on the model of the keeper.

use std::pin::Pin;
use std::sync::Arc;

use crate::machine::worker::Lookup;
use crate::outcome::{Outcome, Reason};
use crate::path::Place;
use crate::time::WallMillis;
use crate::txn::{Batch, Op};
use crate::wire::Stored;

/// Why a read failed. Reads change nothing, so there is no unknown outcome: read again.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// The session is not connected, or the connection was lost before the reply.
    #[error("the connection to ZooKeeper is lost")]
    Disconnected,
    /// The server refused the read.
    #[error("ZooKeeper refused the read")]
    Refused(#[source] Reason),
}

/// The reply to a read, or the error.
pub type ReadResult<T> = Result<T, ReadError>;

/// A znode: its data and the parts of its stat that are needed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// Its data.
    pub data: Vec<u8>,
    /// Its version, which a write checks.
    pub version: i32,
    /// The session that owns it; 0 when it is not ephemeral.
    pub owner: i64,
    /// The zxid of the transaction that created it: orders znodes by age.
    pub created: i64,
    /// The zxid of the transaction that created it or last set its data: orders writes.
    pub written: i64,
    /// The time of that transaction, by the clock of ZooKeeper's leader.
    pub modified: WallMillis,
    /// The number of its children.
    pub children: usize,
    /// How many children were ever created in it, including deleted ones.
    pub children_ever: WrappingCount,
}

/// A count that a server keeps modulo 2³¹: only differences are meaningful.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WrappingCount(u32);

impl WrappingCount {
    /// A larger difference means that the counter was reset: so many changes between two reads are impossible.
    const CREDIBLE: u32 = 1 << 30;

    /// Converts a number of things, to be added or subtracted.
    #[must_use]
    pub fn of(count: usize) -> Self {
        Self(u32::try_from(count & 0x7fff_ffff).expect("31 bits"))
    }

    /// The number of children ever created in a parent, from its stat. On the wire, `cversion` is twice the number of
    /// creations less the number of children.
    #[must_use]
    pub fn children_ever(cversion: i32, children: i32) -> Self {
        Self(cversion.cast_unsigned().wrapping_add(children.cast_unsigned()) / 2)
    }

    /// How much larger it is than `then`; `None` if it is smaller, such as after the parent was deleted and created
    /// again.
    #[must_use]
    pub fn since(self, then: Self) -> Option<u32> {
        Some(self.less(then).0).filter(|more| *more < Self::CREDIBLE)
    }

    /// The sum of both counts.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self(self.0.wrapping_add(other.0) & (u32::MAX >> 1))
    }

    /// The difference of both counts.
    #[must_use]
    pub fn less(self, other: Self) -> Self {
        Self(self.0.wrapping_sub(other.0) & (u32::MAX >> 1))
    }
}

/// The kind of change of a znode.
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
    /// The changed znode.
    pub place: Place,
    /// The kind of change.
    pub kind: ChangeKind,
}

/// Operations that are committed as one multi.
pub trait Transaction {
    /// The operations in order.
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
    /// Decodes the znode that a read returned.
    pub fn look<T: Stored>(node: &Option<Self>) -> Lookup<T> {
        Lookup::of(node.as_ref().map(|node| (node.data.as_slice(), node.version)))
    }
}

/// A pending reply. The request was sent when the method was called; dropping the reply does not cancel it.
pub type Reply<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// The requests of one ZooKeeper session. Each is sent when its method is called, in the order of the calls.
///
/// A write whose reply is lost is [`Outcome::Unknown`]; a read without a reply is a [`ReadError`]. While the session
/// is not connected, nothing is sent, and the reply states this immediately.
pub trait Requests: Send + Sync {
    /// Commits all operations or none.
    fn commit(&self, ops: Vec<Op>) -> Reply<Outcome<()>>;
    /// Creates an ephemeral sequential znode and returns its path.
    fn create_sequential(&self, prefix: String, data: Vec<u8>) -> Reply<Outcome<String>>;
    /// Waits until the session's server has applied every write that was committed before the call.
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

/// A watch for one change. It resolves at the change, or when the session ends; read again in either case.
pub type Glance = Reply<()>;

/// The result of a read, with a watch; `None`, without a watch, when the znode is absent.
pub type Glanced<T> = Option<(T, Glance)>;

/// A recursive watch.
pub trait Watch: Send {
    /// Returns all changes since the last call, in order, and waits for the first one. `None` when the connection
    /// was lost, which ends the watch. Cancel safe: dropping the future loses no change.
    fn changes(&mut self) -> Pin<Box<dyn Future<Output = Option<Vec<Change>>> + Send + '_>>;
}

/// One ZooKeeper session, as clients use it.
pub trait Session: Requests {
    /// Whether requests are served now.
    fn is_connected(&self) -> bool;

    /// Whether the session is known to have ended: nothing more is sent in it.
    fn has_ended(&self) -> bool;

    /// As [`Requests::commit`], for a transaction that the caller keeps. The session drops its reference before the
    /// reply resolves.
    fn commit_shared(&self, transaction: Arc<dyn Transaction + Send + Sync>) -> Reply<Outcome<()>>;

    /// Watches a path and everything below it until the connection is lost.
    fn watch(&self, path: String) -> Reply<ReadResult<Box<dyn Watch>>>;

    /// Reads a znode and watches for its next change; `None`, without a watch, when it is absent.
    fn get_and_glance(&self, path: String) -> Reply<ReadResult<Glanced<Node>>>;

    /// Lists the children of a znode and watches for the next one that is created or deleted, and for the deletion of the znode;
    /// `None`, without a watch, when it is absent.
    fn children_and_glance(&self, path: String) -> Reply<ReadResult<Glanced<Vec<String>>>>;
}

impl dyn Session {
    /// Commits a batch and returns it with its outcome, without copying its operations.
    pub fn commit_batch<K: Send + Sync + 'static>(
        &self,
        batch: Batch<K>,
    ) -> impl Future<Output = (Batch<K>, Outcome<()>)> + Send + use<K> {
        let batch = Arc::new(batch);
        let reply = self.commit_shared(Arc::<Batch<K>>::clone(&batch));
        async move {
            let outcome = reply.await;
            let batch = Arc::into_inner(batch).expect("a session drops a transaction before it replies");
            (batch, outcome)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrapping_count_counts_modulo_31_bits() {
        let last = WrappingCount::of(0x7fff_ffff);
        let next = last.plus(WrappingCount::of(3));
        assert_eq!(next, WrappingCount::of(2), "the counter starts again at zero");
        assert_eq!(next.since(last), Some(3));
        assert_eq!(next.less(WrappingCount::of(3)), last);
        assert_eq!(WrappingCount::of(0x8000_0005), WrappingCount::of(5));
    }

    #[test]
    fn a_wrapping_count_that_moved_backwards_or_too_far_has_no_difference() {
        assert_eq!(WrappingCount::of(7).since(WrappingCount::of(7)), Some(0));
        assert_eq!(WrappingCount::of(7).since(WrappingCount::of(8)), None);
        let most = (1 << 30) - 1;
        assert_eq!(WrappingCount::of(most).since(WrappingCount::of(0)), Some(most as u32));
        assert_eq!(WrappingCount::of(most + 1).since(WrappingCount::of(0)), None);
    }

    #[test]
    fn the_number_of_children_ever_created_follows_from_the_stat_of_the_parent() {
        // Five creations and two deletions.
        assert_eq!(WrappingCount::children_ever(7, 3), WrappingCount::of(5));
        assert_eq!(
            WrappingCount::children_ever(i32::MIN, 0),
            WrappingCount::of(1 << 30),
            "the counter of the server is signed"
        );
    }
}
