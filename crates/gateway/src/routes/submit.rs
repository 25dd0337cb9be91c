//! `POST /v1/jobs`.

use axum::extract::State;
use axum::http::header::LOCATION;
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json as Answer};

use crate::extract::{Bounded, Json, Traced};
use crate::layers::{AuditNote, Caller};
use crate::limits::MAX_BODY;
use crate::problem::{Fault, Problem};
use crate::state::App;
use bellwether::client::{IfExists, Job, JobError, JobHandle};
use bellwether_documents::{Invalid, SubmittedDocument};

impl Bounded for Job {
    const MAX_BYTES: usize = MAX_BODY;
}

impl From<Invalid> for Problem {
    fn from(Invalid(reason): Invalid) -> Self {
        Fault::Invalid.because(reason)
    }
}

impl From<JobError> for Problem {
    fn from(error: JobError) -> Self {
        Fault::Invalid.because(error.to_string())
    }
}

/// Returns the job if it is valid and the caller may submit it.
pub(super) fn checked(job: Job, caller: &Caller) -> Result<Job, Problem> {
    caller.may_submit(job.kind(), job.given_options(), job.given_if_exists() == IfExists::Again)?;
    job.check()?;
    Ok(job)
}

/// Answers 201 for a job that was created or opened again, 200 for one that already existed, with its path in a header.
pub(super) fn accepted<K>(job: &JobHandle<K>) -> Response {
    let submitted = SubmittedDocument::from(job);
    let status = if submitted.duplicate { StatusCode::OK } else { StatusCode::CREATED };
    let mut headers = HeaderMap::new();
    // Ids contain only characters that are valid in paths and headers.
    if let Ok(location) = HeaderValue::from_str(&format!("/v1/jobs/{}", submitted.id)) {
        headers.insert(LOCATION, location);
    }
    let note = AuditNote(format!("job {}: {}", submitted.id, submitted.accepted.0.as_str()));
    (status, headers, note, Answer(submitted)).into_response()
}

/// Submit a job.
///
/// Answers once a majority of the ZooKeeper servers has the job on disk: from then on it is not lost. After 504 it may
/// or may not have been accepted: submit it again with the id in the problem. A W3C `traceparent` header makes the job
/// part of that trace.
#[utoipa::path(
    post, path = "/v1/jobs", tag = "jobs", security(("token" = ["submit"])),
    request_body = Job,
    responses(
        (status = 201, description = "Accepted; the header `Location` has its path", body = SubmittedDocument),
        (status = 200, description = "The same job already existed", body = SubmittedDocument),
        (status = 409, description = "The id belongs to another job, or the minute in which the job starts has no room", body = Problem, content_type = "application/problem+json"),
        (status = "4XX", description = "Not accepted", body = Problem, content_type = "application/problem+json"),
        (status = "5XX", description = "Not accepted, or the outcome is unknown", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn submit_job(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Traced(trace): Traced,
    Json(job): Json<Job>,
) -> Result<Response, Problem> {
    let job = checked(job, &caller)?.traceparent(trace);
    let reserved = app.open_jobs.reserve(&app.client, &caller, 1).await?;
    let job = app.client.on_behalf_of(&caller.author()).submit(job).await?;
    reserved.submitted([job.id()]);
    Ok(accepted(&job))
}
