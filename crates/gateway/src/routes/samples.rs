//! `GET /v1/samples`.

use axum::Json as Answer;
use axum::extract::State;
use bellwether::DurationText;
use serde::Serialize;
use utoipa::ToSchema;

use crate::samples::{EVERY, OldestQueued, Sample};
use crate::state::App;

/// The samples of the last hour.
#[derive(Serialize, ToSchema)]
#[schema(as = Samples)]
pub(super) struct SamplesDocument {
    /// Time between two samples.
    interval: DurationText,
    /// The samples, oldest first.
    samples: Vec<Sample>,
    /// The job that had waited longest for a worker at the last sample; null if none waited.
    #[schema(required)]
    oldest_queued: Option<OldestQueued>,
}

/// Show samples of the last hour: numbers of jobs, workers and slots, and rates.
///
/// They are those of the gateway that answers, since its start. While ZooKeeper does not answer there are none.
#[utoipa::path(
    get, path = "/v1/samples", tag = "cluster", security(("token" = ["read"])),
    responses(
        (status = 200, description = "The samples, oldest first", body = SamplesDocument),
    )
)]
pub(super) async fn list_samples(State(app): State<App>) -> Answer<SamplesDocument> {
    let (samples, oldest_queued) = (app.samples.list(), app.samples.oldest_queued());
    Answer(SamplesDocument { interval: DurationText(EVERY), samples, oldest_queued })
}
