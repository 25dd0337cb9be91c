//! `/v1/ticks`, the next ticks of a rule, and the ticks of a schedule.

use std::time::SystemTime;

use axum::Json as Answer;
use axum::extract::State;

use crate::extract::{QueryParameters, SchedulePath, TwoQueryParameters};
use crate::problem::Problem;
use crate::state::App;
use bellwether::client::Rule;
use bellwether_documents::{NextTicksDocument, PreviewQuery, ScheduleTicksDocument, TickQuery};

/// Show the next ticks of a rule, before a schedule is added or changed.
#[utoipa::path(
    get, path = "/v1/ticks", tag = "schedules", security(("token" = ["read"])),
    params(Rule, PreviewQuery),
    responses(
        (status = 200, description = "The next ticks", body = NextTicksDocument),
    )
)]
pub(super) async fn preview_ticks(
    TwoQueryParameters(rule, which): TwoQueryParameters<Rule, PreviewQuery>,
) -> Result<Answer<NextTicksDocument>, Problem> {
    let ticks = which.ticks(&rule, SystemTime::now())?;
    Ok(Answer(NextTicksDocument::new(&ticks)))
}

/// Show the next and the last ticks of a schedule, with the jobs of the last ones.
#[utoipa::path(
    get, path = "/v1/schedules/{id}/ticks", tag = "schedules", security(("token" = ["read"])),
    params(("id" = String, Path, description = "Id of the schedule"), TickQuery),
    responses(
        (status = 200, description = "The ticks", body = ScheduleTicksDocument),
    )
)]
pub(super) async fn list_ticks(
    State(app): State<App>,
    SchedulePath(id): SchedulePath,
    QueryParameters(query): QueryParameters<TickQuery>,
) -> Result<Answer<ScheduleTicksDocument>, Problem> {
    let ticks = app.client.schedules().ticks(&id, query.limit.checked()?).await?;
    Ok(Answer((&ticks).into()))
}
