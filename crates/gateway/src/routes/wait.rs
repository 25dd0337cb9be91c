//! `GET /v1/jobs/{id}/wait`: a long poll.

use std::num::NonZeroU32;
use std::time::Duration;

use axum::Json as Answer;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use utoipa::IntoParams;

use crate::extract::{Id, QueryParameters};
use crate::limits::{DEFAULT_WAIT, MAX_WAIT};
use crate::problem::{Fault, Problem};
use crate::server::Phase;
use crate::state::App;
use bellwether::client::{Error, WaitError};
use bellwether_documents::{DurationText, JobDocument, Text};

/// Every generation is at least this one.
const ANY_GENERATION: u32 = 0;

/// Timeout of a long poll.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct HowLong {
    /// Timeout, at most 50s; default 30s.
    timeout: Option<DurationText>,
}

/// Returns the requested timeout if it is within the limit.
pub(super) fn within(how_long: &HowLong) -> Result<Duration, Problem> {
    let within = how_long.timeout.map_or(DEFAULT_WAIT, |Text(timeout)| timeout);
    if within > MAX_WAIT {
        let most = bellwether::DurationText(MAX_WAIT);
        return Err(
            Fault::Invalid.because(format!("timeout must be at most {most}: repeat it to wait longer"))
        );
    }
    Ok(within)
}

/// Which run of the job is waited for.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct WaitQuery {
    /// Timeout, at most 50s; default 30s.
    timeout: Option<DurationText>,
    /// The generation that the submission or the retry returned: the end of an earlier one is no answer. Default: any.
    #[param(value_type = Option<u32>, minimum = 1)]
    generation: Option<NonZeroU32>,
}

/// Wait until a job has ended.
///
/// Answers 200 as soon as the job has ended, and 202 with the current job after the timeout: repeat the request. With a
/// generation, the job has ended in this generation or a later one. Waiting changes nothing.
#[utoipa::path(
    get, path = "/v1/jobs/{id}/wait", tag = "jobs", security(("token" = ["read"])),
    params(("id" = String, Path, description = "The job's id"), WaitQuery),
    responses(
        (status = 200, description = "The job has ended", body = JobDocument),
        (status = 202, description = "The job has not ended yet", body = JobDocument),
    )
)]
pub(super) async fn wait_for_job(
    State(app): State<App>,
    Id(id): Id,
    QueryParameters(query): QueryParameters<WaitQuery>,
) -> Result<Response, Problem> {
    let WaitQuery { timeout, generation } = query;
    let within = within(&HowLong { timeout })?;
    let generation = generation.map_or(ANY_GENERATION, NonZeroU32::get);
    let mut phase = app.phase.clone();
    let waited = tokio::select! {
        waited = app.client.wait_for(&id, generation, within) => waited,
        _ = phase.wait_for(|phase| *phase > Phase::Serving) => {
            return Err(Fault::Unavailable.because("the gateway is stopping: wait again on another gateway, or later"));
        }
    };
    match waited {
        Ok(view) => Ok(Answer(JobDocument::from(&view)).into_response()),
        Err(WaitError::TimedOut { last: Some(view), .. }) => {
            Ok((StatusCode::ACCEPTED, Answer(JobDocument::from(&*view))).into_response())
        }
        Err(WaitError::TimedOut { last: None, .. }) => {
            let view = app.client.get(&id).await?.ok_or(Error::NotFound(id))?;
            let ended = view.state.is_terminal() && view.generation >= generation;
            let status = if ended { StatusCode::OK } else { StatusCode::ACCEPTED };
            Ok((status, Answer(JobDocument::from(&view))).into_response())
        }
        Err(error) => Err(error.into()),
    }
}
