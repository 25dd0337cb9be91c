//! `GET /v1/groups/{id}/members`.

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json as Answer};
use bellwether::{JobView, Untyped};
use serde::Serialize;
use utoipa::ToSchema;

use crate::extract::{GroupName, QueryParameters};
use crate::layers::{AuditNote, Caller};
use crate::limits::PAGE_BYTES;
use crate::problem::Problem;
use crate::state::App;
use bellwether_documents::{MemberDocument, MemberQuery};

/// Records that one read asks for: at most 3 MiB with payloads and results of 64 KiB.
const READ_AT_ONCE: usize = 25;

/// A page of members, and the start of the next page.
#[derive(Serialize, ToSchema)]
pub(super) struct MembersPage {
    /// The members, in the order of their numbers. Members that were never submitted are left out.
    members: Vec<MemberDocument>,
    /// Value of `first` for the next page; null after the last page.
    #[schema(required)]
    next: Option<u32>,
}

/// List the members of a group.
///
/// A page has about 1 MiB, so it may be short and still have a next page: continue until `next` is null.
#[utoipa::path(
    get, path = "/v1/groups/{id}/members", tag = "groups", security(("token" = ["read"])),
    params(("id" = String, Path, description = "The group's id"), MemberQuery),
    responses(
        (status = 200, description = "A page of members", body = MembersPage),
    )
)]
pub(super) async fn list_members(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    GroupName(id): GroupName,
    QueryParameters(which): QueryParameters<MemberQuery>,
) -> Result<Response, Problem> {
    let limit = which.limit.checked()?;
    let _turn = app.pages.next(&caller).await;
    let mut reader = app.client.group_members::<Untyped>(&id).first(which.first);
    let (mut numbers, mut ids, mut next) = (Vec::new(), Vec::new(), None);
    while let Some(member) = reader.next().await? {
        if ids.len() == limit {
            next = Some(member.number);
            break;
        }
        numbers.push(member.number);
        ids.push(member.id);
    }
    let (mut members, mut bytes) = (Vec::new(), 0);
    'page: for (numbers, ids) in numbers.chunks(READ_AT_ONCE).zip(ids.chunks(READ_AT_ONCE)) {
        let jobs = app.client.get_many(ids).await?;
        for ((number, id), mut job) in numbers.iter().zip(ids).zip(jobs) {
            if let Some(job) = job.as_mut().filter(|_| !which.payloads) {
                (job.payload, job.result) = (None, None);
            }
            bytes += job.as_ref().map_or(0, JobView::bytes);
            if bytes > PAGE_BYTES && !members.is_empty() {
                next = Some(*number);
                break 'page;
            }
            members.push(MemberDocument::new(*number, id, job.as_ref()));
        }
    }
    let note = which.payloads.then(|| AuditNote(format!("read payloads of {} jobs", members.len())));
    Ok((note, Answer(MembersPage { members, next })).into_response())
}
