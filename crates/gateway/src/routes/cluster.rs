//! `/v1/leader`, its candidates, and `/v1/cluster` with everything on one page.

use axum::Json as Answer;
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

use crate::limits::MAX_MINUTES;
use crate::problem::{Fault, Problem};
use crate::state::App;
use bellwether::client::{Depths, SnapshotOptions};
use bellwether_documents::{
    CandidatesDocument, KindDocument, LeaderDocument, WorkerDocument, WrongClockDocument,
};

/// Number of jobs by state.
#[derive(Serialize, ToSchema)]
pub(super) struct Jobs {
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

/// The state of the cluster.
#[derive(Serialize, ToSchema)]
#[schema(as = Cluster)]
pub(super) struct ClusterDocument {
    /// The current or the last leader; null if there has never been one.
    #[schema(required)]
    leader: Option<LeaderDocument>,
    /// The live workers, oldest first.
    workers: Vec<WorkerDocument>,
    /// The kinds, by name.
    kinds: Vec<KindDocument>,
    /// Number of jobs.
    jobs: Jobs,
    /// The processes whose wall clock is wrong, by host. A process that cannot write to ZooKeeper is not listed.
    wrong_clocks: Vec<WrongClockDocument>,
}

/// Show the leader.
///
/// Check `standing`: if it is false, the leader has ended and has not been replaced yet.
#[utoipa::path(
    get, path = "/v1/leader", tag = "cluster", security(("token" = ["read"])),
    responses(
        (status = 200, description = "The node that claimed the current epoch", body = LeaderDocument),
        (status = 404, description = "There has never been a leader", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn show_leader(State(app): State<App>) -> Result<Answer<LeaderDocument>, Problem> {
    let leader = app.client.leader().await?;
    let leader = leader
        .ok_or_else(|| Fault::NotFound.because("there is no leader, and this namespace never had one"))?;
    Ok(Answer((&leader).into()))
}

/// List the candidates for the leadership.
///
/// With the election strategy `single` only the leader is known.
#[utoipa::path(
    get, path = "/v1/leader/candidates", tag = "cluster", security(("token" = ["read"])),
    responses(
        (status = 200, description = "The candidates in their order", body = CandidatesDocument),
    )
)]
pub(super) async fn list_candidates(State(app): State<App>) -> Result<Answer<CandidatesDocument>, Problem> {
    Ok(Answer((&app.client.candidates().await?).into()))
}

/// Show leader, workers, kinds and the number of jobs.
///
/// The parts are read a few milliseconds apart.
#[utoipa::path(
    get, path = "/v1/cluster", tag = "cluster", security(("token" = ["read"])),
    responses(
        (status = 200, description = "The state of the cluster", body = ClusterDocument),
    )
)]
pub(super) async fn show_cluster(State(app): State<App>) -> Result<Answer<ClusterDocument>, Problem> {
    let snapshot = app.client.snapshot(SnapshotOptions::default().minutes(MAX_MINUTES)).await?;
    let Depths { stored, queued, delayed, quarantined, .. } = snapshot.depths;
    let (assigned, orphaned) = (snapshot.assigned(), snapshot.orphaned);
    let delayed_exact = snapshot.further_minutes == 0;
    Ok(Answer(ClusterDocument {
        leader: snapshot.leader.as_ref().map(Into::into),
        workers: snapshot.workers.iter().map(Into::into).collect(),
        kinds: snapshot.kinds.iter().map(Into::into).collect(),
        wrong_clocks: snapshot.wrong_clocks.iter().map(Into::into).collect(),
        jobs: Jobs { stored, queued, delayed, delayed_exact, assigned, orphaned, quarantined },
    }))
}
