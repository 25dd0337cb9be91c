//! `POST /v1/batch`: many jobs in one request.

use std::fmt;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json as Answer};
use serde::de::{Error as _, IgnoredAny, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use utoipa::ToSchema;

use super::submit::checked;
use crate::extract::{Bounded, Json, Traced};
use crate::layers::{AuditNote, Caller};
use crate::limits::{MAX_BATCH, MAX_BATCH_BODY};
use crate::problem::Problem;
use crate::state::App;
use bellwether::TraceContext;
use bellwether::client::{Job, JobHandle, SubmitError};
use bellwether_documents::SubmittedDocument;

/// Jobs to submit.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Batch {
    /// 1 to 1,000 jobs. Jobs of one lane keep their order.
    #[schema(min_items = 1, max_items = 1000)]
    #[serde(deserialize_with = "some_jobs")]
    jobs: Vec<Job>,
}

/// Decodes 1 to [`MAX_BATCH`] jobs. Further ones are only counted, because a body has room for 350,000 small ones.
pub(super) fn some_jobs<'de, D: Deserializer<'de>>(jobs: D) -> Result<Vec<Job>, D::Error> {
    struct SomeJobs;

    impl<'de> Visitor<'de> for SomeJobs {
        type Value = Vec<Job>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an array of jobs")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut given: A) -> Result<Vec<Job>, A::Error> {
            let (mut jobs, mut more) = (Vec::new(), 0);
            while jobs.len() < MAX_BATCH
                && let Some(job) = given.next_element()?
            {
                jobs.push(job);
            }
            while given.next_element::<IgnoredAny>()?.is_some() {
                more += 1;
            }
            let count = jobs.len() + more;
            if !(1..=MAX_BATCH).contains(&count) {
                return Err(A::Error::custom(format_args!("give 1 to {MAX_BATCH} jobs, not {count}")));
            }
            Ok(jobs)
        }
    }

    jobs.deserialize_seq(SomeJobs)
}

impl Bounded for Batch {
    const MAX_BYTES: usize = MAX_BATCH_BODY;
}

/// The outcome for each job.
#[derive(Serialize, ToSchema)]
pub(super) struct BatchAnswer {
    /// Number of accepted jobs, including jobs that already existed.
    pub(super) accepted: usize,
    /// Number of jobs that were refused or whose outcome is unknown.
    pub(super) refused: usize,
    /// Outcomes in the order of the jobs.
    pub(super) jobs: Vec<One>,
}

/// The outcome for one job.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
pub(super) enum One {
    /// The job was accepted.
    Accepted(SubmittedDocument),
    /// The job was refused, or its outcome is unknown.
    Refused {
        /// The reason.
        problem: Problem,
    },
}

/// Submit many jobs.
///
/// All jobs are checked first: one invalid job rejects the batch. Then each job is accepted or refused on its own,
/// and the answer lists the outcomes. Use ids, so that the whole batch can be submitted again if there is no answer.
#[utoipa::path(
    post, path = "/v1/batch", tag = "jobs", security(("token" = ["submit"])),
    request_body = Batch,
    responses(
        (status = 200, description = "The outcome for each job", body = BatchAnswer),
        (status = "4XX", description = "No job was submitted", body = Problem, content_type = "application/problem+json"),
        (status = "5XX", description = "No job was submitted, or the outcome is unknown", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn submit_batch(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    request: axum::extract::Request,
) -> Result<Response, Problem> {
    // Taken before the body is read, because the body may be large.
    let _permit = app.batches.enter(&caller)?;
    let Traced(trace) = Traced::of(request.headers());
    let Json(batch) = <Json<Batch> as axum::extract::FromRequest<App>>::from_request(request, &app).await?;
    let jobs = all_checked(batch.jobs, &caller, trace)?;
    let reserved = app.open_jobs.reserve(&app.client, &caller, jobs.len()).await?;
    let answers = app.client.on_behalf_of(&caller.author()).submit_many(jobs, |_| {}).await;
    reserved.submitted(answers.iter().flatten().map(JobHandle::id));
    Ok(outcomes(answers, |accepted, refused| format!("{accepted} jobs accepted, {refused} not")))
}

/// Checks all jobs, and gives them the trace of the request.
pub(super) fn all_checked(
    jobs: Vec<Job>,
    caller: &Caller,
    trace: Option<TraceContext>,
) -> Result<Vec<Job>, Problem> {
    let jobs = jobs.into_iter().enumerate().map(|(at, job)| {
        let job = checked(job, caller).map_err(|problem| problem.within(&format!("jobs[{at}]")))?;
        Ok(job.traceparent(trace))
    });
    jobs.collect()
}

/// Answers with the outcome for each job. The note for the audit line has the numbers of accepted and refused jobs.
pub(super) fn outcomes(
    answers: Vec<Result<JobHandle, SubmitError>>,
    note: impl FnOnce(usize, usize) -> String,
) -> Response {
    let accepted = answers.iter().filter(|answer| answer.is_ok()).count();
    let refused = answers.len() - accepted;
    let jobs = answers.into_iter().map(|answer| match answer {
        Ok(job) => One::Accepted((&job).into()),
        Err(error) => One::Refused { problem: error.into() },
    });
    let answer = BatchAnswer { accepted, refused, jobs: jobs.collect() };
    (AuditNote(note(accepted, refused)), Answer(answer)).into_response()
}
