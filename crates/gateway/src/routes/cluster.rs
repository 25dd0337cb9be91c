//! `/v1/leader`, its candidates, and `/v1/cluster` with everything on one page.

use axum::Json as Answer;
use axum::extract::State;

use crate::limits::MAX_MINUTES;
use crate::problem::{Fault, Problem};
use crate::state::App;
use bellwether::client::SnapshotOptions;
use bellwether_documents::{CandidatesDocument, ClusterDocument, LeaderDocument};

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
    Ok(Answer((&snapshot).into()))
}
