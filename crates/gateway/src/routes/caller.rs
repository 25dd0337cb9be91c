//! `GET /v1/caller`.

use axum::{Extension, Json as Answer};
use serde::Serialize;
use utoipa::ToSchema;

use crate::layers::Caller;

/// The caller of a request.
#[derive(Serialize, ToSchema)]
#[schema(as = Caller)]
pub(super) struct CallerDocument {
    /// The name of the token or client certificate, `ISSUER#SUBJECT` for a token of an OpenID Connect provider, or `anonymous` if the
    /// gateway requires no tokens.
    name: String,
    /// `read`, `submit`, `operate` or `admin`, of which each includes the ones before it.
    role: String,
}

/// Show the caller's name and role.
///
/// A user interface can hide the operations that the role does not permit.
#[utoipa::path(
    get, path = "/v1/caller", tag = "access", security(("token" = ["read"])),
    responses(
        (status = 200, description = "The caller", body = CallerDocument),
    )
)]
pub(super) async fn show_caller(Extension(caller): Extension<Caller>) -> Answer<CallerDocument> {
    Answer(CallerDocument { name: caller.name.to_string(), role: caller.role.to_string() })
}
