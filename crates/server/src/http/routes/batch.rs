//! `POST /v1/batch`: many jobs in one request.

use axum::Json as Answer;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use tokio::sync::SemaphorePermit;
use utoipa::ToSchema;

use super::document::Submitted;
use super::submit::NewJob;
use crate::http::extract::{Bounded, Json, Traced};
use crate::http::front::Told;
use crate::http::limits::{MAX_BATCH, MAX_BATCH_BODY};
use crate::http::problem::{Fault, Problem};
use crate::http::state::App;

/// Jobs to submit.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Batch {
    /// 1 to 1,000. Those of one lane keep their order.
    #[schema(min_items = 1, max_items = 1000)]
    jobs: Vec<NewJob>,
}

impl Bounded for Batch {
    const MAX_BYTES: usize = MAX_BATCH_BODY;
}

/// What became of each job.
#[derive(Serialize, ToSchema)]
pub(super) struct BatchAnswer {
    /// How many were accepted, those that were there already included.
    pub(super) accepted: usize,
    /// How many were not, or are in doubt.
    pub(super) refused: usize,
    /// In the order of the jobs.
    pub(super) jobs: Vec<One>,
}

/// What became of one job.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
pub(super) enum One {
    /// It was accepted.
    Accepted(Submitted),
    /// It was not, or that is not known.
    Refused {
        /// Why.
        problem: Problem,
    },
}

/// A place among the large bodies that may be read and submitted at a time.
pub(super) fn permit(app: &App) -> Result<SemaphorePermit<'_>, Problem> {
    app.batches.try_acquire().map_err(|_| {
        metrics::counter!(bellwether::metrics::HTTP_REFUSED, "why" => "batches").increment(1);
        Fault::Saturated.because("as many batches are under way as there may be")
    })
}

/// Submit many jobs.
///
/// All are checked first: when one is not valid, none is submitted. Then each is accepted or refused by itself, and the
/// answer tells of each. Name the jobs, to be able to submit all of them again when there is no answer.
#[utoipa::path(
    post, path = "/v1/batch", tag = "jobs", security(("token" = ["submit"])),
    request_body = Batch,
    responses(
        (status = 200, description = "What became of each", body = BatchAnswer),
        (status = "4XX", description = "None was submitted", body = Problem, content_type = "application/problem+json"),
        (status = "5XX", description = "None was submitted, or unknown", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn submit_batch(
    State(app): State<App>,
    request: axum::extract::Request,
) -> Result<Response, Problem> {
    // Before the body is read, which may be a large one.
    let _permit = permit(&app)?;
    let Traced(trace) = Traced::of(request.headers());
    let Json(batch) = <Json<Batch> as axum::extract::FromRequest<App>>::from_request(request, &app).await?;
    if !(1..=MAX_BATCH).contains(&batch.jobs.len()) {
        let given = batch.jobs.len();
        return Err(Fault::Invalid.because(format!("a batch has 1 to {MAX_BATCH} jobs, not {given}")));
    }
    let jobs = batch.jobs.into_iter().enumerate();
    let jobs = jobs.map(|(at, new)| new.job().map_err(|problem| problem.within(&format!("jobs[{at}]"))));
    let jobs = jobs.collect::<Result<Vec<_>, _>>()?.into_iter().map(|job| job.trace_context(trace));
    let answers = app.client.submit_many(jobs, |_| {}).await;
    let accepted = answers.iter().filter(|answer| answer.is_ok()).count();
    let refused = answers.len() - accepted;
    let told = Told(format!("{accepted} jobs accepted, {refused} not"));
    let jobs = answers.into_iter().map(|answer| match answer {
        Ok(job) => One::Accepted(Submitted::of(&job)),
        Err(error) => One::Refused { problem: error.into() },
    });
    let mut answer = Answer(BatchAnswer { accepted, refused, jobs: jobs.collect() }).into_response();
    answer.extensions_mut().insert(told);
    Ok(answer)
}
