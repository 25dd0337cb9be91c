//! `GET /v1/jobs/{id}`, and `…/explain`.

use axum::Json as Answer;
use axum::extract::State;
use utoipa::ToSchema;

use super::document::{JobDocument, StateName};
use crate::http::extract::Id;
use crate::http::problem::Problem;
use crate::http::state::App;
use bellwether::client::{Error, Explanation, JobView};

/// Show a job.
#[utoipa::path(
    get, path = "/v1/jobs/{id}", tag = "jobs", security(("token" = ["read"])),
    params(("id" = String, Path, description = "The job's id")),
    responses(
        (status = 200, description = "The job as it is now", body = JobDocument),
        (status = "4XX", description = "The request failed", body = Problem, content_type = "application/problem+json"),
        (status = "5XX", description = "The request failed", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn show_job(State(app): State<App>, Id(id): Id) -> Result<Answer<JobView>, Problem> {
    Ok(Answer(app.client.get(&id).await?.ok_or(Error::NotFound(id))?))
}

/// Why a job does not run. Further fields depend on the word, such as `kind` and `missing` for `tags`, or `until` for
/// `backoff`.
#[derive(ToSchema)]
#[schema(as = Explanation)]
#[expect(dead_code, reason = "describes what another type writes")]
pub(super) struct ExplanationDocument {
    /// The job's id.
    id: String,
    /// State of the job.
    state: StateName,
    /// The reason as a word.
    #[schema(example = "busy")]
    why: String,
    /// The reason as a sentence.
    sentence: String,
}

/// Explain why a job does not run.
#[utoipa::path(
    get, path = "/v1/jobs/{id}/explain", tag = "jobs", security(("token" = ["read"])),
    params(("id" = String, Path, description = "The job's id")),
    responses(
        (status = 200, description = "Why it does not run now", body = ExplanationDocument),
        (status = "4XX", description = "The request failed", body = Problem, content_type = "application/problem+json"),
        (status = "5XX", description = "The request failed", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn explain_job(State(app): State<App>, Id(id): Id) -> Result<Answer<Explanation>, Problem> {
    Ok(Answer(app.client.explain(&id).await?))
}
