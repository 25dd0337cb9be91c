//! `GET /v1/jobs/{id}/wait`: a long poll.

use std::time::Duration;

use axum::Json as Answer;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use tokio::sync::SemaphorePermit;
use utoipa::IntoParams;

use super::document::JobDocument;
use crate::http::extract::{Asked, Id};
use crate::http::limits::{DEFAULT_WAIT, MAX_WAIT};
use crate::http::problem::{Fault, Problem};
use crate::http::server::Phase;
use crate::http::state::App;
use bellwether::client::{Error, WaitError};

/// How long.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct HowLong {
    /// Milliseconds; 30,000 by default.
    #[param(minimum = 0, maximum = 50000)]
    timeout_ms: Option<u64>,
}

/// As it was asked for, within the bound.
pub(super) fn within(how_long: &HowLong) -> Result<Duration, Problem> {
    let within = how_long.timeout_ms.map_or(DEFAULT_WAIT, Duration::from_millis);
    if within > MAX_WAIT {
        let most = MAX_WAIT.as_millis();
        return Err(Fault::Invalid.because(format!("timeout_ms must be at most {most}: wait again after it")));
    }
    Ok(within)
}

/// A place among the long polls that may be under way.
pub(super) fn permit(app: &App) -> Result<SemaphorePermit<'_>, Problem> {
    app.waits.try_acquire().map_err(|_| {
        metrics::counter!(bellwether::metrics::HTTP_REFUSED, "why" => "waits").increment(1);
        Fault::Saturated.because("as many waits are under way as there may be: ask for what it is now")
    })
}

/// Wait until a job is over.
///
/// Answers 200 as soon as it is, and 202 with the job as it is when the time is up: ask again. Waiting changes nothing.
#[utoipa::path(
    get, path = "/v1/jobs/{id}/wait", tag = "jobs", security(("token" = ["read"])),
    params(("id" = String, Path, description = "The job's id"), HowLong),
    responses(
        (status = 200, description = "The job is over", body = JobDocument),
        (status = 202, description = "It is not over yet", body = JobDocument),
        (status = "4XX", description = "No answer", body = Problem, content_type = "application/problem+json"),
        (status = "5XX", description = "No answer", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn wait_for_job(
    State(app): State<App>,
    Id(id): Id,
    Asked(how_long): Asked<HowLong>,
) -> Result<Response, Problem> {
    let within = within(&how_long)?;
    let _permit = permit(&app)?;
    let mut phase = app.phase.clone();
    let waited = tokio::select! {
        waited = app.client.wait(&id, within) => waited,
        _ = phase.wait_for(|phase| *phase > Phase::Serving) => {
            return Err(Fault::Unavailable.because("the gateway stops: wait again, elsewhere or a little later"));
        }
    };
    match waited {
        Ok(view) => Ok(Answer(view).into_response()),
        Err(WaitError::TimedOut { last: Some(view), .. }) => {
            Ok((StatusCode::ACCEPTED, Answer(*view)).into_response())
        }
        Err(WaitError::TimedOut { last: None, .. }) => {
            let view = app.client.get(&id).await?.ok_or(Error::NotFound(id))?;
            let status = if view.state.is_terminal() { StatusCode::OK } else { StatusCode::ACCEPTED };
            Ok((status, Answer(view)).into_response())
        }
        Err(WaitError::Client(error)) => Err(error.into()),
    }
}
