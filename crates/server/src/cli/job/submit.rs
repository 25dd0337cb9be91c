//! `job submit`.

use bellwether::client::{Error, GroupError, GroupHandle};
use bellwether::{Client, Group, GroupId, Job, Kind as JobKind, NameError, TraceContext};
use clap::Args;
use futures::StreamExt;

use super::super::exit::{Failure, LibraryError};
use super::super::output::Output;
use super::super::{Global, input};
use super::show::wait_all;
use super::{documents, is_json, table};
use bellwether_documents::SubmittedDocument;

#[derive(Debug, Args)]
pub(crate) struct Submit {
    #[command(flatten)]
    job: Job,
    /// Payload for the handler: JSON text, @FILE, or - for stdin.
    #[arg(default_value = "null", allow_hyphen_values = true)]
    payload: String,
    /// Number of jobs to submit. With --id their ids are ID-1, ID-2, …, and with --named their names are NAME-1, NAME-2, …
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    count: Option<u64>,
    /// Wait until all jobs have ended, up to --deadline, and print their outcomes.
    #[arg(long)]
    wait: bool,
    /// Add the job to this group: the id is KIND:GROUP:NUMBER. A group that does not exist is created with the default properties.
    #[arg(long, value_name = "GROUP", requires = "number", conflicts_with_all = ["id", "named"])]
    group: Option<String>,
    /// Number of the member in the group, from 0; with --count the number of the first.
    #[arg(long, requires = "group", value_name = "N", value_parser = clap::value_parser!(u32).range(..1_000_000))]
    number: Option<u32>,
    /// Total number of members of the group. Set it once, with any member.
    #[arg(long, requires = "group", value_name = "N")]
    total: Option<u32>,
    /// Trace of the job as in W3C Trace Context: 00-TRACE-SPAN-FLAGS [default: the environment variable TRACEPARENT].
    #[arg(long, value_name = "TRACEPARENT")]
    traceparent: Option<TraceContext>,
}

pub(super) async fn run(global: &Global, output: Output, submit: Submit) -> Result<(), Failure> {
    let jobs = jobs(&submit)?;
    global.zookeeper()?;
    let client = global.writer().await?;
    let bar = global.progress("submitting", jobs.len());
    let progress = |done| bar.set_position(done as u64);
    let answers = match (&submit.group, submit.number) {
        (Some(group), Some(first)) => {
            let group = self::group(&client, &submit, group).await?;
            let members = group.submit_stream((first..).zip(jobs)).collect::<Vec<_>>().await;
            progress(members.len());
            members
        }
        (_, _) => client.submit_many(jobs, progress).await,
    };
    bar.finish_and_clear();

    let (mut handles, mut wrong) = (Vec::new(), Vec::new());
    for answer in answers {
        match answer {
            Ok(job) => handles.push(job),
            Err(error) => wrong.push(error.report()),
        }
    }
    let one = submit.count.is_none();
    let mut waited = None;
    if submit.wait {
        let (views, ended) = wait_all(global, &client, &handles).await;
        wrong.extend(ended);
        waited = Some(views);
    }
    client.close().await;
    if let Some(views) = waited {
        if is_json(output) { super::jobs(output, one, &views)? } else { table(output, &views)? }
    } else if is_json(output) {
        let submitted = handles.iter().map(SubmittedDocument::from);
        documents(output, one, &submitted.collect::<Vec<_>>())?;
    } else if !handles.is_empty() {
        let ids = handles.iter().map(|job| job.id().as_str());
        output.text(&ids.collect::<Vec<_>>().join("\n"))?;
    }
    Failure::all(wrong)
}

/// Returns the trace of the job.
fn trace(submit: &Submit) -> Option<TraceContext> {
    submit.traceparent.or_else(input::traceparent)
}

/// Finds the group of a member, whatever its properties are, or creates it. Nothing is written if it has members of another kind.
async fn group(client: &Client, submit: &Submit, name: &str) -> Result<GroupHandle, Failure> {
    let usage = |error: NameError| Failure::usage(error.to_string());
    let (id, given) = (GroupId::new(name).map_err(usage)?, JobKind::new(submit.job.kind()).map_err(usage)?);
    let group = match client.existing_group(&id).await {
        Err(Error::Group(GroupError::NotFound { .. })) => {
            let new = Group::new(submit.job.kind(), name).traceparent(trace(submit));
            let new = match submit.total {
                Some(total) => new.total(total),
                None => new,
            };
            return Ok(client.group(new).await?);
        }
        found => found?,
    };
    let existing = group.kind();
    if existing != given {
        return Err(GroupError::Kind { group: id, existing, given }.into());
    }
    if let Some(total) = submit.total {
        group.seal(total).await?;
    }
    Ok(group)
}

fn jobs(submit: &Submit) -> Result<Vec<Job>, Failure> {
    let job = submit.job.clone().payload(input::payload(&submit.payload)?).traceparent(trace(submit));
    // Checked as given, and with the longest id.
    let checked = |job: &Job| job.check().map_err(|error| Failure::usage(error.to_string()));
    checked(&job)?;
    let Some(count) = submit.count else { return Ok(vec![job]) };
    let copy = |n: u64| match (job.given_id(), job.given_name()) {
        (Some(id), _) => job.clone().id(format!("{id}-{n}")),
        (None, Some(name)) => job.clone().named(format!("{name}-{n}")),
        (None, None) => job.clone(),
    };
    let jobs = (1..=count).map(copy).collect::<Vec<_>>();
    jobs.last().map_or(Ok(()), checked)?;
    Ok(jobs)
}

/// Accepted arguments pass the check that a submission begins with. Reads no file and limits the number of copies.
#[cfg(any(test, fuzzing))]
pub(super) fn fuzzed(submit: Submit) {
    if submit.payload == "-" || submit.payload.starts_with('@') {
        return;
    }
    let submit = Submit { count: submit.count.map(|count| count.min(3)), ..submit };
    if let Ok(jobs) = jobs(&submit) {
        assert_eq!(jobs.len() as u64, submit.count.unwrap_or(1));
        jobs.iter().for_each(|job| job.check().expect("accepted arguments can be submitted"));
    }
}
