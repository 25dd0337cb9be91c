//! `GET /v1/jobs/{id}`, and `…/explain`.

use axum::Json as Answer;
use axum::extract::State;

use crate::extract::Id;
use crate::problem::Problem;
use crate::state::App;
use bellwether::client::Error;
use bellwether_documents::{ExplanationDocument, JobDocument};

/// Show a job.
#[utoipa::path(
    get, path = "/v1/jobs/{id}", tag = "jobs", security(("token" = ["read"])),
    params(("id" = String, Path, description = "The job's id")),
    responses(
        (status = 200, description = "The job as it is now", body = JobDocument),
    )
)]
pub(super) async fn show_job(State(app): State<App>, Id(id): Id) -> Result<Answer<JobDocument>, Problem> {
    let job = app.client.get(&id).await?.ok_or(Error::NotFound(id))?;
    Ok(Answer((&job).into()))
}

/// Explain why a job does not run.
#[utoipa::path(
    get, path = "/v1/jobs/{id}/explain", tag = "jobs", security(("token" = ["read"])),
    params(("id" = String, Path, description = "The job's id")),
    responses(
        (status = 200, description = "Why it does not run now", body = ExplanationDocument),
    )
)]
pub(super) async fn explain_job(
    State(app): State<App>,
    Id(id): Id,
) -> Result<Answer<ExplanationDocument>, Problem> {
    Ok(Answer((&app.client.explain(&id).await?).into()))
}
