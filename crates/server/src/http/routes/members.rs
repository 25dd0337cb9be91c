//! `GET /v1/groups/{id}/members`.

use axum::Json as Answer;
use axum::extract::State;
use bellwether::Untyped;
use bellwether::client::MAX_PAGE;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::document::MemberDocument;
use crate::http::extract::{GroupName, QueryParameters};
use crate::http::problem::{Fault, Problem};
use crate::http::state::App;

/// Page of members.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct WhichMembers {
    /// Number of the first member of the page; default 0.
    #[serde(default)]
    from: u32,
    /// Maximum number of members; default 100.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
}

/// A page of members, and the start of the next page.
#[derive(Serialize, ToSchema)]
pub(super) struct MembersPage {
    /// The members, in the order of their numbers. Members that were never submitted are left out.
    members: Vec<MemberDocument>,
    /// Value of `from` for the next page; null after the last page.
    #[schema(required)]
    next: Option<u32>,
}

/// List the members of a group.
#[utoipa::path(
    get, path = "/v1/groups/{id}/members", tag = "groups", security(("token" = ["read"])),
    params(("id" = String, Path, description = "The group's id"), WhichMembers),
    responses(
        (status = 200, description = "A page of members", body = MembersPage),
        (status = "4XX", description = "The request failed", body = Problem, content_type = "application/problem+json"),
        (status = "5XX", description = "The request failed", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn list_members(
    State(app): State<App>,
    GroupName(id): GroupName,
    QueryParameters(which): QueryParameters<WhichMembers>,
) -> Result<Answer<MembersPage>, Problem> {
    let limit = which.limit.unwrap_or(100);
    if !(1..=MAX_PAGE).contains(&limit) {
        return Err(Fault::Invalid.because(format!("limit must be 1 to {MAX_PAGE}, not {limit}")));
    }
    let mut reader = app.client.group_members::<Untyped>(&id).starting_at(which.from);
    let (mut numbers, mut ids, mut next) = (Vec::new(), Vec::new(), None);
    while let Some(member) = reader.next().await? {
        if ids.len() == limit {
            next = Some(member.number);
            break;
        }
        numbers.push(member.number);
        ids.push(member.id);
    }
    let jobs = app.client.get_many(&ids).await?;
    let members = numbers
        .into_iter()
        .zip(ids)
        .zip(jobs)
        .map(|((number, id), job)| MemberDocument::new(number, &id, job.as_ref()));
    Ok(Answer(MembersPage { members: members.collect(), next }))
}
