//! `/v1/retention`, how long records are kept, and `/v1/purge`, which removes them earlier.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json as Answer};
use bellwether::metrics::HttpRefusal;
use bellwether::{DurationText, JobId, Kind};
use serde::{Deserialize, Serialize};
use tokio::time::timeout;
use utoipa::ToSchema;

use crate::extract::{Bounded, Json};
use crate::layers::{AuditNote, Caller};
use crate::limits::{MAX_BATCH, MAX_BODY};
use crate::metrics::refused;
use crate::problem::{Fault, Problem};
use crate::state::App;
use bellwether::client::{Purge, Purged};
use bellwether_documents::{DurationSchema, EndedWord, RetentionChange, RetentionDocument};

/// Time limit of a purge; its progress is returned. It is below the time limit of a request, whose error would not
/// contain the progress.
const PURGE_WITHIN: Duration = Duration::from_secs(15);

impl Bounded for RetentionChange {
    const MAX_BYTES: usize = MAX_BODY;
}

/// The records to remove.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NewPurge {
    /// Final state of the jobs. Default `dead`.
    #[schema(default = "dead")]
    state: Option<EndedWord>,
    /// Only jobs of this kind.
    #[schema(example = "sum", pattern = "^[A-Za-z0-9._-]{1,128}$")]
    kind: Option<String>,
    /// Only jobs that ended at least this long ago. Default 0s.
    #[schema(value_type = Option<DurationSchema>, default = "0s")]
    older_than: Option<DurationText>,
    /// Only these jobs, at most 1,000, in any final state; not together with `state`, `kind` or `older_than`.
    #[schema(max_items = 1000)]
    jobs: Option<Vec<String>>,
    /// Whether to remove the records. Otherwise they are only counted.
    #[serde(default)]
    remove: bool,
}

impl Bounded for NewPurge {
    const MAX_BYTES: usize = MAX_BODY;
}

/// The jobs of a purge.
enum Which {
    Selected(Purge),
    Jobs(Vec<JobId>),
}

impl Which {
    fn of(new: &NewPurge) -> Result<Self, Problem> {
        let kind = new.kind.as_deref().map(Kind::new).transpose()?;
        let Some(jobs) = &new.jobs else {
            let purge = Purge::of(new.state.unwrap_or_default().0).kind(kind);
            return Ok(Self::Selected(purge.older_than(new.older_than.map_or(Duration::ZERO, Into::into))));
        };
        if new.state.is_some() || kind.is_some() || new.older_than.is_some() {
            return Err(Fault::Invalid.because("give either jobs, or state, kind and older_than"));
        }
        if !(1..=MAX_BATCH).contains(&jobs.len()) {
            return Err(Fault::Invalid.because(format!("give 1 to {MAX_BATCH} jobs, not {}", jobs.len())));
        }
        Ok(Self::Jobs(jobs.iter().map(JobId::new).collect::<Result<_, _>>()?))
    }
}

/// The outcome of a purge.
#[derive(Serialize, ToSchema)]
#[schema(as = Purged)]
pub(super) struct PurgeAnswer {
    /// Matching records that were found.
    matched: u64,
    /// Records that were removed.
    removed: u64,
    /// Matching records that are kept because their jobs ended within the last minute.
    young: u64,
    /// Whether all records were read. Otherwise the time limit was reached: repeat the request to continue.
    complete: bool,
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
    let set = client.update_retention(|present| change.apply(present)).await?;
    let mut answer = Answer(RetentionDocument::from(&set)).into_response();
    answer.extensions_mut().insert(AuditNote(format!("retention set to {:?}", set.value)));
    Ok(answer)
}

/// Remove records of ended jobs.
///
/// Their ids can be used again, and their results are deleted. Without `remove` the records are only counted. The
/// record of a job that was opened again in the meantime is kept. Repeating the request is safe and continues with the
/// remaining records.
#[utoipa::path(
    post, path = "/v1/purge", tag = "retention", security(("token" = ["admin"])),
    request_body = NewPurge,
    responses(
        (status = 200, description = "The outcome of the purge", body = PurgeAnswer),
        (status = "5XX", description = "The outcome is unknown: records may have been removed", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn purge_jobs(
    State(app): State<App>,
    Json(new): Json<NewPurge>,
) -> Result<Response, Problem> {
    let _permit = app.purges.try_acquire().map_err(|_| {
        refused(HttpRefusal::Purges);
        Fault::Saturated.because("another purge is running, and each reads all records: try again later")
    })?;
    let which = Which::of(&new)?;
    let so_far = Arc::new(Mutex::new(Purged::default()));
    let told = Arc::clone(&so_far);
    let note = move |done| *told.lock().unwrap_or_else(PoisonError::into_inner) = done;
    let client = &app.client;
    let done = match (&which, new.remove) {
        (Which::Selected(purge), true) => timeout(PURGE_WITHIN, client.purge(purge, note)).await,
        (Which::Selected(purge), false) => timeout(PURGE_WITHIN, client.would_purge(purge, note)).await,
        (Which::Jobs(jobs), true) => timeout(PURGE_WITHIN, client.purge_jobs(jobs, note)).await,
        (Which::Jobs(jobs), false) => timeout(PURGE_WITHIN, client.would_purge_jobs(jobs, note)).await,
    };
    let (done, complete) = match done {
        Ok(done) => (done?, true),
        Err(_) => (*so_far.lock().unwrap_or_else(PoisonError::into_inner), false),
    };
    let Purged { matched, removed, young, .. } = done;
    let mut answer = Answer(PurgeAnswer { matched, removed, young, complete }).into_response();
    answer.extensions_mut().insert(AuditNote(format!("{removed} records removed, complete {complete}")));
    Ok(answer)
}
