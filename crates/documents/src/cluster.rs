//! The state of the cluster.

use bellwether::InstantText;
use bellwether::client::{Depths, Snapshot};
use serde::Serialize;
use utoipa::ToSchema;

use super::{KindDocument, LeaderDocument, WorkerDocument, WrongClockDocument};

/// The state of the cluster. Its parts are read a few milliseconds apart.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = Cluster)]
pub struct ClusterDocument {
    /// When it was read, by the clock of the reader.
    at: InstantText,
    /// The current or the last leader; null if there has never been one.
    #[schema(required)]
    leader: Option<LeaderDocument>,
    /// The live workers, oldest first.
    workers: Vec<WorkerDocument>,
    /// The kinds, by name.
    kinds: Vec<KindDocument>,
    /// Number of jobs by state.
    jobs: JobCountsDocument,
    /// The processes whose wall clock is wrong, by host. A process that cannot write to ZooKeeper is not listed.
    wrong_clocks: Vec<WrongClockDocument>,
}

/// Number of jobs by state.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = JobCounts)]
struct JobCountsDocument {
    /// Stored job records, of open and of ended jobs.
    stored: usize,
    /// Jobs that wait for a worker.
    queued: usize,
    /// Jobs that wait for their start time, in the 1,000 soonest minutes with such jobs.
    delayed: usize,
    /// Whether `delayed` counts all of them.
    delayed_exact: bool,
    /// Jobs assigned to live workers.
    assigned: usize,
    /// Jobs of workers that have ended; the leader recovers them.
    orphaned: usize,
    /// Jobs in quarantine.
    quarantined: usize,
}

impl From<&Snapshot> for ClusterDocument {
    fn from(snapshot: &Snapshot) -> Self {
        let Depths { stored, queued, delayed, quarantined, .. } = snapshot.depths;
        Self {
            at: InstantText(snapshot.at),
            leader: snapshot.leader.as_ref().map(Into::into),
            workers: snapshot.workers.iter().map(Into::into).collect(),
            kinds: snapshot.kinds.iter().map(Into::into).collect(),
            jobs: JobCountsDocument {
                stored,
                queued,
                delayed,
                delayed_exact: snapshot.further_minutes == 0,
                assigned: snapshot.assigned(),
                orphaned: snapshot.orphaned,
                quarantined,
            },
            wrong_clocks: snapshot.wrong_clocks.iter().map(Into::into).collect(),
        }
    }
}
