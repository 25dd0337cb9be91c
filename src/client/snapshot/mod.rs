//! An overview of the whole namespace with a few requests.
//!
//! A znode knows how many children it has and ever had. So counting jobs, and how many were submitted and removed,
//! costs the same however many there are. Up to a hundred jobs may be one child, as a [segment](bellwether_core::segment), whose name
//! tells their number. So the names in inboxes are listed, and those of up to 5,000 waiting jobs and segments; the number of
//! the other waiting jobs is estimated from these. The kinds of the jobs are not visible in a znode's counts; they are
//! estimated with a [sample](sample).
//!
//! | what | requests |
//! | --- | --- |
//! | leader | 1; with the election strategy `queue` 1 more, and 1 per 100 candidates |
//! | workers | 2, and 3 per 100 workers |
//! | wrong clocks | 1, and 1 per 100 reports |
//! | pauses | 1, and 1 per 100 paused kinds |
//! | numbers of jobs | 7, and 1 per 100 minutes with delayed jobs, in the [`SnapshotOptions::minutes`] earliest, per 100 classes of waiting jobs, and per 50 of their slots |
//! | inboxes | 1, and 1 if there are lost workers whose jobs are not recovered yet |
//! | sample | at most 14 |

mod sample;

use std::time::SystemTime;

use bellwether_core::budget::MAX_READ_BATCH;
use bellwether_core::name::WorkerId;
use bellwether_core::path;
use bellwether_core::time::WallMillis;
use bellwether_zk::ReadResult;
use futures::FutureExt as _;
use futures::future::BoxFuture;

pub use sample::{Estimate, KindSample, OldestQueued, SAMPLE_SIZE};

use super::Client;
use super::clocks::{WrongClock, wrong_clocks};
use super::cluster::{LeaderView, WorkerView, count_assigned, jobs_in, leader, workers};
use super::depths::{Depths, RecordTotals, counts};
use super::error::Error;
use super::kinds::{KindView, pauses, served};
use super::runtime::Zk;

/// The level of detail of a [`Snapshot`]. Default: all minutes, and no sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct SnapshotOptions {
    /// How many minutes of delayed jobs are counted, starting with the earliest, a hundred per request. There may be
    /// 20,000.
    pub minutes: usize,
    /// Whether to sample jobs for their kinds, and where the sample starts.
    pub sample: Option<usize>,
    /// Whether the sample leaves out running jobs, whose records have to be read.
    pub waiting_only: bool,
}

impl SnapshotOptions {
    /// Counts the delayed jobs of at most this number of minutes, starting with the earliest.
    #[must_use]
    pub fn minutes(mut self, minutes: usize) -> Self {
        self.minutes = minutes;
        self
    }

    /// Sets whether running jobs are left out of the sample: their records are up to fourteen larger reads. Default: no.
    #[must_use]
    pub fn waiting_only(mut self, waiting_only: bool) -> Self {
        self.waiting_only = waiting_only;
        self
    }

    /// Samples jobs for their kinds. Pass a number that grows with each snapshot, so that the sample covers other jobs
    /// each time.
    #[must_use]
    pub fn sample(mut self, turn: usize) -> Self {
        self.sample = Some(turn);
        self
    }
}

impl Default for SnapshotOptions {
    fn default() -> Self {
        Self { minutes: usize::MAX, sample: None, waiting_only: false }
    }
}

/// The state of a namespace at a moment. Its parts are a few milliseconds apart.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Snapshot {
    /// When it was requested, by this process's clock.
    pub at: SystemTime,
    /// The current or last leader; `None` if there never was one.
    pub leader: Option<LeaderView>,
    /// The live workers, oldest first.
    pub workers: Vec<WorkerView>,
    /// The kinds that the workers serve, and the paused kinds, by name.
    pub kinds: Vec<KindView>,
    /// How many jobs there are.
    pub depths: Depths,
    /// Minutes with delayed jobs that `depths` does not count, because of [`SnapshotOptions::minutes`].
    pub further_minutes: usize,
    /// Jobs of lost workers that the leader has yet to recover, of at most a hundred such workers.
    pub orphaned: usize,
    /// Records that were created and removed. Compare it with another snapshot.
    pub record_totals: RecordTotals,
    /// The kinds of the jobs that wait for a worker, if requested.
    pub queued: KindSample,
    /// The sampled job that has waited longest for a worker, if requested; `None` if no job waits.
    pub oldest_queued: Option<OldestQueued>,
    /// The kinds of the jobs on live workers, if requested.
    pub running: KindSample,
    /// The processes whose wall clock is wrong, by host.
    pub wrong_clocks: Vec<WrongClock>,
}

impl Snapshot {
    /// Returns the number of jobs on live workers.
    #[must_use]
    pub fn assigned(&self) -> usize {
        self.workers.iter().map(|worker| worker.assigned).sum()
    }

    /// Returns the number of jobs that have not ended.
    #[must_use]
    pub fn open(&self) -> usize {
        let Depths { stored: _, queued, delayed, quarantined } = self.depths;
        queued + delayed + quarantined + self.assigned() + self.orphaned
    }
}

impl Client {
    /// Reads an overview of the whole namespace with about twenty small requests, however many jobs there are.
    ///
    /// # Errors
    /// Fails if ZooKeeper does not answer within the client's deadline.
    pub fn snapshot(&self, options: SnapshotOptions) -> BoxFuture<'_, Result<Snapshot, Error>> {
        async move {
            self.0.session.read(self.by(), |zk| snapshot(zk.clone(), options, self.0.session.wall())).await
        }
        .boxed()
    }
}

async fn snapshot(zk: Zk, options: SnapshotOptions, at: WallMillis) -> ReadResult<Snapshot> {
    // The inboxes are listed before the workers: an inbox without a worker belongs to a lost worker.
    let (inboxes, leader, workers, paused, counts, wrong_clocks) = futures::try_join!(
        zk.children(path::ASSIGNMENTS.to_owned()),
        leader(zk.clone()),
        workers(zk.clone(), at),
        pauses(zk.clone()),
        counts(zk.clone(), options.minutes),
        wrong_clocks(zk.clone()),
    )?;
    let orphans = inboxes.unwrap_or_default().into_iter().filter_map(|name| WorkerId::parse(&name));
    let orphans = orphans.filter(|id| workers.binary_search_by_key(id, |worker| worker.id).is_err());
    let orphans = orphans.take(MAX_READ_BATCH).map(path::inbox).collect();
    let (orphaned, workers) = futures::try_join!(jobs_in(&zk, orphans), count_assigned(&zk, workers))?;
    let queued = async {
        match options.sample {
            Some(_) => sample::queued(&zk, &counts.queued).await,
            None => Ok((KindSample::unsampled(counts.depths.queued), None)),
        }
    };
    let running = async {
        match options.sample.filter(|_| !options.waiting_only) {
            Some(turn) => sample::running(&zk, &workers, turn).await,
            None => Ok(KindSample::unsampled(workers.iter().map(|w| w.assigned).sum())),
        }
    };
    let ((queued, oldest_queued), running) = futures::try_join!(queued, running)?;
    Ok(Snapshot {
        at: at.into(),
        leader,
        kinds: served(&workers, &paused),
        workers: workers.into_iter().map(WorkerView::new).collect(),
        depths: counts.depths,
        further_minutes: counts.further_minutes,
        orphaned: orphaned.into_iter().sum(),
        record_totals: counts.record_totals,
        queued,
        oldest_queued,
        running,
        wrong_clocks,
    })
}

#[cfg(test)]
mod tests;
