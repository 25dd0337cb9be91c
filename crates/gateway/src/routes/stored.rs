//! `GET /v1/jobs/{id}/payload`, `…/result` and `…/checkpoint`, and `GET /v1/schedules/{id}/payload`: the stored bytes.
//!
//! The type of the answer is always `application/octet-stream`: a browser must not run what a submitter wrote as a page of this
//! origin. The header `Bellwether-Content-Type` has the stored type.

use axum::extract::State;
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE, HeaderName};
use axum::http::{HeaderMap, HeaderValue};
use axum::response::{IntoResponse, Response};
use bellwether::{JobId, JobView, Payload};
use utoipa::ToSchema;

use crate::extract::{Id, SchedulePath};
use crate::problem::{Fault, Problem};
use crate::state::App;
use bellwether::client::Error;

/// The content type that was stored with the bytes. A checkpoint has none.
const STORED_TYPE: HeaderName = HeaderName::from_static("bellwether-content-type");

/// Stored bytes. The header `Bellwether-Content-Type` has the stored content type; a checkpoint has none.
#[derive(ToSchema)]
#[schema(value_type = String, format = Binary)]
pub(super) struct StoredBytes(Response);

impl StoredBytes {
    /// Returns the answer with these bytes, or a problem 404 if nothing is stored.
    fn of(of: &str, what: &str, stored: Option<Stored<'_>>) -> Result<Self, Problem> {
        let Some((stored_type, bytes)) = stored else {
            return Err(Fault::NotFound.because(format!("{of} has no {what}")));
        };
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
        headers.insert(CONTENT_DISPOSITION, HeaderValue::from_static("attachment"));
        if let Some(stored_type) = stored_type.and_then(|name| HeaderValue::from_str(name).ok()) {
            headers.insert(STORED_TYPE, stored_type);
        }
        Ok(Self((headers, bytes.to_vec()).into_response()))
    }
}

impl IntoResponse for StoredBytes {
    fn into_response(self) -> Response {
        self.0
    }
}

/// Show the stored payload of a job.
#[utoipa::path(
    get, path = "/v1/jobs/{id}/payload", tag = "jobs", security(("token" = ["read"])),
    params(("id" = String, Path, description = "The job's id")),
    responses(
        (status = 200, description = "The stored bytes", body = StoredBytes, content_type = "application/octet-stream"),
    )
)]
pub(super) async fn show_payload(State(app): State<App>, Id(id): Id) -> Result<StoredBytes, Problem> {
    let job = read(&app, id).await?;
    let payload = job.payload.as_ref();
    StoredBytes::of(&format!("job {}", job.id), "payload", payload.map(typed))
}

/// Show the stored result of a job.
#[utoipa::path(
    get, path = "/v1/jobs/{id}/result", tag = "jobs", security(("token" = ["read"])),
    params(("id" = String, Path, description = "The job's id")),
    responses(
        (status = 200, description = "The stored bytes", body = StoredBytes, content_type = "application/octet-stream"),
    )
)]
pub(super) async fn show_result(State(app): State<App>, Id(id): Id) -> Result<StoredBytes, Problem> {
    let job = read(&app, id).await?;
    let result = job.result.as_ref();
    StoredBytes::of(&format!("job {}", job.id), "result", result.map(typed))
}

/// Show the checkpoint for the next attempt of a job.
#[utoipa::path(
    get, path = "/v1/jobs/{id}/checkpoint", tag = "jobs", security(("token" = ["read"])),
    params(("id" = String, Path, description = "The job's id")),
    responses(
        (status = 200, description = "The stored bytes", body = StoredBytes, content_type = "application/octet-stream"),
    )
)]
pub(super) async fn show_checkpoint(State(app): State<App>, Id(id): Id) -> Result<StoredBytes, Problem> {
    let job = read(&app, id).await?;
    let checkpoint = job.progress.as_ref().map(|progress| progress.checkpoint());
    let checkpoint = checkpoint.filter(|bytes| !bytes.is_empty()).map(|bytes| (None, bytes));
    StoredBytes::of(&format!("job {}", job.id), "checkpoint", checkpoint)
}

/// Show the stored payload of the jobs of a schedule.
#[utoipa::path(
    get, path = "/v1/schedules/{id}/payload", tag = "schedules", security(("token" = ["read"])),
    params(("id" = String, Path, description = "Id of the schedule")),
    responses(
        (status = 200, description = "The stored bytes", body = StoredBytes, content_type = "application/octet-stream"),
    )
)]
pub(super) async fn show_schedule_payload(
    State(app): State<App>,
    SchedulePath(id): SchedulePath,
) -> Result<StoredBytes, Problem> {
    let schedule = app.client.schedules().get(&id).await?;
    let readable = schedule.record.as_ref().ok();
    StoredBytes::of(
        &format!("schedule {id}"),
        "readable payload",
        readable.map(|record| typed(&record.payload)),
    )
}

/// The stored type and bytes.
fn typed(payload: &Payload) -> Stored<'_> {
    (Some(payload.content_type().as_str()), payload.bytes())
}

async fn read(app: &App, id: JobId) -> Result<JobView, Problem> {
    Ok(app.client.get(&id).await?.ok_or(Error::NotFound(id))?)
}

/// The stored content type, if there is one, and the bytes.
type Stored<'a> = (Option<&'a str>, &'a [u8]);
