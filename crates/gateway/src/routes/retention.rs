//! `/v1/retention`, how long records are kept, and `/v1/purge`, which removes them earlier.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json as Answer};
use bellwether::metrics::HttpRefusal;
use tokio::time::timeout;

use crate::extract::{Bounded, Json};
use crate::layers::{AuditNote, Caller};
use crate::limits::{MAX_BATCH, MAX_BODY};
use crate::metrics::refused;
use crate::problem::{Fault, Problem};
use crate::state::App;
use bellwether::client::{Purge, Purged, RetentionChange};
use bellwether_documents::{PurgedDocument, RetentionDocument};

/// Time limit of a purge; its progress is returned. It is below the time limit of a request, whose error would not
/// contain the progress.
const PURGE_WITHIN: Duration = Duration::from_secs(15);

impl Bounded for RetentionChange {
    const MAX_BYTES: usize = MAX_BODY;
}

impl Bounded for Purge {
    const MAX_BYTES: usize = MAX_BODY;
}

/// Show how long records are kept.
///
/// Null if no retention is set; then nothing is removed.
#[utoipa::path(
    get, path = "/v1/retention", tag = "retention", security(("token" = ["read"])),
    responses(
        (status = 200, description = "The retention, or null", body = Option<RetentionDocument>),
    )
)]
pub(super) async fn show_retention(
    State(app): State<App>,
) -> Result<Answer<Option<RetentionDocument>>, Problem> {
    Ok(Answer(app.client.retention().await?.as_ref().map(Into::into)))
}

/// Set how long records are kept.
///
/// Applies to the whole namespace within seconds, including jobs that have already ended. Repeating the request is safe.
#[utoipa::path(
    patch, path = "/v1/retention", tag = "retention", security(("token" = ["admin"])),
    request_body = RetentionChange,
    responses(
        (status = 200, description = "The retention as it is now", body = RetentionDocument),
    )
)]
pub(super) async fn set_retention(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Json(change): Json<RetentionChange>,
) -> Result<Response, Problem> {
    let client = app.client.on_behalf_of(&caller.author());
    let set = client.change_retention(&change).await?;
    let note = AuditNote(format!("retention set to {:?}", set.value));
    Ok((note, Answer(RetentionDocument::from(&set))).into_response())
}

/// Remove records of ended jobs.
///
/// Their ids can be used again, and their results are deleted. Without `remove` the records are only counted. The
/// record of a job that was opened again in the meantime is kept. Repeating the request is safe and continues with the
/// remaining records.
#[utoipa::path(
    post, path = "/v1/purge", tag = "retention", security(("token" = ["admin"])),
    request_body = Purge,
    responses(
        (status = 200, description = "The outcome of the purge", body = PurgedDocument),
        (status = "5XX", description = "The outcome is unknown: records may have been removed", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn purge_jobs(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Json(purge): Json<Purge>,
) -> Result<Response, Problem> {
    let _permit = app.purges.try_acquire().map_err(|_| {
        refused(HttpRefusal::Purges);
        Fault::Saturated.because("another purge is running, and each reads all records: try again later")
    })?;
    if let Some(jobs) = purge.job_ids().filter(|jobs| !(1..=MAX_BATCH).contains(&jobs.len())) {
        return Err(Fault::Invalid.because(format!("give 1 to {MAX_BATCH} jobs, not {}", jobs.len())));
    }
    let so_far = Arc::new(Mutex::new(Purged::default()));
    let told = Arc::clone(&so_far);
    let note = move |done| *told.lock().unwrap_or_else(PoisonError::into_inner) = done;
    let client = app.client.on_behalf_of(&caller.author());
    let done = timeout(PURGE_WITHIN, client.purge(&purge, note)).await;
    let (done, complete) = match done {
        Ok(done) => (done?, true),
        Err(_) => (*so_far.lock().unwrap_or_else(PoisonError::into_inner), false),
    };
    let note = AuditNote(format!("{} records removed, complete {complete}", done.removed));
    Ok((note, Answer(PurgedDocument::new(&done, complete))).into_response())
}
