//! `bellwether job`.

mod change;
mod explain;
mod list;
mod purge;
mod show;
mod submit;

use bellwether::{JobId, JobView, State};
use clap::{Args, Subcommand};

use super::Global;
use super::exit::{Failure, Kind, Told};
use super::output::{Format, Output, short};

#[derive(Debug, Subcommand)]
pub(crate) enum Job {
    /// Submit a job, or many.
    ///
    /// Prints the id of each, or with --wait how each ended. A submission is acknowledged when a majority of the
    /// ZooKeeper servers has it on disk.
    ///
    /// JSON: an object, or with --count an array of them. Fields: id, kind, state, attempt, worker, node, result,
    /// error, waiting, waiting_for, cancel_requested, generation, failures, losses, priority, submitted_at, not_before,
    /// expires_at, finished_at, payload; duplicate, whether the job was there already, and
    /// accepted: new, same, other, or again. Payloads and results that are JSON
    /// are embedded as they are.
    Submit(Box<submit::Submit>),
    /// Show jobs: where they are in their life, and what they wait for.
    ///
    /// JSON: an object for one id, an array for several; the fields are those of `job submit`.
    Show(Ids),
    /// Explain why jobs are not running, in a sentence each.
    ///
    /// JSON: an object for one id, an array for several. Fields: id, state, why (a word), sentence, and what the sentence
    /// is made of, by that word: kind, tags, missing, by, since, workers, slots, not_before, until, failures, error,
    /// expired_at, lane, behind, status, worker, node, attempt, cancel_requested, note, finished_at.
    Explain(Ids),
    /// Wait until jobs are over, up to --timeout.
    ///
    /// Exit code 1 when one is dead or cancelled, 5 when one is not over in time. JSON as of `job show`.
    Wait(Ids),
    /// Cancel jobs: at once while they wait; running ones are asked to stop.
    ///
    /// JSON as of `job show`, and outcome: cancelled, requested, or already_terminal. When the jobs cannot be read
    /// afterwards, id and outcome only.
    Cancel(Ids),
    /// Queue dead or cancelled jobs again, or jobs that were set aside in quarantine.
    ///
    /// A job leaves quarantine when its record can be read by this build; it keeps its attempts and counts.
    ///
    /// JSON as of `job cancel`, with outcome: reopened, released (from quarantine), still_open, or succeeded.
    Retry(Ids),
    /// Remove the records of jobs that are over, before their retention ends: of dead ones, unless you say otherwise.
    ///
    /// Counts them, and removes them only with --yes. Their ids are free again. What ended within the last minute stays, and
    /// so does what belongs to a group, which goes as a whole.
    ///
    /// JSON: an object with matched, removed, young, and dry_run.
    Purge(purge::Purge),
    /// List jobs, in no particular order.
    ///
    /// JSON: an array; the fields are those of `job submit`.
    List(list::List),
}

#[derive(Debug, Args)]
pub(crate) struct Ids {
    /// The jobs.
    #[arg(required = true, value_name = "ID")]
    ids: Vec<JobId>,
}

pub(crate) async fn run(global: &Global, output: Output, command: Job) -> Result<(), Failure> {
    match command {
        Job::Submit(submit) => submit::run(global, output, *submit).await,
        Job::Show(Ids { ids }) => show::show(global, output, &ids).await,
        Job::Explain(Ids { ids }) => explain::run(global, output, &ids).await,
        Job::Wait(Ids { ids }) => show::wait(global, output, &ids).await,
        Job::Cancel(Ids { ids }) => change::cancel(global, output, &ids).await,
        Job::Retry(Ids { ids }) => change::retry(global, output, &ids).await,
        Job::Purge(purge) => purge::run(global, output, purge).await,
        Job::List(list) => list::run(global, output, list).await,
    }
}

/// As far as nothing is connected to.
#[cfg(any(test, fuzzing))]
pub(crate) fn fuzzed(command: Job) {
    match command {
        Job::Submit(submit) => submit::fuzzed(*submit),
        Job::Show(_)
        | Job::Explain(_)
        | Job::Wait(_)
        | Job::Cancel(_)
        | Job::Retry(_)
        | Job::Purge(_)
        | Job::List(_) => {}
    }
}

/// An object when one job was asked for, an array otherwise.
fn documents<T: serde::Serialize>(output: Output, one: bool, documents: &[T]) -> Result<(), Failure> {
    match documents {
        [document] if one => output.json(document),
        // There is nothing to say about the one job; stderr tells why.
        [] if one => Ok(()),
        all => output.json(all),
    }
}

/// The lines of `job wait` and `job list`.
fn table(output: Output, views: &[JobView]) -> Result<(), Failure> {
    const INFO: usize = 120;
    let rows = views.iter().map(|view| {
        let node = view.node.as_ref().map(ToString::to_string).unwrap_or_default();
        let how_far = view.how_far().filter(|_| view.state == State::Running);
        let info = match (&view.waiting, &view.result, how_far, &view.error) {
            (Some(waiting), _, _, _) => waiting.to_string(),
            (None, Some(result), _, _) => String::from_utf8_lossy(result.bytes()).into_owned(),
            (None, None, Some(how_far), _) => how_far,
            (None, None, None, Some(error)) => error.clone(),
            (None, None, None, None) => String::new(),
        };
        let kind = view.kind.as_ref().map(ToString::to_string).unwrap_or_default();
        [
            view.id.to_string(),
            kind,
            view.state.to_string(),
            view.attempt.to_string(),
            node,
            short(&info, INFO),
        ]
    });
    output.rows(["ID", "KIND", "STATE", "ATTEMPT", "NODE", "RESULT OR REASON"], rows.collect())
}

/// How a job that was waited for counts.
fn ended(view: &JobView) -> Option<(Kind, String)> {
    match view.state {
        State::Succeeded => None,
        State::Cancelled | State::Dead | State::Quarantined => {
            Some((Kind::Failed, format!("job {} is {}", view.id, view.status())))
        }
        State::Queued | State::Delayed | State::Running => {
            Some((Kind::TimedOut, format!("job {} is not over: {}", view.id, view.status())))
        }
    }
}

fn not_found(id: &JobId) -> (Kind, String) {
    bellwether::client::Error::NotFound(id.clone()).told()
}

fn is_json(output: Output) -> bool {
    output.format == Format::Json
}
