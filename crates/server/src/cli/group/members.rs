//! `group members`.

use bellwether::{GroupId, JobView, Untyped};
use clap::Args;

use super::super::Global;
use super::super::exit::Failure;
use super::super::output::{Format, Output, without_payloads};
use bellwether_documents::{Limit, MemberDocument, MemberQuery};

/// Jobs read by one call.
const PAGE: usize = 500;

#[derive(Debug, Args)]
pub(crate) struct Members {
    /// Id of the group.
    group: GroupId,
    #[command(flatten)]
    query: MemberQuery,
}

pub(super) async fn run(global: &Global, output: Output, members: Members) -> Result<(), Failure> {
    let Members { group, query: MemberQuery { first, limit: Limit(limit), payloads } } = members;
    let client = global.reader().await?;
    let mut reader = client.group_members::<Untyped>(&group).first(first);
    let (mut numbers, mut ids, mut next) = (Vec::new(), Vec::new(), None);
    while let Some(member) = reader.next().await? {
        if ids.len() == limit {
            next = Some(member.number);
            break;
        }
        numbers.push(member.number);
        ids.push(member.id);
    }
    let mut jobs = Vec::new();
    for ids in ids.chunks(PAGE) {
        jobs.extend(client.get_many(ids).await?);
    }
    client.close().await;
    if !payloads {
        jobs.iter_mut().flatten().for_each(without_payloads);
    }
    let members = numbers.iter().zip(&ids).zip(&jobs);
    match output.format {
        Format::Json => {
            let documents = members.map(|((number, id), job)| MemberDocument::new(*number, id, job.as_ref()));
            output.json(&documents.collect::<Vec<_>>())?;
        }
        Format::Table => {
            let rows = members.map(|((number, id), job)| {
                let field = |of: fn(&JobView) -> String| job.as_ref().map_or_else(|| "-".to_owned(), of);
                let state = job.as_ref().map_or_else(|| "removed".to_owned(), |job| job.state.to_string());
                [
                    number.to_string(),
                    id.to_string(),
                    state,
                    field(|job| job.attempt.to_string()),
                    field(|job| job.error.clone().unwrap_or_default()),
                ]
            });
            output.rows(["NUMBER", "ID", "STATE", "ATTEMPT", "ERROR"], rows.collect())?;
        }
    }
    if let Some(next) = next.filter(|_| !global.quiet) {
        eprintln!("bellwether: there are further members: --first {next} shows them");
    }
    Ok(())
}
