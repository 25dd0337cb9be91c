//! `/v1/kinds`.

use axum::Extension;
use axum::Json as Answer;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use utoipa::ToSchema;

use crate::extract::KindName;
use crate::layers::{AuditNote, Caller};
use crate::problem::Problem;
use crate::state::App;
use bellwether_documents::KindDocument;

/// The outcome of a change.
#[derive(Serialize, ToSchema)]
pub(super) struct KindChanged {
    /// The kind.
    kind: String,
    /// `paused` or `already_paused`; `resumed` or `not_paused`.
    outcome: &'static str,
}

impl IntoResponse for KindChanged {
    fn into_response(self) -> Response {
        let told = AuditNote(format!("kind {} {}", self.kind, self.outcome));
        let mut answer = Answer(self).into_response();
        answer.extensions_mut().insert(told);
        answer
    }
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
/// request is safe.
#[utoipa::path(
    post, path = "/v1/kinds/{kind}/pause", tag = "kinds", security(("token" = ["operate"])),
    params(("kind" = String, Path, description = "The kind")),
    responses(
        (status = 200, description = "The kind is paused", body = KindChanged),
    )
)]
pub(super) async fn pause_kind(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    KindName(kind): KindName,
) -> Result<KindChanged, Problem> {
    let done = app.client.pause_kind(&kind, &caller.author()).await?;
    let outcome = if done { "paused" } else { "already_paused" };
    Ok(KindChanged { kind: kind.to_string(), outcome })
}

/// Resume a kind: its jobs are assigned again.
#[utoipa::path(
    post, path = "/v1/kinds/{kind}/resume", tag = "kinds", security(("token" = ["operate"])),
    params(("kind" = String, Path, description = "The kind")),
    responses(
        (status = 200, description = "The kind is not paused", body = KindChanged),
    )
)]
pub(super) async fn resume_kind(
    State(app): State<App>,
    KindName(kind): KindName,
) -> Result<KindChanged, Problem> {
    let done = app.client.resume_kind(&kind).await?;
    let outcome = if done { "resumed" } else { "not_paused" };
    Ok(KindChanged { kind: kind.to_string(), outcome })
}
