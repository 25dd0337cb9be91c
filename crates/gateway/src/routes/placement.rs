//! `/v1/placement`, how the leader chooses workers.

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json as Answer};
use bellwether::placement::StrategyName;

use crate::extract::{Bounded, Json};
use crate::layers::{AuditNote, Caller};
use crate::limits::MAX_BODY;
use crate::problem::Problem;
use crate::state::App;
use bellwether_documents::{PlacementChange, PlacementDocument};

impl Bounded for PlacementChange {
    const MAX_BYTES: usize = MAX_BODY;
}

/// Show the placement strategy.
#[utoipa::path(
    get, path = "/v1/placement", tag = "placement", security(("token" = ["read"])),
    responses(
        (status = 200, description = "The placement strategy", body = PlacementDocument),
    )
)]
pub(super) async fn show_placement(State(app): State<App>) -> Result<Answer<PlacementDocument>, Problem> {
    Ok(Answer(PlacementDocument::new(app.client.placement_strategy().await?.as_ref())))
}

/// Set the placement strategy.
///
/// Applies to the whole namespace; the leader follows immediately. A leader that has no strategy of this name uses
/// least-loaded. Repeating the request is safe.
#[utoipa::path(
    patch, path = "/v1/placement", tag = "placement", security(("token" = ["admin"])),
    request_body = PlacementChange,
    responses(
        (status = 200, description = "The placement strategy as it is now", body = PlacementDocument),
    )
)]
pub(super) async fn set_placement(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Json(change): Json<PlacementChange>,
) -> Result<Response, Problem> {
    let strategy = StrategyName::new(change.strategy)?;
    let set = app.client.on_behalf_of(&caller.author()).set_placement_strategy(strategy.clone()).await?;
    let note = AuditNote(format!("placement strategy set to {strategy}"));
    Ok((note, Answer(PlacementDocument::new(Some(&set)))).into_response())
}
