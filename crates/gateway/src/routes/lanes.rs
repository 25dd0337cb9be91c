//! `GET /v1/lanes`.

use axum::extract::State;
use axum::{Extension, Json as Answer};
use serde::Serialize;
use utoipa::ToSchema;

use super::pages::page;
use crate::extract::QueryParameters;
use crate::layers::Caller;
use crate::problem::Problem;
use crate::state::App;
use bellwether_documents::{LaneDocument, PageQuery};

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
    params(PageQuery),
    responses(
        (status = 200, description = "A page of lanes", body = LanesPage),
    )
)]
pub(super) async fn list_lanes(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    QueryParameters(which): QueryParameters<PageQuery>,
) -> Result<Answer<LanesPage>, Problem> {
    let (limit, after) = page(which.limit, which.after.as_deref())?;
    let _turn = app.pages.next(&caller).await;
    let page = app.client.list_lanes(after.as_ref(), limit).await?;
    Ok(Answer(LanesPage {
        lanes: page.items.iter().map(LaneDocument::from).collect(),
        next: page.next.map(|next| next.to_string()),
    }))
}
