//! `GET /v1/alerts`.

use axum::Json as Answer;
use axum::extract::State;
use bellwether::InstantText;
use serde::Serialize;
use tokio::time::Instant;
use utoipa::ToSchema;

use crate::alerts::Alert;
use crate::state::App;

/// The problems of the cluster.
#[derive(Serialize, ToSchema)]
#[schema(as = Alerts)]
pub(super) struct AlertsDocument {
    /// When the conditions were evaluated, by ZooKeeper's clock; null before the first time.
    #[schema(required)]
    evaluated_at: Option<InstantText>,
    /// The conditions that hold, the critical ones first.
    alerts: Vec<Alert>,
}

/// List the problems of the cluster.
///
/// Each gateway evaluates the conditions every ten seconds from the samples. An alert with the name of an alert of Prometheus means
/// the same. Alerts that need the metrics of nodes are missing: use Prometheus.
#[utoipa::path(
    get, path = "/v1/alerts", tag = "cluster", security(("token" = ["read"])),
    responses(
        (status = 200, description = "The alerts", body = AlertsDocument),
    )
)]
pub(super) async fn list_alerts(State(app): State<App>) -> Answer<AlertsDocument> {
    let (evaluated_at, alerts) = app.samples.alerts(Instant::now());
    Answer(AlertsDocument { evaluated_at: evaluated_at.map(InstantText), alerts })
}
