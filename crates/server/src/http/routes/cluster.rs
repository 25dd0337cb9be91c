//! `/v1/workers`, `/v1/leader`, and `/v1/cluster` with everything on one page.

use axum::Json as Answer;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use utoipa::ToSchema;

use super::kinds::KindDocument;
use crate::http::extract::WorkerName;
use crate::http::front::Told;
use crate::http::limits::MAX_MINUTES;
use crate::http::problem::{Fault, Problem};
use crate::http::state::App;
use bellwether::client::{Depths, DrainedWorker, LeaderView, SnapshotOptions, WorkerView, rfc3339};

/// A live worker. Fields of its registration are null if it cannot be read.
#[derive(Serialize, ToSchema)]
#[schema(as = Worker)]
pub(super) struct WorkerDocument {
    /// Id of this incarnation of its node's worker.
    id: String,
    /// Its node.
    #[schema(required)]
    node: Option<String>,
    /// The host of its node.
    #[schema(required)]
    host: Option<String>,
    /// The kinds for which it has handlers.
    kinds: Vec<String>,
    /// Its tags.
    tags: Vec<String>,
    /// Number of jobs that it runs at the same time.
    #[schema(required)]
    slots: Option<u32>,
    /// Number of jobs that are assigned to it.
    assigned: usize,
    /// Whether it takes no new jobs.
    #[schema(required)]
    draining: Option<bool>,
    /// Until when the leader assigns nothing to it, because a job was taken from it.
    #[schema(required, format = DateTime)]
    shunned_until: Option<String>,
    /// When it started, by its own clock.
    #[schema(required, format = DateTime)]
    started_at: Option<String>,
    /// Why its registration cannot be read.
    #[schema(required)]
    error: Option<String>,
}

impl From<WorkerView> for WorkerDocument {
    fn from(WorkerView { id, info, assigned, shunned_until, .. }: WorkerView) -> Self {
        let (id, shunned_until) = (id.to_string(), shunned_until.map(rfc3339));
        match info {
            Ok(info) => Self {
                id,
                node: Some(info.node.to_string()),
                host: Some(info.host),
                kinds: info.kinds.iter().map(ToString::to_string).collect(),
                tags: info.tags.iter().map(ToString::to_string).collect(),
                slots: Some(info.slots),
                assigned,
                draining: Some(info.draining),
                shunned_until,
                started_at: Some(rfc3339(info.started_at)),
                error: None,
            },
            Err(error) => Self {
                id,
                node: None,
                host: None,
                kinds: Vec::new(),
                tags: Vec::new(),
                slots: None,
                assigned,
                draining: None,
                shunned_until,
                started_at: None,
                error: Some(error.to_string()),
            },
        }
    }
}

/// The node that claimed the current epoch.
#[derive(Serialize, ToSchema)]
#[schema(as = Leader)]
pub(super) struct LeaderDocument {
    /// The node.
    node: String,
    /// The epoch: the fencing token of the leader's writes.
    epoch: i32,
    /// The ZooKeeper session of the leader.
    #[schema(example = "0x100000000000001")]
    session: String,
    /// When the epoch was claimed, by the leader's clock.
    #[schema(format = DateTime)]
    since: String,
    /// Whether the leader is still a candidate. If not, there is no leader now.
    standing: bool,
}

impl From<LeaderView> for LeaderDocument {
    fn from(LeaderView { node, epoch, session, since, standing, .. }: LeaderView) -> Self {
        let (session, since) = (format!("{session:#x}"), rfc3339(since));
        Self { node: node.to_string(), epoch, session, since, standing }
    }
}

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
}

/// List the live workers.
#[utoipa::path(
    get, path = "/v1/workers", tag = "cluster", security(("token" = ["read"])),
    responses(
        (status = 200, description = "The live workers, oldest first", body = Vec<WorkerDocument>),
        (status = "4XX", description = "The request failed", body = Problem, content_type = "application/problem+json"),
        (status = "5XX", description = "The request failed", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn list_workers(State(app): State<App>) -> Result<Answer<Vec<WorkerDocument>>, Problem> {
    Ok(Answer(app.client.workers().await?.into_iter().map(Into::into).collect()))
}

/// The outcome of a change.
#[derive(Serialize, ToSchema)]
pub(super) struct WorkerChanged {
    /// The worker's id.
    id: String,
    /// `draining`, or `already_draining`.
    outcome: &'static str,
}

/// Drain a worker.
///
/// The worker takes no new jobs, finishes running jobs within its node's drain grace, hands back the rest, and leaves.
/// Its node keeps running without a worker until it is restarted. If the worker's session is lost first, the worker
/// returns under another id: wait until it has left. Repeating the request is safe.
#[utoipa::path(
    post, path = "/v1/workers/{id}/drain", tag = "cluster", security(("token" = ["operate"])),
    params(("id" = String, Path, description = "The worker's id")),
    responses(
        (status = 200, description = "The worker is draining", body = WorkerChanged),
        (status = "4XX", description = "Nothing was changed", body = Problem, content_type = "application/problem+json"),
        (status = "5XX", description = "Nothing was changed, or the outcome is unknown", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn drain_worker(
    State(app): State<App>,
    WorkerName(id): WorkerName,
) -> Result<Response, Problem> {
    let outcome = match app.client.drain_worker(id).await? {
        DrainedWorker::Marked => "draining",
        DrainedWorker::Already => "already_draining",
        DrainedWorker::NotFound => {
            return Err(Fault::NotFound.because(format!("there is no worker {id}: it has left")));
        }
    };
    let mut answer = Answer(WorkerChanged { id: id.to_string(), outcome }).into_response();
    answer.extensions_mut().insert(Told(format!("worker {id} {outcome}")));
    Ok(answer)
}

/// Show the leader.
///
/// Check `standing`: if it is false, the leader has ended and has not been replaced yet.
#[utoipa::path(
    get, path = "/v1/leader", tag = "cluster", security(("token" = ["read"])),
    responses(
        (status = 200, description = "The node that claimed the current epoch", body = LeaderDocument),
        (status = 404, description = "There has never been a leader", body = Problem, content_type = "application/problem+json"),
        (status = "4XX", description = "The request failed", body = Problem, content_type = "application/problem+json"),
        (status = "5XX", description = "The request failed", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn show_leader(State(app): State<App>) -> Result<Answer<LeaderDocument>, Problem> {
    let leader = app.client.leader().await?;
    let leader = leader
        .ok_or_else(|| Fault::NotFound.because("there is no leader, and this namespace never had one"))?;
    Ok(Answer(leader.into()))
}

/// Show leader, workers, kinds and the number of jobs.
///
/// The parts are read a few milliseconds apart.
#[utoipa::path(
    get, path = "/v1/cluster", tag = "cluster", security(("token" = ["read"])),
    responses(
        (status = 200, description = "The state of the cluster", body = ClusterDocument),
        (status = "4XX", description = "The request failed", body = Problem, content_type = "application/problem+json"),
        (status = "5XX", description = "The request failed", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn show_cluster(State(app): State<App>) -> Result<Answer<ClusterDocument>, Problem> {
    let snapshot = app.client.snapshot(SnapshotOptions::default().minutes(MAX_MINUTES)).await?;
    let Depths { stored, queued, delayed, quarantined, .. } = snapshot.depths;
    let (assigned, orphaned) = (snapshot.assigned(), snapshot.orphaned);
    let delayed_exact = snapshot.further_minutes == 0;
    Ok(Answer(ClusterDocument {
        leader: snapshot.leader.map(Into::into),
        workers: snapshot.workers.into_iter().map(Into::into).collect(),
        kinds: snapshot.kinds.into_iter().map(Into::into).collect(),
        jobs: Jobs { stored, queued, delayed, delayed_exact, assigned, orphaned, quarantined },
    }))
}
