//! `job show` and `job wait`.

use bellwether::client::{WaitError, WorkerView};
use bellwether::{Client, JobId, JobView};

use super::super::Global;
use super::super::exit::{Failure, Kind, Told};
use super::super::output::Output;
use super::{ended, is_json, jobs, not_found, table};

pub(super) async fn show(global: &Global, output: Output, ids: &[JobId]) -> Result<(), Failure> {
    let client = global.reader().await?;
    let found = client.get_many(ids).await?;
    client.close().await;
    let mut wrong = Vec::new();
    let mut views = Vec::new();
    for (id, view) in ids.iter().zip(found) {
        match view {
            Some(view) => views.push(view),
            None => wrong.push(not_found(id)),
        }
    }
    if is_json(output) {
        jobs(output, ids.len() == 1, &views)?;
    } else {
        for (at, view) in views.iter().enumerate() {
            if at > 0 {
                output.text("")?;
            }
            output.job(view)?;
        }
    }
    Failure::all(wrong)
}

pub(super) async fn wait(global: &Global, output: Output, ids: &[JobId]) -> Result<(), Failure> {
    let client = global.reader().await?;
    let (views, wrong) = wait_all(global, &client, ids).await;
    client.close().await;
    if is_json(output) {
        jobs(output, ids.len() == 1, &views)?;
    } else if !views.is_empty() {
        table(output, &views)?;
    }
    Failure::all(wrong)
}

/// Waits up to the timeout. Returns the last known view of each job, and the failures.
pub(super) async fn wait_all(
    global: &Global,
    client: &Client,
    ids: &[JobId],
) -> (Vec<JobView>, Vec<(Kind, String)>) {
    let bar = global.progress("waiting", ids.len());
    let answers = client.wait_many(ids, global.timeout, |over| bar.set_position(over as u64)).await;
    bar.finish_and_clear();
    let workers = workers(client).await;
    let node = |view: &JobView| {
        let worker = workers.iter().find(|worker| Some(worker.id) == view.worker)?;
        worker.info.as_ref().ok().map(|info| info.node.clone())
    };
    let (mut views, mut wrong) = (Vec::new(), Vec::new());
    for answer in answers {
        match answer {
            Ok(mut view) => {
                view.node = view.node.take().or_else(|| node(&view));
                wrong.extend(ended(&view));
                views.push(view);
            }
            Err(error) => {
                wrong.push(error.told());
                if let WaitError::TimedOut { last: Some(view), .. } = error {
                    views.push(*view);
                }
            }
        }
    }
    (views, wrong)
}

/// The live workers, by which the nodes of ended jobs are named. The command does not fail without them.
async fn workers(client: &Client) -> Vec<WorkerView> {
    client.workers().await.unwrap_or_else(|error| {
        tracing::debug!(%error, "could not read the workers: jobs are shown without their nodes");
        Vec::new()
    })
}
