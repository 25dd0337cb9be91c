//! `POST /v1/remote-workers/{key}/poll`: a long poll for attempts.

use axum::extract::{FromRequest, Request, State};
use axum::{Extension, Json as Answer};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bellwether::{DurationText, JobContext, Progress};
use serde::{Deserialize, Serialize};
use tokio::time::timeout;
use utoipa::ToSchema;

use super::{AttemptRef, StopDocument, ids, stops};
use crate::extract::{Bounded, Json, Key};
use crate::layers::Caller;
use crate::limits::{DEFAULT_POLL, MAX_POLL, MAX_REMOTE_ATTEMPTS, MAX_REMOTE_BODY, POLL_BYTES};
use crate::problem::{Fault, Problem};
use crate::server::Phase;
use crate::state::App;
use bellwether_documents::PayloadDocument;

/// What a worker has, and how long it waits for more.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Poll {
    /// All attempts that the worker has received and whose finish was not answered. Attempts that are not listed are
    /// delivered again.
    #[serde(default)]
    running: Vec<AttemptRef>,
    /// The largest number of attempts in the answer, 0 to 256; default 256. With 0 only stops and a drain end the wait.
    limit: Option<usize>,
    /// The time to wait, 0s to 30s; default 20s.
    timeout: Option<DurationText>,
}

impl Bounded for Poll {
    const MAX_BYTES: usize = MAX_REMOTE_BODY;
}

/// News for a worker.
#[derive(Serialize, ToSchema)]
pub(crate) struct Polled {
    /// Attempts to start, the oldest first.
    attempts: Vec<AttemptDocument>,
    /// Attempts to stop, of those that the worker listed.
    stop: Vec<StopDocument>,
    /// Whether the worker gets no further attempts: it, or an operator, has asked for a drain.
    draining: bool,
}

/// An attempt to run.
#[derive(Serialize, ToSchema)]
#[schema(as = RemoteAttempt)]
pub(crate) struct AttemptDocument {
    /// The job's id. It is the same for every attempt, so it can serve as an idempotency key.
    job: String,
    /// The job's kind.
    kind: String,
    /// 1, plus one for each time that the job was opened again.
    generation: u32,
    /// The number of the attempt in this generation.
    attempt: u32,
    /// The fencing token: it grows from each attempt of the job to the next.
    fencing_token: i32,
    /// The submission of the job, a UUID. It tells the job from an earlier one with the same id.
    submission: String,
    /// The payload.
    payload: PayloadDocument,
    /// How urgent the job is, 0 to 9.
    priority: u8,
    /// The attempt fails this long after it was offered; null without a limit.
    #[schema(required)]
    timeout: Option<DurationText>,
    /// The lease. A heartbeat that lists the attempt renews it.
    lease: DurationText,
    /// Whether the process renews the lease while the handler runs, as the job says; null: its kind decides.
    #[schema(required)]
    auto_renew: Option<bool>,
    /// The group that the job belongs to.
    #[schema(required)]
    group: Option<String>,
    /// The number of the job in its group.
    #[schema(required)]
    number: Option<u32>,
    /// The trace of the attempt, as in the W3C header.
    #[schema(required)]
    traceparent: Option<String>,
    /// The checkpoint of earlier attempts, in base64.
    #[schema(required)]
    checkpoint: Option<String>,
    /// The progress of earlier attempts.
    #[schema(required)]
    progress: Option<ProgressDocument>,
}

/// Progress of an attempt.
#[derive(Serialize, ToSchema)]
#[schema(as = Progress)]
pub(crate) struct ProgressDocument {
    /// In percent.
    #[schema(required, minimum = 0, maximum = 100)]
    percent: Option<u8>,
    /// A message.
    message: String,
}

impl From<&JobContext> for AttemptDocument {
    fn from(context: &JobContext) -> Self {
        let progress = |progress: &Progress| ProgressDocument {
            percent: progress.percent(),
            message: progress.message().to_owned(),
        };
        Self {
            job: context.job().to_string(),
            kind: context.kind().to_string(),
            generation: context.generation(),
            attempt: context.attempt(),
            fencing_token: context.fencing_token(),
            submission: context.submission().to_string(),
            payload: context.payload().into(),
            priority: context.priority(),
            timeout: context.timeout().map(DurationText),
            lease: DurationText(context.lease()),
            auto_renew: context.auto_renew(),
            group: context.group().map(ToString::to_string),
            number: context.number(),
            traceparent: context.traceparent().map(ToString::to_string),
            checkpoint: context.last_checkpoint().map(|bytes| STANDARD.encode(bytes)),
            progress: context.last_progress().map(progress),
        }
    }
}

/// Wait for attempts to run.
///
/// Answers as soon as there is an attempt to start or to stop, or a drain begins, and otherwise after the wait. A newer poll of
/// the worker ends an older one with an empty answer. If the answer is lost, the next poll gets its attempts again.
#[utoipa::path(
    post, path = "/v1/remote-workers/{key}/poll", tag = "remote workers", security(("token" = ["work"])),
    params(("key" = String, Path, description = "The worker's key")),
    request_body = Poll,
    responses(
        (status = 200, description = "News for the worker; may be empty", body = Polled),
        (status = 404, description = "The worker is unknown to this gateway: register it again", body = Problem, content_type = "application/problem+json"),
        (status = "4XX", description = "The request failed", body = Problem, content_type = "application/problem+json"),
        (status = "5XX", description = "The request failed", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn poll_attempts(
    State(app): State<App>,
    Key(key): Key,
    Extension(caller): Extension<Caller>,
    request: Request,
) -> Result<Answer<Polled>, Problem> {
    let worker = app.remote_workers.called(key, &caller.name)?;
    // A long request has no time limit, so the body gets one.
    let body =
        timeout(app.limits.request_time, <Json<Poll> as FromRequest<App>>::from_request(request, &app));
    let late = |_| Fault::Late.because("the body did not arrive in time");
    let Json(Poll { running, limit, timeout: wait }) = body.await.map_err(late)??;
    let limit = limit.unwrap_or(MAX_REMOTE_ATTEMPTS);
    if limit > MAX_REMOTE_ATTEMPTS {
        return Err(Fault::Invalid.because(format!("limit must be 0 to {MAX_REMOTE_ATTEMPTS}, not {limit}")));
    }
    let wait = wait.map_or(DEFAULT_POLL, |DurationText(wait)| wait);
    if wait > MAX_POLL {
        let most = bellwether::DurationText(MAX_POLL);
        return Err(
            Fault::Invalid.because(format!("timeout must be 0s to {most}: poll again to wait longer"))
        );
    }
    let running = ids(running);
    timeout(app.limits.request_time, worker.adopted())
        .await
        .map_err(|_| Fault::Late.because("the attempts of the worker are not taken over yet"))?;
    let mut bytes = 0;
    let has_room = |attempt: &std::sync::Arc<crate::remote::Attempt>, count: usize| {
        if count == 1 {
            bytes = 0;
        }
        bytes += attempt.context().map_or(0, |context| {
            context.payload().bytes().len() + context.last_checkpoint().map_or(0, <[u8]>::len)
        });
        count <= limit && (count == 1 || bytes <= POLL_BYTES)
    };
    let mut phase = app.phase.clone();
    let (attempts, instructions) = tokio::select! {
        polled = worker.poll(&running, wait, has_room) => polled,
        _ = phase.wait_for(|phase| *phase > Phase::Serving) => {
            // The connection is closed after this answer. The next call registers the worker elsewhere.
            return Ok(Answer(Polled { attempts: Vec::new(), stop: Vec::new(), draining: false }));
        }
    };
    let contexts = attempts.iter().filter_map(|attempt| attempt.context());
    let attempts = contexts.map(|context| (&*context).into()).collect();
    Ok(Answer(Polled { attempts, stop: stops(&instructions), draining: instructions.draining }))
}
