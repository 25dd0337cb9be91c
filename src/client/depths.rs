//! How many jobs there are, without reading one of them: a parent tells how many children it has.

use bellwether_core::budget::MAX_READ_BATCH;
use bellwether_core::path::{self, Bucket};
use bellwether_zk::{ReadResult, Zk};
use futures::future::try_join_all;

use super::Client;
use super::error::Error;
use super::list::minutes;

/// How many jobs there are, by where they are. Each number is of a moment of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Depths {
    /// Records, of open jobs and of those that are over.
    pub stored: usize,
    /// Jobs that wait for a worker.
    pub queued: usize,
    /// Jobs that wait for their time.
    pub delayed: usize,
    /// Jobs that were set aside.
    pub quarantined: usize,
}

impl Client {
    /// Counts jobs: about ten requests, however many there are, and one more for each hundred minutes that hold a delayed
    /// one.
    ///
    /// # Errors
    /// When ZooKeeper does not answer within the client's deadline.
    pub async fn depths(&self) -> Result<Depths, Error> {
        self.0.link.read(self.by(), |zk| depths(zk.clone())).await
    }
}

async fn depths(zk: Zk) -> ReadResult<Depths> {
    let stored = children(&zk, Bucket::all().map(Bucket::jobs).collect());
    let queued = children(&zk, Bucket::all().map(Bucket::queue).collect());
    let quarantined = children(&zk, vec![path::QUARANTINE.to_owned()]);
    let delayed = async { children(&zk, minutes(zk.clone()).await?.into()).await };
    let (stored, queued, quarantined, delayed) = futures::try_join!(stored, queued, quarantined, delayed)?;
    Ok(Depths { stored, queued, delayed, quarantined })
}

async fn children(zk: &Zk, parents: Vec<String>) -> ReadResult<usize> {
    let reads = parents.chunks(MAX_READ_BATCH).map(|parents| zk.get_many(parents.to_vec()));
    let nodes = try_join_all(reads).await?;
    Ok(nodes.into_iter().flatten().flatten().map(|node| node.children).sum())
}
