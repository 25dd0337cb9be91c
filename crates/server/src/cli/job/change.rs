//! `job cancel` and `job retry`.

use bellwether::client::{Cancelled, Error, Retried};
use bellwether::{Client, JobId, JobView, State};
use futures::{StreamExt, stream};
use serde::Serialize;

use super::super::Global;
use super::super::exit::{Failure, Kind, LibraryError};
use super::super::output::Output;
use super::{documents, is_json, not_found};
use bellwether_documents::JobDocument;

/// How many jobs are changed concurrently.
const AT_ONCE: usize = 32;

/// The outcome for a job, and the current job if it could be read.
#[derive(Serialize)]
struct Changed {
    outcome: &'static str,
    #[serde(flatten)]
    now: Now,
}

/// Has the job's id in either case.
#[derive(Serialize)]
#[serde(untagged)]
enum Now {
    Read(Box<JobDocument>),
    Unread { id: String },
}

impl Now {
    fn of(id: &JobId, view: Option<&JobView>) -> Self {
        view.map_or_else(|| Self::Unread { id: id.to_string() }, |view| Self::Read(Box::new(view.into())))
    }
}

/// The outcome as a word for scripts, and the failure if there is one.
struct Done {
    outcome: &'static str,
    wrong: Option<(Kind, String)>,
}

pub(super) async fn cancel(global: &Global, output: Output, ids: &[JobId]) -> Result<(), Failure> {
    change(global, output, ids, async |client, id| {
        let cancelled = client.cancel(id).await?;
        let wrong = match cancelled {
            Cancelled::AlreadyTerminal(state) if state != State::Cancelled => {
                Some((Kind::Failed, format!("job {id} is {state} already: it cannot be cancelled")))
            }
            Cancelled::Cancelled | Cancelled::Requested(_) | Cancelled::AlreadyTerminal(_) => None,
        };
        Ok(Done { outcome: cancelled.as_str(), wrong })
    })
    .await
}

pub(super) async fn retry(global: &Global, output: Output, ids: &[JobId]) -> Result<(), Failure> {
    change(global, output, ids, async |client, id| {
        let retried = client.retry(id).await?;
        let kept = || format!("job {id} succeeded: it keeps its result and is not run again");
        let wrong = (retried == Retried::Succeeded).then(|| (Kind::Failed, kept()));
        Ok(Done { outcome: retried.as_str(), wrong })
    })
    .await
}

async fn change(
    global: &Global,
    output: Output,
    ids: &[JobId],
    change: impl AsyncFn(&Client, &JobId) -> Result<Done, Error>,
) -> Result<(), Failure> {
    let client = global.reader().await?;
    let (mut changed, mut wrong) = (Vec::new(), Vec::new());
    let changes = ids.iter().map(|id| {
        let (client, change) = (&client, &change);
        async move { (id, change(client, id).await) }
    });
    let done = stream::iter(changes).buffered(AT_ONCE).collect::<Vec<_>>().await;
    let read = client.get_many(ids).await;
    client.close().await;
    // The jobs are already changed, so the outcomes are printed even if this read fails.
    let views = read.unwrap_or_else(|error| {
        wrong.push(error.report());
        Vec::new()
    });
    let read = !views.is_empty();
    let mut views = views.into_iter();
    for (id, done) in done {
        let view = views.next().flatten();
        match done {
            Ok(done) => {
                wrong.extend(done.wrong);
                if view.is_none() && read {
                    wrong.push(not_found(id));
                }
                changed.push((id, done.outcome, view));
            }
            Err(error) => wrong.push(error.report()),
        }
    }
    if is_json(output) {
        let changed = changed
            .iter()
            .map(|(id, outcome, view)| Changed { outcome, now: Now::of(id, view.as_ref()) })
            .collect::<Vec<_>>();
        documents(output, ids.len() == 1, &changed)?;
    } else if !changed.is_empty() {
        let rows = changed.iter().map(|(id, outcome, view)| {
            let state = view.as_ref().map_or("unknown", |view| view.state.as_str());
            [id.to_string(), outcome.replace('_', " "), state.to_owned()]
        });
        output.rows(["ID", "OUTCOME", "STATE"], rows.collect())?;
    }
    Failure::all(wrong)
}
