//! `POST /v1/remote-workers/{key}/finish`: the ends of attempts.

use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json as Answer};
use bellwether::handler::HandlerResult;
use bellwether::{DurationText, HandlerError, JobId};
use futures::future::join_all;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::at;
use crate::extract::{Bounded, Json, Key};
use crate::layers::{AuditNote, Caller};
use crate::limits::{MAX_REMOTE_ATTEMPTS, MAX_REMOTE_BODY};
use crate::problem::{Fault, Problem};
use crate::remote::{Attempt, Finished, Id};
use crate::state::App;
use bellwether_documents::PayloadDocument;

/// Attempts that have ended.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Finish {
    /// 1 to 256 attempts.
    #[schema(min_items = 1, max_items = 256)]
    attempts: Vec<End>,
}

/// An attempt that has ended.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct End {
    /// The job's id.
    #[schema(value_type = JobId)]
    job: JobId,
    /// The number of the attempt.
    attempt: u32,
    /// The fencing token of the attempt.
    fencing_token: i32,
    /// How it ended.
    outcome: Outcome,
}

/// How an attempt ended.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = AttemptEnd)]
pub(crate) enum Outcome {
    /// With this result.
    Succeeded(PayloadDocument),
    /// It failed, with the reason. The job's policy decides whether it is retried.
    Failed(String),
    /// The job can never succeed, with the reason: it is dead.
    Invalid(String),
    /// Run the job again after this time, limited to 1s to 7d. Counts neither as a failure nor as a loss.
    RetryLater(DurationText),
}

impl Bounded for Finish {
    const MAX_BYTES: usize = MAX_REMOTE_BODY;
}

/// The outcome for each attempt.
#[derive(Serialize, ToSchema)]
pub(crate) struct FinishAnswer {
    /// In the order of the attempts.
    results: Vec<EndResult>,
}

/// The outcome for one attempt.
#[derive(Serialize, ToSchema)]
pub(crate) struct EndResult {
    /// The job's id.
    job: String,
    /// The number of the attempt.
    attempt: u32,
    /// `closed` (written), `fenced` (the attempt was closed without this finish) or `unknown` (the worker's session ended
    /// before the write was confirmed). In each case the attempt is over: do not repeat the finish.
    status: &'static str,
    /// The reason, unless it is closed.
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<Problem>,
}

impl Outcome {
    fn checked(self) -> Result<HandlerResult, Problem> {
        Ok(match self {
            Self::Succeeded(result) => {
                let invalid = |reason| Fault::Invalid.because(format!("succeeded: {reason}"));
                Ok(result.payload().map_err(invalid)?)
            }
            Self::Failed(reason) => Err(HandlerError::new(reason)),
            Self::Invalid(reason) => Err(HandlerError::invalid(reason)),
            Self::RetryLater(DurationText(after)) => Err(HandlerError::retry_later(after)),
        })
    }
}

impl EndResult {
    fn new(Id { job, attempt, .. }: &Id, finished: Finished) -> Self {
        let (status, problem) = match finished {
            Finished::Closed => ("closed", None),
            Finished::Fenced => (
                "fenced",
                Some(Fault::Fenced.because(format!(
                    "attempt {attempt} of job {job} was closed without this finish: drop its outcome"
                ))),
            ),
            Finished::Unknown => (
                "unknown",
                Some(Fault::Unknown.because(format!(
                    "the session of the worker ended while attempt {attempt} of job {job} was being closed: it is closed \
                     with this finish or counts as lost"
                ))),
            ),
        };
        let problem = problem.map(|problem| problem.about(job.clone()));
        Self { job: job.to_string(), attempt: *attempt, status, problem }
    }
}

/// Finish attempts.
///
/// Answers when the ends are written. All attempts are checked first: an invalid one rejects the request. If the answer is
/// lost, send the same request again: an attempt that is closed already is answered as the first time.
#[utoipa::path(
    post, path = "/v1/remote-workers/{key}/finish", tag = "remote workers", security(("token" = ["work"])),
    params(("key" = String, Path, description = "The worker's key")),
    request_body = Finish,
    responses(
        (status = 200, description = "The outcome for each attempt", body = FinishAnswer),
        (status = 404, description = "The worker is unknown to this gateway: register it again", body = Problem, content_type = "application/problem+json"),
        (status = 409, description = "The only attempt is fenced", body = Problem, content_type = "application/problem+json"),
        (status = "4XX", description = "No attempt was finished", body = Problem, content_type = "application/problem+json"),
        (status = "5XX", description = "The outcome is unknown: repeat the request, unless the only attempt is `unknown`", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn finish_attempts(
    State(app): State<App>,
    Key(key): Key,
    Extension(caller): Extension<Caller>,
    Json(Finish { attempts }): Json<Finish>,
) -> Result<Response, Problem> {
    let worker = app.remote_workers.called(key, &caller.name)?;
    if !(1..=MAX_REMOTE_ATTEMPTS).contains(&attempts.len()) {
        let given = attempts.len();
        return Err(
            Fault::Invalid.because(format!("a finish has 1 to {MAX_REMOTE_ATTEMPTS} attempts, not {given}"))
        );
    }
    let ends = attempts.into_iter().enumerate().map(|(n, End { job, attempt, fencing_token, outcome })| {
        let outcome = outcome.checked().map_err(|problem| at("attempts", n, problem))?;
        Ok((Id { job, attempt, fencing_token }, outcome))
    });
    let ends = ends.collect::<Result<Vec<_>, Problem>>()?;
    worker.adopted().await;
    // All are handed over before any is awaited, so that their ends are written in one batch.
    let ends = ends.into_iter().map(|(id, outcome)| {
        let attempt = worker.finish(&id);
        if let Some(attempt) = &attempt {
            attempt.hand_over(outcome);
        }
        (id, attempt)
    });
    let ends = ends.collect::<Vec<(Id, Option<Arc<Attempt>>)>>();
    let results = join_all(ends.iter().map(async |(id, attempt)| {
        let finished = match attempt {
            Some(attempt) => attempt.finished().await,
            None => Finished::Fenced,
        };
        EndResult::new(id, finished)
    }));
    let mut results = results.await;
    if let [EndResult { problem: problem @ Some(_), .. }] = results.as_mut_slice()
        && let Some(problem) = problem.take()
    {
        return Err(problem);
    }
    let closed = results.iter().filter(|result| result.problem.is_none()).count();
    let note = AuditNote(format!("closed {closed} of {} attempts", results.len()));
    Ok((note, Answer(FinishAnswer { results })).into_response())
}
