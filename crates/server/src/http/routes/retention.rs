//! `/v1/retention`, how long records are kept, and `/v1/purge`, which removes them before that.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Json as Answer;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use bellwether::Kind;
use bellwether::Retention;
use bellwether::metrics as metric;
use metrics::counter;
use serde::{Deserialize, Serialize};
use tokio::time::timeout;
use utoipa::ToSchema;

use crate::http::extract::{Bounded, Json};
use crate::http::front::Told;
use crate::http::limits::MAX_BODY;
use crate::http::problem::{Fault, Problem};
use crate::http::state::App;
use bellwether::client::{Ended, Purge, Purged};

/// How long a purge may take; what it has done by then is told. Below a request's time, whose end would say less.
const PURGE_WITHIN: Duration = Duration::from_secs(15);

/// How long records of jobs that are over are kept.
#[derive(Serialize, ToSchema)]
#[schema(as = Retention)]
pub(super) struct RetentionDocument {
    /// Of jobs that succeeded, in milliseconds.
    succeeded_ms: u64,
    /// Of those that were cancelled.
    cancelled_ms: u64,
    /// Of those that are dead.
    dead_ms: u64,
    /// Most records of jobs that are over; beyond it the oldest go first.
    records: u32,
}

impl From<Retention> for RetentionDocument {
    fn from(Retention { succeeded, cancelled, dead, records }: Retention) -> Self {
        let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        Self {
            succeeded_ms: millis(succeeded),
            cancelled_ms: millis(cancelled),
            dead_ms: millis(dead),
            records,
        }
    }
}

/// What shall be otherwise. What is not given stays as it is.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RetentionChange {
    /// Of jobs that succeeded, in milliseconds: 60 s to 3,650 days.
    #[schema(minimum = 60000, maximum = 315360000000i64)]
    succeeded_ms: Option<u64>,
    /// Of those that were cancelled.
    #[schema(minimum = 60000, maximum = 315360000000i64)]
    cancelled_ms: Option<u64>,
    /// Of those that are dead.
    #[schema(minimum = 60000, maximum = 315360000000i64)]
    dead_ms: Option<u64>,
    /// Most records of jobs that are over.
    records: Option<u32>,
}

impl Bounded for RetentionChange {
    const MAX_BYTES: usize = MAX_BODY;
}

/// How a job ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = Ended)]
enum EndedName {
    /// With a result.
    Succeeded,
    /// By a client's wish.
    Cancelled,
    /// By its failures or its workers' losses.
    #[default]
    Dead,
}

impl From<EndedName> for Ended {
    fn from(name: EndedName) -> Self {
        match name {
            EndedName::Succeeded => Self::Succeeded,
            EndedName::Cancelled => Self::Cancelled,
            EndedName::Dead => Self::Dead,
        }
    }
}

/// Which records to remove.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NewPurge {
    /// Of jobs that ended so. Default `dead`.
    #[serde(default)]
    state: EndedName,
    /// Only of this kind.
    #[schema(example = "sum", pattern = "^[A-Za-z0-9._-]{1,128}$")]
    kind: Option<String>,
    /// Only of jobs that ended so many milliseconds ago. Default 0.
    #[serde(default)]
    #[schema(minimum = 0)]
    older_than_ms: u64,
    /// Whether to remove them. Without it they are only counted.
    #[serde(default)]
    remove: bool,
}

impl Bounded for NewPurge {
    const MAX_BYTES: usize = MAX_BODY;
}

/// What a purge has done.
#[derive(Serialize, ToSchema)]
#[schema(as = Purged)]
pub(super) struct PurgeAnswer {
    /// Records that it is about, as far as it came.
    matched: u64,
    /// How many of them were removed.
    removed: u64,
    /// Those that stay because they ended within the last minute.
    young: u64,
    /// Whether it went through everything. Otherwise its time was up: ask again, and it goes on with what is left.
    complete: bool,
}

/// Show how long records are kept.
///
/// Null when there is no setting, so that nothing is removed.
#[utoipa::path(
    get, path = "/v1/retention", tag = "retention", security(("token" = ["read"])),
    responses(
        (status = 200, description = "The setting, or null", body = Option<RetentionDocument>),
        (status = "4XX", description = "No answer", body = Problem, content_type = "application/problem+json"),
        (status = "5XX", description = "No answer", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn show_retention(
    State(app): State<App>,
) -> Result<Answer<Option<RetentionDocument>>, Problem> {
    Ok(Answer(app.client.retention().await?.map(Into::into)))
}

/// Set how long records are kept.
///
/// For the whole namespace, and within seconds, also for jobs that are over already. Asking again is safe.
#[utoipa::path(
    patch, path = "/v1/retention", tag = "retention", security(("token" = ["admin"])),
    request_body = RetentionChange,
    responses(
        (status = 200, description = "What holds now", body = RetentionDocument),
        (status = "4XX", description = "Nothing was set", body = Problem, content_type = "application/problem+json"),
        (status = "5XX", description = "Nothing was set, or unknown", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn set_retention(
    State(app): State<App>,
    Json(change): Json<RetentionChange>,
) -> Result<Response, Problem> {
    let RetentionChange { succeeded_ms, cancelled_ms, dead_ms, records } = change;
    let time = |given: Option<u64>, present| given.map_or(present, Duration::from_millis);
    let changed = |present: Retention| Retention {
        succeeded: time(succeeded_ms, present.succeeded),
        cancelled: time(cancelled_ms, present.cancelled),
        dead: time(dead_ms, present.dead),
        records: records.unwrap_or(present.records),
    };
    let set = app.client.update_retention(changed).await?;
    let mut answer = Answer(RetentionDocument::from(set)).into_response();
    answer.extensions_mut().insert(Told(format!("retention set to {set:?}")));
    Ok(answer)
}

/// Remove records of jobs that are over.
///
/// Their ids are free again, and their results gone. Without `remove` they are only counted. One that a job was opened from
/// again meanwhile stays. Asking again is safe, and goes on with what is left.
#[utoipa::path(
    post, path = "/v1/purge", tag = "retention", security(("token" = ["admin"])),
    request_body = NewPurge,
    responses(
        (status = 200, description = "What was done", body = PurgeAnswer),
        (status = "4XX", description = "Nothing was done", body = Problem, content_type = "application/problem+json"),
        (status = "5XX", description = "Some may have been removed, or none", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn purge_jobs(
    State(app): State<App>,
    Json(new): Json<NewPurge>,
) -> Result<Response, Problem> {
    let _permit = app.purges.try_acquire().map_err(|_| {
        counter!(metric::HTTP_REFUSED, "why" => "purges").increment(1);
        Fault::Saturated.because("another purge is under way here, and each goes through all records")
    })?;
    let kind = new.kind.map(Kind::new).transpose()?;
    let older_than = Duration::from_millis(new.older_than_ms);
    let purge = Purge { ended: new.state.into(), kind, older_than };
    let so_far = Arc::new(Mutex::new(Purged::default()));
    let told = Arc::clone(&so_far);
    let note = move |done| *told.lock().unwrap_or_else(PoisonError::into_inner) = done;
    let done = if new.remove {
        timeout(PURGE_WITHIN, app.client.purge(&purge, note)).await
    } else {
        timeout(PURGE_WITHIN, app.client.would_purge(&purge, note)).await
    };
    let (done, complete) = match done {
        Ok(done) => (done?, true),
        Err(_) => (*so_far.lock().unwrap_or_else(PoisonError::into_inner), false),
    };
    let Purged { buckets: _, matched, removed, young } = done;
    let mut answer = Answer(PurgeAnswer { matched, removed, young, complete }).into_response();
    answer.extensions_mut().insert(Told(format!("{removed} records removed, complete {complete}")));
    Ok(answer)
}
