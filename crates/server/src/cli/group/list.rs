//! `group list`.

use bellwether::client::{GroupSummary, rfc3339};
use bellwether_documents::{GroupQuery, GroupSummaryDocument};

use super::super::exit::Failure;
use super::super::output::{Format, Output};
use super::super::{Global, pages};

pub(super) async fn run(global: &Global, output: Output, query: GroupQuery) -> Result<(), Failure> {
    let client = global.reader().await?;
    let (stage, limit) = (query.stage, query.limit.0);
    let page = async |after: Option<_>, size| client.list_groups(stage, after.as_ref(), size).await;
    let (groups, more) = pages::first(limit, page).await?;
    client.close().await;
    match output.format {
        Format::Json => output.json(&groups.iter().map(GroupSummaryDocument::from).collect::<Vec<_>>())?,
        Format::Table => {
            output.rows(
                ["ID", "KIND", "STAGE", "TOTAL", "CREATED", "DONE"],
                groups.iter().map(row).collect(),
            )?;
        }
    }
    if more {
        pages::tell_more(global, "groups", limit);
    }
    Ok(())
}

fn row(group: &GroupSummary) -> [String; 6] {
    let Some(record) = &group.record else {
        let [kind, total, created, done] = [const { String::new() }; 4];
        return [group.id.to_string(), kind, "unreadable".to_owned(), total, created, done];
    };
    [
        group.id.to_string(),
        record.kind.to_string(),
        record.stage.to_string(),
        record.total.map_or_else(|| "?".to_owned(), |total| total.to_string()),
        rfc3339(record.created_at),
        record.done_at.map(rfc3339).unwrap_or_default(),
    ]
}
