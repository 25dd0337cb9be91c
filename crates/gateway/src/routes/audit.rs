//! `GET /v1/audit`.

use axum::Json as Answer;
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

use crate::audit_log::AuditEntry;
use crate::state::App;

/// The last requests that may have changed something.
#[derive(Serialize, ToSchema)]
pub(super) struct AuditLines {
    /// The lines, the latest first.
    lines: Vec<AuditEntry>,
}

/// List the last 500 requests to this gateway that may have changed something, the last 100 submissions and requests of remote workers,
/// and the last 100 requests that were refused.
///
/// Refused are requests without a valid token or role, from a foreign origin, or over the limits.
/// They are kept in memory until the gateway stops. The log of each gateway is the complete record.
#[utoipa::path(
    get, path = "/v1/audit", tag = "cluster", security(("token" = ["operate"])),
    responses(
        (status = 200, description = "The lines", body = AuditLines),
    )
)]
pub(super) async fn list_audit(State(app): State<App>) -> Answer<AuditLines> {
    Answer(AuditLines { lines: app.audit.list() })
}
