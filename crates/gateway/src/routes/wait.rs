//! `GET /v1/jobs/{id}/wait`: a long poll.

use std::num::NonZeroU32;
use std::time::Duration;

use axum::Json as Answer;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use bellwether::DurationText;
use serde::Deserialize;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};
use utoipa::{IntoParams, PartialSchema, ToSchema};

use crate::extract::{Id, QueryParameters};
use crate::limits::{DEFAULT_WAIT, MAX_WAIT};
use crate::problem::{Fault, Problem};
use crate::server::Phase;
use crate::state::App;
use bellwether::client::{Error, WaitError};
use bellwether_documents::JobDocument;

/// Every generation is at least this one.
const ANY_GENERATION: u32 = 0;

/// Timeout of a long poll.
#[derive(Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "DurationText")]
pub(super) struct WaitTimeout(pub(super) Duration);

impl Default for WaitTimeout {
    fn default() -> Self {
        Self(DEFAULT_WAIT)
    }
}

impl TryFrom<DurationText> for WaitTimeout {
    type Error = String;

    fn try_from(DurationText(timeout): DurationText) -> Result<Self, String> {
        if timeout <= MAX_WAIT {
            return Ok(Self(timeout));
        }
        Err(format!("must be at most {}: repeat the request to wait longer", DurationText(MAX_WAIT)))
    }
}

impl PartialSchema for WaitTimeout {
    fn schema() -> RefOr<Schema> {
        let text = format!("A duration, at most {}.", DurationText(MAX_WAIT));
        let schema = ObjectBuilder::new().schema_type(Type::String).description(Some(text));
        schema.default(Some(DurationText(DEFAULT_WAIT).to_string().into())).into()
    }
}

impl ToSchema for WaitTimeout {}

/// How long a group is waited for.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct GroupWaitQuery {
    /// Timeout.
    #[serde(default)]
    #[param(inline)]
    pub(super) timeout: WaitTimeout,
}

/// How long a job is waited for, and in which generation.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct WaitQuery {
    /// Timeout.
    #[serde(default)]
    #[param(inline)]
    timeout: WaitTimeout,
    /// Generation to wait for, as returned by a submission or a retry; a later one also counts. Default: any.
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
    let WaitQuery { timeout: WaitTimeout(within), generation } = query;
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
