//! `job show` and `job wait`.

use bellwether::client::{JobHandle, PastAttemptView, WaitError, WorkerView, rfc3339};
use bellwether::{Client, JobId, JobView};
use clap::Args;

use super::super::Global;
use super::super::exit::{Failure, Kind, LibraryError};
use super::super::output::{Output, rough};
use super::{Ids, ended, is_json, jobs, not_found, table};

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
            attempts(output, &view.attempts)?;
        }
    }
    Failure::all(wrong)
}

/// Prints the closed attempts of a job, if there are any.
fn attempts(output: Output, closed: &[PastAttemptView]) -> Result<(), Failure> {
    if closed.is_empty() {
        return Ok(());
    }
    let row = |past: &PastAttemptView| {
        [
            past.generation.to_string(),
            past.attempt.to_string(),
            past.outcome.to_string(),
            rfc3339(past.ended_at),
            past.run_time().map(rough).unwrap_or_default(),
            past.worker.to_string(),
            past.error.clone().unwrap_or_default(),
        ]
    };
    output.text("")?;
    output.rows(
        ["GENERATION", "ATTEMPT", "OUTCOME", "ENDED", "RUN TIME", "WORKER", "ERROR"],
        closed.iter().map(row).collect(),
    )
}

/// `job wait`.
#[derive(Debug, Args)]
pub(crate) struct Wait {
    #[command(flatten)]
    jobs: Ids,
    /// Generation to wait for, as returned by a submission or a retry; a later one also counts. Needs one id [default: any].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    generation: Option<u32>,
}

pub(super) async fn wait(global: &Global, output: Output, wait: &Wait) -> Result<(), Failure> {
    let ids = &wait.jobs.ids;
    let of_one = match (wait.generation, ids.as_slice()) {
        (Some(generation), [id]) => Some((id, generation)),
        (Some(_), _) => return Err(Failure::usage("--generation needs exactly one id".to_owned())),
        (None, _) => None,
    };
    let client = global.reader().await?;
    let bar = global.progress("waiting", ids.len());
    let answers = match of_one {
        Some((id, generation)) => vec![client.wait_for(id, generation, global.deadline).await],
        None => client.wait_many(ids, global.deadline, |over| bar.set_position(over as u64)).await,
    };
    bar.finish_and_clear();
    let (views, wrong) = told(&client, answers).await;
    client.close().await;
    if is_json(output) {
        jobs(output, ids.len() == 1, &views)?;
    } else if !views.is_empty() {
        table(output, &views)?;
    }
    Failure::all(wrong)
}

/// Waits up to the timeout for submitted jobs. Returns the last known view of each job, and the failures.
pub(super) async fn wait_all(
    global: &Global,
    client: &Client,
    handles: &[JobHandle],
) -> (Vec<JobView>, Vec<(Kind, String)>) {
    let bar = global.progress("waiting", handles.len());
    let progress = |over| bar.set_position(over as u64);
    let answers = client.wait_for_many(handles, global.deadline, progress).await;
    bar.finish_and_clear();
    told(client, answers).await
}

/// Returns the last known view of each job, with the nodes of ended jobs, and the failures.
async fn told(
    client: &Client,
    answers: Vec<Result<JobView, WaitError>>,
) -> (Vec<JobView>, Vec<(Kind, String)>) {
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
                wrong.push(error.report());
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
        tracing::debug!(%error, "the command could not read the workers: it shows jobs without their nodes");
        Vec::new()
    })
}
