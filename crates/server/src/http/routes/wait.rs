//! `GET /v1/jobs/{id}/wait`: a long poll.

use std::time::Duration;

use axum::Json as Answer;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use tokio::sync::SemaphorePermit;
use utoipa::IntoParams;

use crate::document::{DurationSchema, JobDocument};
use crate::http::extract::{Id, QueryParameters};
use crate::http::limits::{DEFAULT_WAIT, MAX_WAIT};
use crate::http::problem::{Fault, Problem};
use crate::http::server::Phase;
use crate::http::state::App;
use bellwether::DurationText;
use bellwether::client::{Error, WaitError};

/// Timeout of a long poll.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct HowLong {
    /// Timeout, at most 50s; default 30s.
    #[param(value_type = Option<DurationSchema>)]
    timeout: Option<DurationText>,
}

/// Returns the requested timeout if it is within the limit.
pub(super) fn within(how_long: &HowLong) -> Result<Duration, Problem> {
    let within = how_long.timeout.map_or(DEFAULT_WAIT, Duration::from);
    if within > MAX_WAIT {
        let most = DurationText(MAX_WAIT);
        return Err(
            Fault::Invalid.because(format!("timeout must be at most {most}: repeat it to wait longer"))
        );
    }
    Ok(within)
}

/// Returns a permit for a long poll.
pub(super) fn permit(app: &App) -> Result<SemaphorePermit<'_>, Problem> {
    app.waits.try_acquire().map_err(|_| {
        metrics::counter!(bellwether::metrics::HTTP_REFUSALS, "reason" => "waits").increment(1);
        Fault::Saturated.because("the limit of concurrent waits is reached: read the current state instead")
    })
}

/// Wait until a job has ended.
///
/// Answers 200 as soon as the job has ended, and 202 with the current job after the timeout: repeat the request.
/// Waiting changes nothing.
#[utoipa::path(
    get, path = "/v1/jobs/{id}/wait", tag = "jobs", security(("token" = ["read"])),
    params(("id" = String, Path, description = "The job's id"), HowLong),
    responses(
        (status = 200, description = "The job has ended", body = JobDocument),
        (status = 202, description = "The job has not ended yet", body = JobDocument),
        (status = "4XX", description = "The request failed", body = Problem, content_type = "application/problem+json"),
        (status = "5XX", description = "The request failed", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn wait_for_job(
    State(app): State<App>,
    Id(id): Id,
    QueryParameters(how_long): QueryParameters<HowLong>,
) -> Result<Response, Problem> {
    let within = within(&how_long)?;
    let _permit = permit(&app)?;
    let mut phase = app.phase.clone();
    let waited = tokio::select! {
        waited = app.client.wait(&id, within) => waited,
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
            let status = if view.state.is_terminal() { StatusCode::OK } else { StatusCode::ACCEPTED };
            Ok((status, Answer(JobDocument::from(&view))).into_response())
        }
        Err(error) => Err(error.into()),
    }
}
