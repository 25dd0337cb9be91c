//! The whole namespace at a glance, for what a few requests cost.
//!
//! Parents tell how many children they have and have ever had, so numbers of jobs, and how many came and went, cost the
//! same however many there are. What a parent cannot tell, of which kind its children are, is asked of a
//! [sample](sample) of them.
//!
//! | what | requests |
//! | --- | --- |
//! | leader | 1; before an election of strategy `queue` is found standing, 1 more and 1 for each 100 candidates |
//! | workers | 2, and 2 for each 100 |
//! | pauses | 1, and 1 for each 100 paused kinds |
//! | numbers of jobs | 8, and 1 for each 100 minutes that hold a delayed one, of the [`Look::minutes`] soonest |
//! | inboxes | 1, and 1 if a worker is gone whose jobs are not recovered yet |
//! | sample | at most 14 |

mod sample;

use bellwether_core::budget::MAX_READ_BATCH;
use bellwether_core::name::WorkerId;
use bellwether_core::path;
use bellwether_core::time::WallMillis;
use bellwether_zk::ReadResult;

pub use sample::{Estimate, SAMPLE, Shares};

use super::Client;
use super::cluster::{LeaderView, WorkerView, get_all, leader, workers};
use super::depths::{Churn, Depths, counts};
use super::error::Error;
use super::kinds::{KindView, pauses, served};
use super::runtime::Zk;

/// How closely to look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Look {
    /// Delayed jobs are counted in so many minutes, the soonest, a hundred a request. There may be 20,000.
    pub minutes: usize,
    /// Whether to ask a sample of jobs for their kind, and where to begin: a number that grows with each look lets the
    /// sample wander.
    pub sample: Option<usize>,
}

impl Default for Look {
    /// All minutes, and no sample.
    fn default() -> Self {
        Self { minutes: usize::MAX, sample: None }
    }
}

/// A namespace at a moment. Its parts are a few milliseconds apart.
#[derive(Debug, Clone, PartialEq)]
pub struct Snapshot {
    /// When it was asked for, by this process's clock.
    pub at: WallMillis,
    /// Who leads, or led last; `None` when nobody ever did.
    pub leader: Option<LeaderView>,
    /// The live workers, oldest first.
    pub workers: Vec<WorkerView>,
    /// The kinds that they serve, and those that are paused, by name.
    pub kinds: Vec<KindView>,
    /// How many jobs there are.
    pub depths: Depths,
    /// Minutes that hold delayed jobs which `depths` does not count, as [`Look::minutes`] were enough.
    pub further_minutes: usize,
    /// Jobs of workers that are gone, which the leader recovers. Of a hundred such workers at most.
    pub orphaned: usize,
    /// What came and went, to be compared with another snapshot.
    pub churn: Churn,
    /// Of which kinds the jobs are that wait for a worker, if that was asked for.
    pub queued: Shares,
    /// Of which kinds the jobs are that live workers have, if that was asked for.
    pub running: Shares,
}

impl Snapshot {
    /// Jobs that live workers have.
    #[must_use]
    pub fn assigned(&self) -> usize {
        self.workers.iter().map(|worker| worker.assigned).sum()
    }

    /// Jobs that are not over.
    #[must_use]
    pub fn open(&self) -> usize {
        let Depths { stored: _, queued, delayed, quarantined } = self.depths;
        queued + delayed + quarantined + self.assigned() + self.orphaned
    }
}

impl Client {
    /// Looks at the whole namespace: in most, some twenty small requests, however many jobs there are.
    ///
    /// # Errors
    /// When ZooKeeper does not answer within the client's deadline.
    pub async fn snapshot(&self, look: Look) -> Result<Snapshot, Error> {
        self.0.link.read(self.by(), |zk| snapshot(zk.clone(), look, self.0.link.wall())).await
    }
}

async fn snapshot(zk: Zk, look: Look, at: WallMillis) -> ReadResult<Snapshot> {
    // The inboxes are listed before the workers: whoever has one and is no worker after that is gone.
    let (inboxes, leader, workers, paused, counts) = futures::try_join!(
        zk.children(path::ASSIGNMENTS.to_owned()),
        leader(zk.clone()),
        workers(zk.clone(), at),
        pauses(zk.clone()),
        counts(zk.clone(), look.minutes),
    )?;
    let orphans = inboxes.unwrap_or_default().into_iter().filter_map(|name| WorkerId::parse(&name));
    let orphans = orphans.filter(|id| workers.binary_search_by_key(id, |worker| worker.id).is_err());
    let orphaned = get_all(&zk, orphans.take(MAX_READ_BATCH).map(path::inbox)).await?;
    let (queued, running) = match look.sample {
        Some(turn) => futures::try_join!(
            sample::queued(&zk, &counts.queued, turn),
            sample::running(&zk, &workers, turn),
        )?,
        None => {
            (Shares::unasked(counts.depths.queued), Shares::unasked(workers.iter().map(|w| w.assigned).sum()))
        }
    };
    Ok(Snapshot {
        at,
        leader,
        kinds: served(&workers, &paused),
        workers,
        depths: counts.depths,
        further_minutes: counts.further_minutes,
        orphaned: orphaned.into_iter().flatten().map(|inbox| inbox.children).sum(),
        churn: counts.churn,
        queued,
        running,
    })
}
