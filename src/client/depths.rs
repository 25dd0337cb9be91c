//! Numbers of jobs without reading any of them: a znode knows how many children it has.

use bellwether_core::path::{self, SubBucket};
use bellwether_core::ready::{ClassName, Slot};
use bellwether_zk::{Node, ReadResult, Tally};

use super::Client;
use super::cluster::stat_all;
use super::error::Error;
use super::list::{minutes, ready_slots};
use super::runtime::Zk;

/// Numbers of jobs by place. The numbers are read at slightly different moments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Depths {
    /// Records of open and ended jobs.
    pub stored: usize,
    /// Jobs that wait for a worker.
    pub queued: usize,
    /// Jobs that wait for their time.
    pub delayed: usize,
    /// Jobs that are quarantined.
    pub quarantined: usize,
}

impl Client {
    /// Counts jobs with about ten requests, however many jobs there are, and one more request for each hundred
    /// minutes that hold delayed jobs, classes of waiting jobs, and minutes in which the waiting jobs were submitted.
    ///
    /// # Errors
    /// Fails if ZooKeeper does not answer within the client's deadline.
    pub async fn depths(&self) -> Result<Depths, Error> {
        self.0.session.read(self.by(), |zk| depths(zk.clone())).await
    }
}

/// The counts in more detail than [`Depths`].
#[derive(Debug)]
pub(super) struct Counts {
    pub(super) depths: Depths,
    /// Jobs that wait for a worker, by slot.
    pub(super) queued: Vec<(ClassName, Slot, usize)>,
    /// Records that were ever created, and how many of them were removed.
    pub(super) churn: Churn,
    /// Minutes with delayed jobs that were not counted.
    pub(super) further_minutes: usize,
}

/// Created and removed records over the namespace's lifetime. Compare it with an earlier value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Churn {
    /// Jobs that were submitted: records that were created.
    pub submitted: Tally,
    /// Records that were removed, by retention or by hand.
    pub removed: Tally,
}

async fn depths(zk: Zk) -> ReadResult<Depths> {
    Ok(counts(zk, usize::MAX).await?.depths)
}

/// Counts the jobs. Delayed jobs are counted in the `most_minutes` earliest minutes only.
pub(super) async fn counts(zk: Zk, most_minutes: usize) -> ReadResult<Counts> {
    let stored = stat_all(&zk, SubBucket::all().map(SubBucket::path));
    let queued = async {
        let slots = ready_slots(zk.clone()).await?;
        let nodes = stat_all(&zk, slots.iter().map(|(class, slot)| path::ready_slot(class, *slot))).await?;
        let sizes = nodes.into_iter().map(|node| node.map_or(0, |node| node.children));
        Ok(slots.into_iter().zip(sizes).map(|((class, slot), size)| (class, slot, size)).collect::<Vec<_>>())
    };
    let quarantined = stat_all(&zk, [path::QUARANTINE.to_owned()].into_iter());
    let delayed = async {
        let minutes = minutes(zk.clone()).await?;
        let further = minutes.len().saturating_sub(most_minutes);
        Ok((stat_all(&zk, minutes.into_iter().take(most_minutes)).await?, further))
    };
    let (stored, queued, quarantined, (delayed, further_minutes)) =
        futures::try_join!(stored, queued, quarantined, delayed)?;
    let sum = |nodes: &[Option<Node>]| nodes.iter().flatten().map(|node| node.children).sum::<usize>();
    let submitted = stored.iter().flatten().fold(Tally::default(), |sum, node| sum.plus(node.children_ever));
    let depths = Depths {
        stored: sum(&stored),
        queued: queued.iter().map(|(_, _, size)| size).sum(),
        delayed: sum(&delayed),
        quarantined: sum(&quarantined),
    };
    let churn = Churn { submitted, removed: submitted.less(Tally::of(depths.stored)) };
    Ok(Counts { depths, queued, churn, further_minutes })
}
