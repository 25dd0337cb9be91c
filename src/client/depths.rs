//! How many jobs there are, without reading one of them: a parent tells how many children it has.

use bellwether_core::path::{self, Bucket};
use bellwether_zk::{Node, ReadResult, Tally};

use super::Client;
use super::cluster::get_all;
use super::error::Error;
use super::list::minutes;
use super::runtime::Zk;

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

/// What was counted, in more detail than is told.
#[derive(Debug)]
pub(super) struct Counts {
    pub(super) depths: Depths,
    /// Jobs that wait for a worker, by bucket.
    pub(super) queued: Vec<usize>,
    /// Records that were ever made, and those of them that were removed.
    pub(super) churn: Churn,
    /// Minutes with delayed jobs that were not looked into.
    pub(super) further_minutes: usize,
}

/// What came and went, over the namespace's life. To be compared with what it was before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Churn {
    /// Jobs that were submitted: records that were made.
    pub submitted: Tally,
    /// Records that were removed, as their time was over or by hand.
    pub removed: Tally,
}

async fn depths(zk: Zk) -> ReadResult<Depths> {
    Ok(counts(zk, usize::MAX).await?.depths)
}

/// Of the delayed jobs, those of so many minutes: the soonest.
pub(super) async fn counts(zk: Zk, most_minutes: usize) -> ReadResult<Counts> {
    let stored = get_all(&zk, Bucket::all().map(Bucket::jobs));
    let queued = get_all(&zk, Bucket::all().map(Bucket::queue));
    let quarantined = get_all(&zk, [path::QUARANTINE.to_owned()].into_iter());
    let delayed = async {
        let minutes = minutes(zk.clone()).await?;
        let further = minutes.len().saturating_sub(most_minutes);
        Ok((get_all(&zk, minutes.into_iter().take(most_minutes)).await?, further))
    };
    let (stored, queued, quarantined, (delayed, further_minutes)) =
        futures::try_join!(stored, queued, quarantined, delayed)?;
    let sizes = |nodes: &[Option<Node>]| {
        nodes.iter().map(|node| node.as_ref().map_or(0, |node| node.children)).collect::<Vec<_>>()
    };
    let sum = |nodes: &[Option<Node>]| sizes(nodes).into_iter().sum::<usize>();
    let submitted = stored.iter().flatten().fold(Tally::default(), |sum, node| sum.plus(node.children_ever));
    let depths = Depths {
        stored: sum(&stored),
        queued: sum(&queued),
        delayed: sum(&delayed),
        quarantined: sum(&quarantined),
    };
    let churn = Churn { submitted, removed: submitted.less(Tally::of(depths.stored)) };
    Ok(Counts { depths, queued: sizes(&queued), churn, further_minutes })
}
