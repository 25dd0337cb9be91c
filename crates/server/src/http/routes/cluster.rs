//! `/v1/workers`, `/v1/leader`, and `/v1/cluster`, which is one page of everything.

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
use bellwether::client::{Depths, DrainedWorker, LeaderView, Look, WorkerView, rfc3339};

/// A live worker. What it says about itself is null when that cannot be read.
#[derive(Serialize, ToSchema)]
#[schema(as = Worker)]
pub(super) struct WorkerDocument {
    /// This incarnation of its node's worker role.
    id: String,
    /// Its node.
    #[schema(required)]
    node: Option<String>,
    /// The machine.
    #[schema(required)]
    host: Option<String>,
    /// What it has handlers for.
    kinds: Vec<String>,
    /// What it offers.
    tags: Vec<String>,
    /// How many jobs it takes at a time.
    #[schema(required)]
    slots: Option<u32>,
    /// How many it has.
    assigned: usize,
    /// Whether it takes no more.
    #[schema(required)]
    draining: Option<bool>,
    /// Until when the leader gives it nothing, as a job was taken from it.
    #[schema(required, format = DateTime)]
    shunned_until: Option<String>,
    /// When it was started, by its clock.
    #[schema(required, format = DateTime)]
    started_at: Option<String>,
    /// Why the rest cannot be read.
    #[schema(required)]
    error: Option<String>,
}

impl From<WorkerView> for WorkerDocument {
    fn from(WorkerView { id, info, assigned, ended: _, shunned_until }: WorkerView) -> Self {
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

/// Who claimed the current epoch.
#[derive(Serialize, ToSchema)]
#[schema(as = Leader)]
pub(super) struct LeaderDocument {
    /// The node.
    node: String,
    /// The epoch: the fencing token of all that it writes.
    epoch: i32,
    /// The ZooKeeper session that holds it.
    #[schema(example = "0x100000000000001")]
    session: String,
    /// When it was claimed, by the leader's clock.
    #[schema(format = DateTime)]
    since: String,
    /// Whether it still stands for election. Otherwise nobody leads now.
    standing: bool,
}

impl From<LeaderView> for LeaderDocument {
    fn from(LeaderView { node, epoch, session, since, standing }: LeaderView) -> Self {
        let (session, since) = (format!("{session:#x}"), rfc3339(since));
        Self { node: node.to_string(), epoch, session, since, standing }
    }
}

/// How many jobs there are, by where they are.
#[derive(Serialize, ToSchema)]
pub(super) struct Jobs {
    /// Records of jobs, open or over.
    stored: usize,
    /// Jobs that wait for a worker.
    queued: usize,
    /// Jobs that wait for their time, in the 1,000 soonest minutes that hold any.
    delayed: usize,
    /// Whether those are all.
    delayed_exact: bool,
    /// Jobs that a live worker has.
    assigned: usize,
    /// Jobs of workers that are gone, which the leader recovers.
    orphaned: usize,
    /// Jobs that were set aside.
    quarantined: usize,
}

/// One page of everything.
#[derive(Serialize, ToSchema)]
#[schema(as = Cluster)]
pub(super) struct ClusterDocument {
    /// Who leads, or led last; null when nobody ever did.
    #[schema(required)]
    leader: Option<LeaderDocument>,
    /// The live workers, oldest first.
    workers: Vec<WorkerDocument>,
    /// The kinds, by name.
    kinds: Vec<KindDocument>,
    /// How many jobs there are.
    jobs: Jobs,
}

/// List the live workers.
#[utoipa::path(
    get, path = "/v1/workers", tag = "cluster", security(("token" = ["read"])),
    responses(
        (status = 200, description = "The live workers, oldest first", body = Vec<WorkerDocument>),
        (status = "4XX", description = "No answer", body = Problem, content_type = "application/problem+json"),
        (status = "5XX", description = "No answer", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn list_workers(State(app): State<App>) -> Result<Answer<Vec<WorkerDocument>>, Problem> {
    Ok(Answer(app.client.workers().await?.into_iter().map(Into::into).collect()))
}

/// What was done.
#[derive(Serialize, ToSchema)]
pub(super) struct WorkerChanged {
    /// The worker.
    id: String,
    /// `draining`, or `already_draining`.
    outcome: &'static str,
}

/// Have a worker drain.
///
/// It gets no more jobs, finishes what runs within its node's grace, hands back the rest, and leaves. Its node runs on
/// without it until it is started again. If its session is lost first it comes back under another id: wait until it has left.
/// Asking again is safe.
#[utoipa::path(
    post, path = "/v1/workers/{id}/drain", tag = "cluster", security(("token" = ["operate"])),
    params(("id" = String, Path, description = "The worker's id")),
    responses(
        (status = 200, description = "It is told", body = WorkerChanged),
        (status = "4XX", description = "Nothing was done", body = Problem, content_type = "application/problem+json"),
        (status = "5XX", description = "Nothing was done, or unknown", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn drain_worker(
    State(app): State<App>,
    WorkerName(id): WorkerName,
) -> Result<Response, Problem> {
    let outcome = match app.client.drain_worker(id).await? {
        DrainedWorker::Told => "draining",
        DrainedWorker::Already => "already_draining",
        DrainedWorker::Gone => {
            return Err(Fault::NotFound.because(format!("there is no worker {id}: it has left")));
        }
    };
    let mut answer = Answer(WorkerChanged { id: id.to_string(), outcome }).into_response();
    answer.extensions_mut().insert(Told(format!("worker {id} {outcome}")));
    Ok(answer)
}

/// Show who leads.
///
/// Look at `standing`: a leader that does not stand any more has ended, and is not replaced yet.
#[utoipa::path(
    get, path = "/v1/leader", tag = "cluster", security(("token" = ["read"])),
    responses(
        (status = 200, description = "Who claimed the current epoch", body = LeaderDocument),
        (status = 404, description = "Nobody ever led", body = Problem, content_type = "application/problem+json"),
        (status = "4XX", description = "No answer", body = Problem, content_type = "application/problem+json"),
        (status = "5XX", description = "No answer", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn show_leader(State(app): State<App>) -> Result<Answer<LeaderDocument>, Problem> {
    let leader = app.client.leader().await?;
    let leader = leader
        .ok_or_else(|| Fault::NotFound.because("nobody leads, and nobody ever did in this namespace"))?;
    Ok(Answer(leader.into()))
}

/// Show leader, workers, kinds and the number of jobs.
///
/// Each is of a moment of its own, a few milliseconds apart.
#[utoipa::path(
    get, path = "/v1/cluster", tag = "cluster", security(("token" = ["read"])),
    responses(
        (status = 200, description = "One page of everything", body = ClusterDocument),
        (status = "4XX", description = "No answer", body = Problem, content_type = "application/problem+json"),
        (status = "5XX", description = "No answer", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn show_cluster(State(app): State<App>) -> Result<Answer<ClusterDocument>, Problem> {
    let snapshot = app.client.snapshot(Look { minutes: MAX_MINUTES, sample: None }).await?;
    let Depths { stored, queued, delayed, quarantined } = snapshot.depths;
    let (assigned, orphaned) = (snapshot.assigned(), snapshot.orphaned);
    let delayed_exact = snapshot.further_minutes == 0;
    Ok(Answer(ClusterDocument {
        leader: snapshot.leader.map(Into::into),
        workers: snapshot.workers.into_iter().map(Into::into).collect(),
        kinds: snapshot.kinds.into_iter().map(Into::into).collect(),
        jobs: Jobs { stored, queued, delayed, delayed_exact, assigned, orphaned, quarantined },
    }))
}
