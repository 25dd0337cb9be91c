//! `job explain`.

use bellwether::JobId;

use super::super::Global;
use super::super::exit::{Failure, LibraryError};
use super::super::output::Output;
use super::{documents, is_json};
use bellwether_documents::ExplanationDocument;

pub(super) async fn run(global: &Global, output: Output, ids: &[JobId]) -> Result<(), Failure> {
    let client = global.reader().await?;
    let (mut explained, mut wrong) = (Vec::new(), Vec::new());
    for id in ids {
        match client.explain(id).await {
            Ok(explanation) => explained.push(explanation),
            Err(error) => wrong.push(error.report()),
        }
    }
    client.close().await;
    if is_json(output) {
        documents(
            output,
            ids.len() == 1,
            &explained.iter().map(ExplanationDocument::from).collect::<Vec<_>>(),
        )?;
    } else if !explained.is_empty() {
        let rows = explained.iter().map(|of| [of.id.to_string(), of.state.to_string(), of.cause.to_string()]);
        output.rows(["ID", "STATE", "WHY"], rows.collect())?;
    }
    Failure::all(wrong)
}
