//! The routes, one file per resource, and the OpenAPI document that is generated from them.

mod alerts;
mod audit;
mod batch;
mod caller;
mod change;
mod cluster;
mod console;
mod docs;
mod events;
mod failures;
mod groups;
mod health;
mod kind_statistics;
mod kinds;
mod lanes;
mod list;
mod members;
mod metrics;
mod pages;
mod placement;
mod remote_workers;
mod retention;
mod samples;
mod schedules;
mod show;
mod stored;
mod submit;
mod ticks;
mod wait;
mod worker_jobs;
mod workers;

use axum::Router;
use axum::middleware::from_fn_with_state;
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityScheme};
use utoipa::openapi::{Components, Info, License, OpenApi, OpenApiBuilder};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::layers::{self, Layers, Operations};
use super::state::App;

pub(super) use docs::is_docs;

/// Limited separately from other requests.
pub(super) const WAIT: &str = "/v1/jobs/{id}/wait";
/// Limited separately from other requests.
pub(super) const WAIT_GROUP: &str = "/v1/groups/{id}/wait";
/// Limited separately from other requests.
pub(super) const EVENTS: &str = "/v1/events";

/// Routes that show payloads, results or checkpoints, besides the long poll.
pub(super) const DATA: [&str; 6] = [
    "/v1/jobs/{id}",
    "/v1/jobs/{id}/payload",
    "/v1/jobs/{id}/result",
    "/v1/jobs/{id}/checkpoint",
    "/v1/schedules/{id}",
    "/v1/schedules/{id}/payload",
];

/// Limited separately from other requests, and not audited.
pub(super) const POLL: &str = "/v1/remote-workers/{key}/poll";
/// Not audited.
pub(super) const HEARTBEAT: &str = "/v1/remote-workers/{key}/heartbeat";

/// Whether a path needs no token. The console and the description of the API are not secret, because every copy of
/// this program contains them.
pub(super) fn is_open(path: &str) -> bool {
    console::serves(path) || docs::serves(path)
}

/// The router of all paths.
pub(super) fn router(app: App) -> Router {
    let (router, document) = described().split_for_parts();
    let operations = Operations::of_document(&document);
    let layers = Layers { app: app.clone(), operations };
    router
        .merge(docs::router(&document))
        .merge(console::router())
        .with_state(app)
        .layer(from_fn_with_state(layers, layers::pass))
}

/// The OpenAPI 3.1 document of the gateway's API.
#[must_use]
pub fn openapi() -> serde_json::Value {
    serde_json::to_value(described().into_openapi()).expect("the document is JSON")
}

fn described() -> OpenApiRouter<App> {
    let mut described = routes();
    let document = described.get_openapi_mut();
    failures::describe(document);
    described
}

fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::with_openapi(about())
        .routes(routes!(submit::submit_job, list::list_jobs))
        .routes(routes!(batch::submit_batch))
        .routes(routes!(show::show_job))
        .routes(routes!(show::explain_job))
        .routes(routes!(stored::show_payload))
        .routes(routes!(stored::show_result))
        .routes(routes!(stored::show_checkpoint))
        .routes(routes!(wait::wait_for_job))
        .routes(routes!(change::cancel_job))
        .routes(routes!(change::retry_job))
        .routes(routes!(groups::make_group, groups::list_groups))
        .routes(routes!(groups::show_group))
        .routes(routes!(groups::wait_for_group))
        .routes(routes!(groups::abandon_group))
        .routes(routes!(groups::submit_members, members::list_members))
        .routes(routes!(events::follow_events))
        .routes(routes!(schedules::list_schedules, schedules::add_schedule))
        .routes(routes!(schedules::show_schedule, schedules::change_schedule, schedules::remove_schedule))
        .routes(routes!(stored::show_schedule_payload))
        .routes(routes!(ticks::list_ticks))
        .routes(routes!(ticks::preview_ticks))
        .routes(routes!(schedules::pause_schedule))
        .routes(routes!(schedules::resume_schedule))
        .routes(routes!(schedules::trigger_schedule))
        .routes(routes!(kinds::list_kinds))
        .routes(routes!(lanes::list_lanes))
        .routes(routes!(kinds::pause_kind))
        .routes(routes!(kinds::resume_kind))
        .routes(routes!(workers::list_workers))
        .routes(routes!(workers::set_worker))
        .routes(routes!(workers::drain_worker))
        .routes(routes!(worker_jobs::list_worker_jobs))
        .routes(routes!(cluster::show_leader))
        .routes(routes!(cluster::list_candidates))
        .routes(routes!(cluster::show_cluster))
        .routes(routes!(alerts::list_alerts))
        .routes(routes!(kind_statistics::show_kind_statistics))
        .routes(routes!(samples::list_samples))
        .routes(routes!(caller::show_caller))
        .routes(routes!(audit::list_audit))
        .routes(routes!(placement::show_placement, placement::set_placement))
        .routes(routes!(retention::show_retention, retention::set_retention))
        .routes(routes!(retention::purge_jobs))
        .routes(routes!(
            remote_workers::register::register_remote_worker,
            remote_workers::leave::remove_remote_worker
        ))
        .routes(routes!(remote_workers::poll::poll_attempts))
        .routes(routes!(remote_workers::heartbeat::report_running))
        .routes(routes!(remote_workers::finish::finish_attempts))
        .routes(routes!(remote_workers::leave::drain_remote_worker))
        .routes(routes!(health::live))
        .routes(routes!(health::ready))
        .routes(routes!(metrics::scrape))
}

fn about() -> OpenApi {
    let mut info = Info::new("Bellwether", env!("CARGO_PKG_VERSION"));
    info.description = Some(ABOUT.to_owned());
    info.license = Some(License::new(env!("CARGO_PKG_LICENSE")));
    let mut components = Components::new();
    components.add_security_scheme("token", SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer)));
    OpenApiBuilder::new().info(info).components(Some(components)).build()
}

const ABOUT: &str = "A distributed job scheduler on Apache ZooKeeper that loses nothing it acknowledged.\n\n\
    Submitting a job with an `id` again is safe: the same id, kind and payload is the same job. \
    Errors are `application/problem+json`; programs evaluate `type`. 429 and 503 carry `Retry-After`. \
    If tokens are required, a caller sends one of the gateway's file, one of its OpenID Connect provider, or has a client certificate, \
    and the scope of an operation is the role that it needs: read, submit, operate or admin, of \
    which each includes the ones before it, or work, which permits only remote workers and which admin includes.";
