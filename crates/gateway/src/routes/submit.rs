//! `POST /v1/jobs`.

use axum::extract::State;
use axum::http::header::LOCATION;
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json as Answer};
use serde::Deserialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::submitted::Submitted;
use crate::extract::{Bounded, Json, Traced, shallow};
use crate::layers::{AuditNote, Caller};
use crate::limits::MAX_BODY;
use crate::problem::{Fault, Problem};
use crate::state::App;
use bellwether::DurationText;
use bellwether::client::{IfExists, Job, JobError, JobHandle, JobOptions};
use bellwether_documents::{DurationSchema, IfExistsWord, InstantText, JobOptionsSchema};

/// A job to submit.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NewJob {
    /// Id of the job: `[A-Za-z0-9._-]`, at most 128 characters. The same id, kind and payload is the same job, so
    /// submitting a job with an id again is safe. Without it an id is generated.
    #[schema(example = "sum-1", pattern = "^[A-Za-z0-9._-]{1,128}$")]
    id: Option<String>,
    /// Kind of the job; it selects the handler.
    #[schema(example = "sum", pattern = "^[A-Za-z0-9._-]{1,128}$")]
    kind: String,
    /// Payload for the handler, at most 64 KiB: JSON, kept byte for byte. With a `content_type` other than JSON it is a
    /// string with the text.
    #[schema(value_type = serde_json::Value, example = json!({"first": 1, "second": 2}))]
    #[serde(default)]
    payload: Option<Box<RawValue>>,
    /// Content type of the payload; default `application/json`.
    #[schema(example = "application/json")]
    content_type: Option<String>,
    /// Options; those that are left out have their defaults.
    #[serde(default)]
    #[schema(value_type = JobOptionsSchema)]
    options: JobOptions,
    /// Do not start the job before this instant, at most ten years ahead. Excludes `delay`.
    run_at: Option<InstantText>,
    /// Do not start the job before this time has passed.
    #[schema(value_type = Option<DurationSchema>)]
    delay: Option<DurationText>,
    /// Do not start the job after this instant. Excludes `expires_in`.
    expires_at: Option<InstantText>,
    /// Do not start the job after this time has passed.
    #[schema(value_type = Option<DurationSchema>)]
    expires_in: Option<DurationText>,
    /// What to do if a job with this id exists. Default `same`.
    #[serde(default)]
    if_exists: IfExistsWord,
}

impl Bounded for NewJob {
    const MAX_BYTES: usize = MAX_BODY;
}

impl From<JobError> for Problem {
    fn from(error: JobError) -> Self {
        Fault::Invalid.because(error.to_string())
    }
}

impl NewJob {
    /// Returns the checked job, if the caller may submit it.
    pub(super) fn job(self, caller: &Caller) -> Result<Job, Problem> {
        caller.may_submit(&self.kind, &self.options, self.if_exists.0 == IfExists::Again)?;
        let Self {
            id,
            kind,
            payload,
            content_type,
            options,
            run_at,
            delay,
            expires_at,
            expires_in,
            if_exists,
        } = self;
        let mut job = with_payload(&kind, payload, content_type.as_deref())?.options(options);
        if let Some(id) = id {
            job = job.id(id);
        }
        job = match (run_at, delay) {
            (Some(_), Some(_)) => return Err(Fault::Invalid.because("give run_at or delay, not both")),
            (Some(InstantText(at)), None) => job.run_at(at),
            (None, Some(DurationText(delay))) => job.delay(delay),
            (None, None) => job,
        };
        job = match (expires_at, expires_in) {
            (Some(_), Some(_)) => {
                return Err(Fault::Invalid.because("give expires_at or expires_in, not both"));
            }
            (Some(InstantText(at)), None) => job.expires_at(at),
            (None, Some(DurationText(wait))) => job.expires_in(wait),
            (None, None) => job,
        };
        job = job.if_exists(if_exists.0);
        job.check()?;
        Ok(job)
    }
}

fn with_payload(
    kind: &str,
    payload: Option<Box<RawValue>>,
    content_type: Option<&str>,
) -> Result<Job, Problem> {
    let text = payload.as_deref().map_or("null", RawValue::get);
    match content_type {
        None | Some("application/json") => {
            shallow("payload", text)?;
            Ok(Job::json(kind, text))
        }
        Some(other) => {
            let text = serde_json::from_str::<String>(text).map_err(|_| {
                Fault::Invalid
                    .because(format!("payload must be a string, because its content_type is {other:?}"))
            })?;
            Ok(Job::raw(kind, other, text.into_bytes()))
        }
    }
}

/// Answers 201 for a job that was created or opened again, 200 for one that already existed, with its path in a header.
pub(super) fn accepted<K>(job: &JobHandle<K>) -> Response {
    let submitted = Submitted::of(job);
    let status = if submitted.duplicate { StatusCode::OK } else { StatusCode::CREATED };
    let mut headers = HeaderMap::new();
    // Ids contain only characters that are valid in paths and headers.
    if let Ok(location) = HeaderValue::from_str(&format!("/v1/jobs/{}", submitted.id)) {
        headers.insert(LOCATION, location);
    }
    let told = AuditNote(format!("job {}: {}", submitted.id, submitted.accepted));
    let mut answer = (status, headers, Answer(submitted)).into_response();
    answer.extensions_mut().insert(told);
    answer
}

/// Submit a job.
///
/// Answers once a majority of the ZooKeeper servers has the job on disk: from then on it is not lost. After 504 it may
/// or may not have been accepted: submit it again with the id in the problem. A W3C `traceparent` header makes the job
/// part of that trace.
#[utoipa::path(
    post, path = "/v1/jobs", tag = "jobs", security(("token" = ["submit"])),
    request_body = NewJob,
    responses(
        (status = 201, description = "Accepted; the header `Location` has its path", body = Submitted),
        (status = 200, description = "The same job already existed", body = Submitted),
        (status = 409, description = "The id belongs to another job", body = Problem, content_type = "application/problem+json"),
        (status = "4XX", description = "Not accepted", body = Problem, content_type = "application/problem+json"),
        (status = "5XX", description = "Not accepted, or the outcome is unknown", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn submit_job(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Traced(trace): Traced,
    Json(new): Json<NewJob>,
) -> Result<Response, Problem> {
    let job = new.job(&caller)?.trace_context(trace);
    let reserved = app.open_jobs.reserve(&app.client, &caller, 1).await?;
    let job = app.client.on_behalf_of(&caller.author()).submit(job).await?;
    reserved.submitted([job.id()]);
    Ok(accepted(&job))
}
