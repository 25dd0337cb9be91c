//! `GET /v1/lanes`.

use axum::Json as Answer;
use axum::extract::State;
use bellwether::client::{LaneCursor, MAX_PAGE};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::extract::QueryParameters;
use crate::problem::{Fault, Problem};
use crate::state::App;
use bellwether_documents::LaneDocument;

/// Page size.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct WhichLanes {
    /// Maximum number of lanes; default 100.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
    /// The `next` of the previous page, unchanged.
    after: Option<String>,
}

/// A page of lanes, and the start of the next page.
#[derive(Serialize, ToSchema)]
pub(super) struct LanesPage {
    /// The lanes, in no particular order.
    lanes: Vec<LaneDocument>,
    /// Value of `after` for the next page; null after the last page. A short or empty page may have a next page.
    #[schema(required)]
    next: Option<String>,
}

/// List the lanes that have open jobs.
#[utoipa::path(
    get, path = "/v1/lanes", tag = "lanes", security(("token" = ["read"])),
    params(WhichLanes),
    responses(
        (status = 200, description = "A page of lanes", body = LanesPage),
    )
)]
pub(super) async fn list_lanes(
    State(app): State<App>,
    QueryParameters(which): QueryParameters<WhichLanes>,
) -> Result<Answer<LanesPage>, Problem> {
    let limit = which.limit.unwrap_or(100);
    if !(1..=MAX_PAGE).contains(&limit) {
        return Err(Fault::Invalid.because(format!("limit must be 1 to {MAX_PAGE}, not {limit}")));
    }
    let after = which.after.map(|after| after.parse::<LaneCursor>()).transpose()?;
    let page = app.client.list_lanes(after.as_ref(), limit).await?;
    Ok(Answer(LanesPage {
        lanes: page.lanes.iter().map(LaneDocument::from).collect(),
        next: page.next.map(|next| next.to_string()),
    }))
}
