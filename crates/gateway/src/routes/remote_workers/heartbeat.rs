//! `POST /v1/remote-workers/{key}/heartbeat`: leases, progress and checkpoints.

use std::collections::BTreeMap;

use axum::extract::State;
use axum::{Extension, Json as Answer};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bellwether::{JobContext, JobId, Progress, ProgressError};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{StopDocument, at, stops};
use crate::extract::{Bounded, Json, Key};
use crate::layers::Caller;
use crate::limits::MAX_REMOTE_BODY;
use crate::problem::{Fault, Problem};
use crate::remote::Id;
use crate::state::App;

/// What a worker runs.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Heartbeat {
    /// The attempts whose leases are renewed.
    #[serde(default)]
    running: Vec<Beat>,
}

/// An attempt that runs.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Beat {
    /// The job's id.
    #[schema(value_type = JobId)]
    job: JobId,
    /// The number of the attempt.
    attempt: u32,
    /// The fencing token of the attempt.
    fencing_token: i32,
    /// Progress in percent.
    #[schema(minimum = 0, maximum = 100)]
    percent: Option<u8>,
    /// A message of at most 1 KiB.
    message: Option<String>,
    /// Up to 16 KiB for the next attempt, in base64. Left out, the last one is kept.
    checkpoint: Option<String>,
}

impl Bounded for Heartbeat {
    const MAX_BYTES: usize = MAX_REMOTE_BODY;
}

/// What a worker must stop.
#[derive(Serialize, ToSchema)]
pub(crate) struct HeartbeatAnswer {
    /// Attempts to stop, of those that the worker listed.
    stop: Vec<StopDocument>,
    /// Whether the worker gets no further attempts.
    draining: bool,
}

/// A checked report.
struct Report {
    /// The percentage and the message; `None` if neither was given.
    progress: Option<(Option<u8>, String)>,
    checkpoint: Option<Vec<u8>>,
}

fn checked(beat: Beat) -> Result<(Id, Report), Problem> {
    let Beat { job, attempt, fencing_token, percent, message, checkpoint } = beat;
    let checkpoint = checkpoint.map(|text| STANDARD.decode(text)).transpose();
    let checkpoint = checkpoint.map_err(|error| Fault::Invalid.because(format!("checkpoint: {error}")))?;
    let progress = (percent.is_some() || message.is_some()).then(|| (percent, message.unwrap_or_default()));
    // The bounds are checked here, so that an invalid report changes nothing.
    let invalid = |error: ProgressError| Fault::Invalid.because(error.to_string());
    if let Some((percent, message)) = &progress {
        Progress::default().with_message(*percent, message.as_str()).map_err(invalid)?;
    }
    if let Some(checkpoint) = &checkpoint {
        Progress::default().with_checkpoint(checkpoint.as_slice()).map_err(invalid)?;
    }
    Ok((Id { job, attempt, fencing_token }, Report { progress, checkpoint }))
}

/// Report the running attempts.
///
/// Renews the lease of each listed attempt, and stores its progress and its checkpoint. Send it at least every third of the
/// worker's timeout, even with no attempt, and every third of the shortest lease. Repeating the request is safe.
#[utoipa::path(
    post, path = "/v1/remote-workers/{key}/heartbeat", tag = "remote workers", security(("token" = ["work"])),
    params(("key" = String, Path, description = "The worker's key")),
    request_body = Heartbeat,
    responses(
        (status = 200, description = "The leases are being renewed", body = HeartbeatAnswer),
        (status = 404, description = "The worker is unknown to this gateway: register it again", body = Problem, content_type = "application/problem+json"),
        (status = "4XX", description = "Nothing was renewed", body = Problem, content_type = "application/problem+json"),
        (status = "5XX", description = "Nothing was renewed, or the outcome is unknown", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn report_running(
    State(app): State<App>,
    Key(key): Key,
    Extension(caller): Extension<Caller>,
    Json(Heartbeat { running }): Json<Heartbeat>,
) -> Result<Answer<HeartbeatAnswer>, Problem> {
    let worker = app.remote_workers.called(key, &caller.name)?;
    let beats = running.into_iter().enumerate();
    let beats = beats.map(|(n, beat)| checked(beat).map_err(|problem| at("running", n, problem)));
    let mut beats = beats.collect::<Result<BTreeMap<_, _>, _>>()?;
    worker.adopted().await;
    let (open, instructions) = worker.heartbeat(&beats.keys().cloned().collect());
    for (id, attempt) in open {
        if let (Some(report), Some(context)) = (beats.remove(&id), attempt.context()) {
            apply(&context, report)?;
        }
    }
    Ok(Answer(HeartbeatAnswer { stop: stops(&instructions), draining: instructions.draining }))
}

fn apply(context: &JobContext, Report { progress, checkpoint }: Report) -> Result<(), Problem> {
    let invalid = |error: ProgressError| Fault::Invalid.because(error.to_string());
    if let Some((percent, message)) = progress {
        context.progress(percent, message).map_err(invalid)?;
    }
    if let Some(checkpoint) = checkpoint {
        context.checkpoint(checkpoint).map_err(invalid)?;
    }
    if let Err(error) = context.renew_lease(context.lease()) {
        // The attempt is about to be stopped: the next answer contains the stop.
        tracing::debug!(job = %context.job(), %error, "the gateway did not renew the lease of a remote attempt");
    }
    Ok(())
}
