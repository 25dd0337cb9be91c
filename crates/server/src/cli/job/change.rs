//! `job cancel` and `job retry`.

use bellwether::client::Error;
use bellwether::{Client, JobId};
use futures::{StreamExt, stream};

use super::super::Global;
use super::super::exit::{Failure, Kind, LibraryError};
use super::super::output::{Output, spaced};
use super::{documents, is_json};
use bellwether_documents::{Invalid, JobOutcomeDocument};

/// How many jobs are changed concurrently.
const AT_ONCE: usize = 32;

pub(super) async fn cancel(global: &Global, output: Output, ids: &[JobId]) -> Result<(), Failure> {
    change(global, output, ids, async |client, id| {
        Ok(JobOutcomeDocument::cancelled(id, client.cancel(id).await?))
    })
    .await
}

pub(super) async fn retry(global: &Global, output: Output, ids: &[JobId]) -> Result<(), Failure> {
    change(global, output, ids, async |client, id| {
        Ok(JobOutcomeDocument::retried(id, client.retry(id).await?))
    })
    .await
}

async fn change(
    global: &Global,
    output: Output,
    ids: &[JobId],
    change: impl AsyncFn(&Client, &JobId) -> Result<Result<JobOutcomeDocument, Invalid>, Error>,
) -> Result<(), Failure> {
    let client = global.reader().await?;
    let changes = ids.iter().map(|id| change(&client, id));
    let done = stream::iter(changes).buffered(AT_ONCE).collect::<Vec<_>>().await;
    client.close().await;
    let (mut changed, mut wrong) = (Vec::new(), Vec::new());
    for outcome in done {
        match outcome {
            Ok(Ok(outcome)) => changed.push(outcome),
            Ok(Err(Invalid(reason))) => wrong.push((Kind::Failed, reason)),
            Err(error) => wrong.push(error.report()),
        }
    }
    if is_json(output) {
        documents(output, ids.len() == 1, &changed)?;
    } else if !changed.is_empty() {
        let rows = changed.into_iter().map(|outcome| [outcome.id, spaced(outcome.outcome)]);
        output.rows(["ID", "OUTCOME"], rows.collect())?;
    }
    Failure::all(wrong)
}
