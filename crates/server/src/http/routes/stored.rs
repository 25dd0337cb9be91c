//! `GET /v1/jobs/{id}/payload`, `…/result` and `…/checkpoint`: the stored bytes.
//!
//! The type of the answer is always `application/octet-stream`: a browser must not run what a submitter wrote as a page of this
//! origin. The header `Bellwether-Content-Type` has the stored type.

use axum::extract::State;
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE, HeaderName};
use axum::http::{HeaderMap, HeaderValue};
use axum::response::{IntoResponse, Response};
use bellwether::{JobId, JobView};
use utoipa::ToSchema;

use crate::http::extract::Id;
use crate::http::problem::{Fault, Problem};
use crate::http::state::App;
use bellwether::client::Error;

/// The content type that was stored with the bytes. A checkpoint has none.
const STORED_TYPE: HeaderName = HeaderName::from_static("bellwether-content-type");

/// Stored bytes. The header `Bellwether-Content-Type` has the stored content type; a checkpoint has none.
#[derive(ToSchema)]
#[schema(value_type = String, format = Binary)]
#[expect(dead_code, reason = "it only describes the answer")]
pub(super) struct StoredBytes(Vec<u8>);

/// Show the stored payload of a job.
#[utoipa::path(
    get, path = "/v1/jobs/{id}/payload", tag = "jobs", security(("token" = ["read"])),
    params(("id" = String, Path, description = "The job's id")),
    responses(
        (status = 200, description = "The stored bytes", body = StoredBytes, content_type = "application/octet-stream"),
        (status = "4XX", description = "The request failed", body = Problem, content_type = "application/problem+json"),
        (status = "5XX", description = "The request failed", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn show_payload(State(app): State<App>, Id(id): Id) -> Result<Response, Problem> {
    let job = read(&app, id).await?;
    let payload = job.payload.as_ref();
    answer(
        &job.id,
        "payload",
        payload.map(|payload| (Some(payload.content_type().as_str()), payload.bytes())),
    )
}

/// Show the stored result of a job.
#[utoipa::path(
    get, path = "/v1/jobs/{id}/result", tag = "jobs", security(("token" = ["read"])),
    params(("id" = String, Path, description = "The job's id")),
    responses(
        (status = 200, description = "The stored bytes", body = StoredBytes, content_type = "application/octet-stream"),
        (status = "4XX", description = "The request failed", body = Problem, content_type = "application/problem+json"),
        (status = "5XX", description = "The request failed", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn show_result(State(app): State<App>, Id(id): Id) -> Result<Response, Problem> {
    let job = read(&app, id).await?;
    let result = job.result.as_ref();
    answer(&job.id, "result", result.map(|result| (Some(result.content_type().as_str()), result.bytes())))
}

/// Show the checkpoint for the next attempt of a job.
#[utoipa::path(
    get, path = "/v1/jobs/{id}/checkpoint", tag = "jobs", security(("token" = ["read"])),
    params(("id" = String, Path, description = "The job's id")),
    responses(
        (status = 200, description = "The stored bytes", body = StoredBytes, content_type = "application/octet-stream"),
        (status = "4XX", description = "The request failed", body = Problem, content_type = "application/problem+json"),
        (status = "5XX", description = "The request failed", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn show_checkpoint(State(app): State<App>, Id(id): Id) -> Result<Response, Problem> {
    let job = read(&app, id).await?;
    let checkpoint = job.progress.as_ref().map(|progress| progress.checkpoint());
    answer(&job.id, "checkpoint", checkpoint.filter(|bytes| !bytes.is_empty()).map(|bytes| (None, bytes)))
}

async fn read(app: &App, id: JobId) -> Result<JobView, Problem> {
    Ok(app.client.get(&id).await?.ok_or(Error::NotFound(id))?)
}

fn answer(id: &JobId, what: &str, stored: Option<(Option<&str>, &[u8])>) -> Result<Response, Problem> {
    let Some((stored_type, bytes)) = stored else {
        return Err(Fault::NotFound.because(format!("job {id} has no {what}")));
    };
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
    headers.insert(CONTENT_DISPOSITION, HeaderValue::from_static("attachment"));
    if let Some(stored_type) = stored_type.and_then(|name| HeaderValue::from_str(name).ok()) {
        headers.insert(STORED_TYPE, stored_type);
    }
    Ok((headers, bytes.to_vec()).into_response())
}
