//! Reads, single and in batches. A batch of 100 costs about as much as a single read.

use bellwether_core::budget::{MAX_READ_BATCH, MAX_STAT_BATCH};
use bellwether_core::time::WallMillis;
use zookeeper_client::{Error, MultiReadResult, Stat};

use crate::session::Zk;
use crate::watch::Glance;

pub use bellwether_core::port::{Node, ReadResult, WrappingCount};

fn node_of(data: Vec<u8>, stat: &Stat) -> Node {
    Node {
        data,
        version: stat.version,
        owner: stat.ephemeral_owner,
        created: stat.czxid,
        written: stat.mzxid,
        modified: WallMillis(u64::try_from(stat.mtime).unwrap_or(0)),
        children: usize::try_from(stat.num_children).unwrap_or(0),
        children_ever: WrappingCount::children_ever(stat.cversion, stat.num_children),
    }
}

impl Zk {
    /// Makes the server catch up with the leader of the ensemble: later reads, in the order of calls, see every
    /// write that was committed before. Use it to find out the outcome of a write. A decision still needs a version
    /// to check.
    pub fn sync(&self, path: String) -> impl Future<Output = ReadResult<()>> + Send + use<> {
        self.synced(path)
    }

    /// Reads a znode; `None` when it is absent.
    pub fn get(&self, path: String) -> impl Future<Output = ReadResult<Option<Node>>> + Send + use<> {
        self.read(1, |client| async move {
            found(client.get_data(&path).await.map(|(data, stat)| node_of(data, &stat)))
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
            found(read.map(|(data, stat, watcher)| (node_of(data, &stat), Glance::new(watcher))))
        })
    }

    /// Lists a znode's children and watches for the next one that is created or deleted; `None` when it is absent, without a
    /// watch.
    pub fn children_and_glance(
        &self,
        path: String,
    ) -> impl Future<Output = ReadResult<Option<(Vec<String>, Glance)>>> + Send + use<> {
        self.read(1, |client| async move {
            let read = client.list_and_watch_children(&path).await;
            found(read.map(|(children, watcher)| (children, Glance::new(watcher))))
        })
    }

    /// Returns whether a znode exists, and a watch for the next change of its existence or its data.
    pub fn exists_and_glance(
        &self,
        path: String,
    ) -> impl Future<Output = ReadResult<(bool, Glance)>> + Send + use<> {
        self.read(1, |client| async move {
            let (stat, watcher) = client.check_and_watch_stat(&path).await?;
            Ok((stat.is_some(), Glance::new(watcher)))
        })
    }

    /// Reads up to [`MAX_READ_BATCH`] znodes in one request, or [`MAX_STAT_BATCH`] that have no data, in order; `None` for each
    /// that is absent.
    pub fn get_many(
        &self,
        paths: Vec<String>,
    ) -> impl Future<Output = ReadResult<Vec<Option<Node>>>> + Send + use<> {
        debug_assert!(paths.len() <= MAX_STAT_BATCH, "{} paths", paths.len());
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
        MultiReadResult::Data { data, stat } => Ok(Some(node_of(data, &stat))),
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
