//! `POST /v1/jobs`.

use axum::Json as Answer;
use axum::extract::State;
use axum::http::header::LOCATION;
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::time::{Duration, SystemTime};
use utoipa::ToSchema;

use super::submitted::Submitted;
use crate::http::extract::{Bounded, Json, Traced, shallow};
use crate::http::front::Told;
use crate::http::limits::MAX_BODY;
use crate::http::problem::{Fault, Problem};
use crate::http::state::App;
use bellwether::client::{IfExists, Job, JobError, JobHandle};

/// A job to submit.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NewJob {
    /// Id of the job: `[A-Za-z0-9._-]`, at most 128 characters. The same id, kind and payload is the same job, so
    /// submitting a job with an id again is safe. Without it a UUIDv7 is generated.
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
    /// Number of failed attempts after which the job is dead. Default 5.
    #[schema(minimum = 1, maximum = 1000)]
    max_attempts: Option<u32>,
    /// Number of lost attempts after which the job is dead. Default 3.
    #[schema(minimum = 1, maximum = 1000)]
    max_losses: Option<u32>,
    /// Backoff after a failure.
    backoff: Option<Backoff>,
    /// Time limit of each attempt in milliseconds, at most 7 days. Default: none.
    #[schema(minimum = 1, maximum = 604800000)]
    timeout_ms: Option<u64>,
    /// Lease of each attempt in milliseconds, 1 s to 7 days: without a renewal for this long, the job moves to another
    /// worker. Default: that of its kind, else 5 minutes.
    #[schema(minimum = 1000, maximum = 604800000)]
    lease_ms: Option<u64>,
    /// Whether the worker renews the lease while the handler runs. Default: the setting of its kind, else false.
    renew_lease: Option<bool>,
    /// Priority, 0 to 9; 9 runs first. Default 5.
    #[schema(minimum = 0, maximum = 9)]
    priority: Option<u8>,
    /// Do not start the job before this instant, RFC 3339, at most ten years ahead. Excludes `delay_ms`.
    #[schema(format = DateTime)]
    run_at: Option<String>,
    /// Do not start the job before this many milliseconds have passed.
    delay_ms: Option<u64>,
    /// Do not start the job after this instant, RFC 3339. Excludes `expires_in_ms`.
    #[schema(format = DateTime)]
    expires_at: Option<String>,
    /// Do not start the job after this many milliseconds have passed.
    expires_in_ms: Option<u64>,
    /// What to do if a job with this id exists. Default `same`.
    #[serde(default)]
    if_exists: IfExistsName,
    /// Tags that the worker must have, at most 32.
    #[serde(default)]
    #[schema(max_items = 32)]
    tags: Vec<String>,
    /// Affinity key: with the strategy rendezvous, jobs with the same key prefer the same worker.
    affinity: Option<String>,
    /// Lane of the job: jobs of one lane run one at a time, in the order of their submission.
    lane: Option<String>,
}

/// What to do if a job with this id exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = IfExists)]
enum IfExistsName {
    /// The same job if kind and payload are the same, otherwise a conflict.
    #[default]
    Same,
    /// The submission is accepted and nothing is done.
    Ignore,
    /// As `same`, but a job that has ended is opened again.
    Again,
}

impl From<IfExistsName> for IfExists {
    fn from(name: IfExistsName) -> Self {
        match name {
            IfExistsName::Same => Self::Same,
            IfExistsName::Ignore => Self::Ignore,
            IfExistsName::Again => Self::Again,
        }
    }
}

/// Backoff after the first failure, doubled after each further failure up to `max_ms`, with jitter.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Backoff {
    /// In milliseconds.
    #[schema(minimum = 1, maximum = 604800000, example = 1000)]
    initial_ms: u64,
    /// In milliseconds.
    #[schema(minimum = 1, maximum = 604800000, example = 300000)]
    max_ms: u64,
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
    /// Returns the checked job.
    pub(super) fn job(self) -> Result<Job, Problem> {
        let Self {
            id,
            kind,
            payload,
            content_type,
            max_attempts,
            max_losses,
            backoff,
            timeout_ms,
            lease_ms,
            renew_lease,
            priority,
            run_at,
            delay_ms,
            expires_at,
            expires_in_ms,
            if_exists,
            tags,
            affinity,
            lane,
        } = self;
        let mut job = with_payload(&kind, payload, content_type.as_deref())?;
        if let Some(id) = id {
            job = job.id(id);
        }
        if let Some(attempts) = max_attempts {
            job = job.max_attempts(attempts);
        }
        if let Some(losses) = max_losses {
            job = job.max_losses(losses);
        }
        if let Some(Backoff { initial_ms, max_ms }) = backoff {
            job = job.backoff(Duration::from_millis(initial_ms), Duration::from_millis(max_ms));
        }
        if let Some(timeout) = timeout_ms {
            job = job.timeout(Duration::from_millis(timeout));
        }
        if let Some(lease) = lease_ms {
            job = job.lease(Duration::from_millis(lease));
        }
        if let Some(renew) = renew_lease {
            job = job.renew_lease_automatically(renew);
        }
        if let Some(priority) = priority {
            job = job.priority(priority);
        }
        job = match (run_at, delay_ms) {
            (Some(_), Some(_)) => return Err(Fault::Invalid.because("give run_at or delay_ms, not both")),
            (Some(at), None) => job.run_at(instant("run_at", &at)?),
            (None, Some(delay)) => job.delay(Duration::from_millis(delay)),
            (None, None) => job,
        };
        job = match (expires_at, expires_in_ms) {
            (Some(_), Some(_)) => {
                return Err(Fault::Invalid.because("give expires_at or expires_in_ms, not both"));
            }
            (Some(at), None) => job.expires_at(instant("expires_at", &at)?),
            (None, Some(wait)) => job.expires_in(Duration::from_millis(wait)),
            (None, None) => job,
        };
        job = job.if_exists(if_exists.into());
        if let Some(key) = affinity {
            job = job.affinity(key);
        }
        if let Some(lane) = lane {
            job = job.lane(lane);
        }
        job = tags.into_iter().fold(job, Job::tag);
        job.check()?;
        Ok(job)
    }
}

/// Parses RFC 3339 with an offset.
pub(super) fn instant(field: &str, text: &str) -> Result<SystemTime, Problem> {
    let at = text.parse::<jiff::Timestamp>().map_err(|_| {
        Fault::Invalid.because(format!(
            "{field} is not an instant: give date, time and offset, such as 2026-11-21T11:33:00Z"
        ))
    })?;
    Ok(at.into())
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
            Ok(Job::json(kind, text)?)
        }
        Some(other) => {
            let text = serde_json::from_str::<String>(text).map_err(|_| {
                Fault::Invalid
                    .because(format!("payload must be a string, because its content_type is {other:?}"))
            })?;
            Ok(Job::raw(kind, other, text.into_bytes())?)
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
    let told = Told(format!("job {}: {}", submitted.id, submitted.accepted));
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
    Traced(trace): Traced,
    Json(new): Json<NewJob>,
) -> Result<Response, Problem> {
    let job = app.client.submit(new.job()?.trace_context(trace)).await?;
    Ok(accepted(&job))
}
