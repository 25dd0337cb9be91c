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
use super::exit::{Failure, Kind, LibraryError};
use super::output::{Format, Output, short};
use bellwether_documents::{JobDocument, JobOutcomeDocument, PurgedDocument, SubmittedDocument, json_fields};

#[derive(Debug, Subcommand)]
pub(crate) enum Job {
    /// Submit one or more jobs.
    ///
    /// Prints the id of each job, or with --wait its outcome. A submission is acknowledged when a majority of the
    /// ZooKeeper servers has it on disk.
    ///
    /// JSON: an object, or with --count an array; with --wait as for `job show`.
    #[command(after_long_help = json_fields::<SubmittedDocument>())]
    Submit(Box<submit::Submit>),
    /// Show jobs with their state and the reason for waiting.
    ///
    /// JSON: an object for one id, an array for several.
    #[command(after_long_help = json_fields::<JobDocument>())]
    Show(Ids),
    /// Explain why jobs are not running, in one sentence per job.
    ///
    /// JSON: an object for one id, an array for several. Fields: id, state, why (a word), sentence, and the values in the sentence.
    Explain(Ids),
    /// Wait until jobs have ended, up to --deadline.
    ///
    /// Exit code 1 if a job is dead or cancelled, 5 if a job has not ended in time. JSON as for `job show`.
    #[command(after_long_help = json_fields::<JobDocument>())]
    Wait(show::Wait),
    /// Cancel jobs: waiting jobs immediately, running jobs by asking their handlers to stop.
    ///
    /// JSON: an object for one id, an array for several. A job that has ended in another state is an error.
    #[command(after_long_help = json_fields::<JobOutcomeDocument>())]
    Cancel(Ids),
    /// Queue dead or cancelled jobs again, or release jobs from quarantine.
    ///
    /// A job is released from quarantine if this build can read its record. It keeps its attempts and counts.
    ///
    /// JSON: an object for one id, an array for several. A job that has succeeded is an error.
    #[command(after_long_help = json_fields::<JobOutcomeDocument>())]
    Retry(Ids),
    /// Remove the records of ended jobs before their retention is over, by default of dead jobs.
    ///
    /// Without --remove the records are only counted. The ids of removed jobs are free again. Jobs that ended within the
    /// last minute are kept, and so are the records of groups, which are removed only as a whole.
    ///
    /// JSON: an object; complete is always true.
    #[command(after_long_help = json_fields::<PurgedDocument>())]
    Purge(bellwether::client::Purge),
    /// List jobs.
    ///
    /// The table begins with the newest job. If more jobs match than --limit, it shows some of them. JSON is printed in no particular
    /// order.
    ///
    /// JSON: an array.
    #[command(after_long_help = json_fields::<JobDocument>())]
    List(list::List),
}

#[derive(Debug, Args)]
pub(crate) struct Ids {
    /// Ids of the jobs.
    #[arg(required = true, value_name = "ID")]
    ids: Vec<JobId>,
}

pub(crate) async fn run(global: &Global, output: Output, command: Job) -> Result<(), Failure> {
    match command {
        Job::Submit(submit) => submit::run(global, output, *submit).await,
        Job::Show(Ids { ids }) => show::show(global, output, &ids).await,
        Job::Explain(Ids { ids }) => explain::run(global, output, &ids).await,
        Job::Wait(wait) => show::wait(global, output, &wait).await,
        Job::Cancel(Ids { ids }) => change::cancel(global, output, &ids).await,
        Job::Retry(Ids { ids }) => change::retry(global, output, &ids).await,
        Job::Purge(purge) => purge::run(global, output, purge).await,
        Job::List(list) => list::run(global, output, list).await,
    }
}

/// Runs the part of a command that needs no connection.
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

/// Prints jobs as documents.
fn jobs(output: Output, one: bool, views: &[JobView]) -> Result<(), Failure> {
    documents(output, one, &views.iter().map(JobDocument::from).collect::<Vec<_>>())
}

/// Prints an object if one job was requested, otherwise an array.
fn documents<T: serde::Serialize>(output: Output, one: bool, documents: &[T]) -> Result<(), Failure> {
    match documents {
        [document] if one => output.json(document),
        // Nothing is known of the one job; stderr has the reason.
        [] if one => Ok(()),
        all => output.json(all),
    }
}

/// Prints the table of `job wait`, `job list` and `job submit --wait`.
fn table(output: Output, views: &[JobView]) -> Result<(), Failure> {
    const INFO: usize = 120;
    let rows = views.iter().map(|view| {
        let node = view.node.as_ref().map(ToString::to_string).unwrap_or_default();
        let progress = view.progress_text().filter(|_| view.state == State::Running);
        let info = match (&view.waiting, &view.result, progress, &view.error) {
            (Some(waiting), _, _, _) => waiting.to_string(),
            (None, Some(result), _, _) => String::from_utf8_lossy(result.bytes()).into_owned(),
            (None, None, Some(progress), _) => progress,
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

/// Returns the failure for a job that did not succeed while the command waited for it.
fn ended(view: &JobView) -> Option<(Kind, String)> {
    match view.state {
        State::Succeeded => None,
        State::Cancelled | State::Dead | State::Quarantined => {
            Some((Kind::Failed, format!("job {} is {}", view.id, view.status())))
        }
        State::Queued | State::Delayed | State::Running => {
            Some((Kind::TimedOut, format!("job {} has not ended: {}", view.id, view.status())))
        }
    }
}

fn not_found(id: &JobId) -> (Kind, String) {
    bellwether::client::Error::NotFound(id.clone()).report()
}

fn is_json(output: Output) -> bool {
    output.format == Format::Json
}
