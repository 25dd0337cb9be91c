//! Reads, alone and in batches. A batch of 100 costs about as much as one.

use bellwether_core::budget::MAX_READ_BATCH;
use bellwether_core::time::WallMillis;
use zookeeper_client::{Error, MultiReadResult, Stat};

use crate::error::ReadError;
use crate::session::Zk;
use crate::watch::Glance;

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
    fn children_ever(cversion: i32, children: i32) -> Self {
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

impl Node {
    fn new(data: Vec<u8>, stat: &Stat) -> Self {
        Self {
            data,
            version: stat.version,
            owner: stat.ephemeral_owner,
            created: stat.czxid,
            written: stat.mzxid,
            modified: WallMillis(u64::try_from(stat.mtime).unwrap_or(0)),
            children: usize::try_from(stat.num_children).unwrap_or(0),
            children_ever: Tally::children_ever(stat.cversion, stat.num_children),
        }
    }
}

impl Zk {
    /// Lets the server catch up with the leader of the ensemble: what is read after it, in the order of calls,
    /// shows every write that was committed before. For reading back what became of a write; a decision still
    /// needs a version to check on.
    pub fn sync(&self, path: String) -> impl Future<Output = ReadResult<()>> + Send + use<> {
        self.read(1, |client| async move { client.sync(&path).await })
    }

    /// Reads a znode; `None` when it is absent.
    pub fn get(&self, path: String) -> impl Future<Output = ReadResult<Option<Node>>> + Send + use<> {
        self.read(1, |client| async move {
            found(client.get_data(&path).await.map(|(data, stat)| Node::new(data, &stat)))
        })
    }

    /// Lists a znode's children, unordered; `None` when it is absent.
    pub fn children(
        &self,
        path: String,
    ) -> impl Future<Output = ReadResult<Option<Vec<String>>>> + Send + use<> {
        self.read(1, |client| async move { found(client.list_children(&path).await) })
    }

    /// Reads a znode and watches for its next change; `None` when it is absent, without a watch.
    pub fn get_and_glance(
        &self,
        path: String,
    ) -> impl Future<Output = ReadResult<Option<(Node, Glance)>>> + Send + use<> {
        self.read(1, |client| async move {
            let read = client.get_and_watch_data(&path).await;
            found(read.map(|(data, stat, watcher)| (Node::new(data, &stat), Glance::new(watcher))))
        })
    }

    /// Whether a znode exists, and a watch for when that, or its data, next changes.
    pub fn exists_and_glance(
        &self,
        path: String,
    ) -> impl Future<Output = ReadResult<(bool, Glance)>> + Send + use<> {
        self.read(1, |client| async move {
            let (stat, watcher) = client.check_and_watch_stat(&path).await?;
            Ok((stat.is_some(), Glance::new(watcher)))
        })
    }

    /// Reads up to [`MAX_READ_BATCH`] znodes in one request, in order; `None` for each that is absent.
    pub fn get_many(
        &self,
        paths: Vec<String>,
    ) -> impl Future<Output = ReadResult<Vec<Option<Node>>>> + Send + use<> {
        debug_assert!(paths.len() <= MAX_READ_BATCH, "{} paths", paths.len());
        self.read(paths.len(), |client| async move {
            let mut reader = client.new_multi_reader();
            for path in &paths {
                reader.add_get_data(path)?;
            }
            let results = reader.commit();
            drop(paths);
            results.await?.into_iter().map(node).collect()
        })
    }

    /// Lists the children of up to [`MAX_READ_BATCH`] znodes in one request; `None` for each that is absent.
    pub fn children_many(
        &self,
        paths: Vec<String>,
    ) -> impl Future<Output = ReadResult<Vec<Option<Vec<String>>>>> + Send + use<> {
        debug_assert!(paths.len() <= MAX_READ_BATCH, "{} paths", paths.len());
        self.read(paths.len(), |client| async move {
            let mut reader = client.new_multi_reader();
            for path in &paths {
                reader.add_get_children(path)?;
            }
            let results = reader.commit();
            drop(paths);
            results.await?.into_iter().map(children).collect()
        })
    }
}

fn found<T>(result: Result<T, Error>) -> Result<Option<T>, Error> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(Error::NoNode) => Ok(None),
        Err(error) => Err(error),
    }
}

fn node(result: MultiReadResult) -> Result<Option<Node>, Error> {
    match result {
        MultiReadResult::Data { data, stat } => Ok(Some(Node::new(data, &stat))),
        MultiReadResult::Error { err } => found(Err(err)),
        other => Err(Error::UnexpectedError(format!("asked for data, got {other:?}"))),
    }
}

fn children(result: MultiReadResult) -> Result<Option<Vec<String>>, Error> {
    match result {
        MultiReadResult::Children { children } => Ok(Some(children)),
        MultiReadResult::Error { err } => found(Err(err)),
        other => Err(Error::UnexpectedError(format!("asked for children, got {other:?}"))),
    }
}
