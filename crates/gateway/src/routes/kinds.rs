//! `/v1/kinds`.

use axum::Extension;
use axum::Json as Answer;
use axum::extract::State;
use axum::response::{IntoResponse, Response};

use crate::extract::{Bounded, Json, KindName};
use crate::layers::{AuditNote, Caller};
use crate::limits::MAX_BODY;
use crate::problem::Problem;
use crate::state::App;
use bellwether_documents::{KindDocument, KindOutcomeDocument, NewPause};

impl Bounded for Option<NewPause> {
    const MAX_BYTES: usize = MAX_BODY;
}

fn told(outcome: KindOutcomeDocument) -> Response {
    let note = AuditNote(format!("kind {} {}", outcome.kind, outcome.outcome));
    (note, Answer(outcome)).into_response()
}

/// List the kinds that live workers serve, and the kinds that are paused.
#[utoipa::path(
    get, path = "/v1/kinds", tag = "kinds", security(("token" = ["read"])),
    responses(
        (status = 200, description = "All kinds, by name", body = Vec<KindDocument>),
    )
)]
pub(super) async fn list_kinds(State(app): State<App>) -> Result<Answer<Vec<KindDocument>>, Problem> {
    Ok(Answer(app.client.kinds().await?.iter().map(Into::into).collect()))
}

/// Pause a kind.
///
/// Its jobs are not assigned until the kind is resumed. Running jobs continue, and jobs can be submitted. Repeating the
/// request is safe; the note of the first request is kept.
#[utoipa::path(
    post, path = "/v1/kinds/{kind}/pause", tag = "kinds", security(("token" = ["operate"])),
    params(("kind" = String, Path, description = "The kind")), request_body = Option<NewPause>,
    responses(
        (status = 200, description = "The kind is paused", body = KindOutcomeDocument),
    )
)]
pub(super) async fn pause_kind(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    KindName(kind): KindName,
    pause: Option<Json<Option<NewPause>>>,
) -> Result<Response, Problem> {
    let NewPause { note } = pause.and_then(|Json(pause)| pause).unwrap_or_default();
    let client = app.client.on_behalf_of(&caller.author());
    let done = client.pause_kind(&kind, note.as_deref().unwrap_or_default()).await?;
    Ok(told(KindOutcomeDocument::paused(&kind, done)))
}

/// Resume a kind: its jobs are assigned again.
#[utoipa::path(
    post, path = "/v1/kinds/{kind}/resume", tag = "kinds", security(("token" = ["operate"])),
    params(("kind" = String, Path, description = "The kind")),
    responses(
        (status = 200, description = "The kind is not paused", body = KindOutcomeDocument),
    )
)]
pub(super) async fn resume_kind(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    KindName(kind): KindName,
) -> Result<Response, Problem> {
    let done = app.client.on_behalf_of(&caller.author()).resume_kind(&kind).await?;
    Ok(told(KindOutcomeDocument::resumed(&kind, done)))
}
