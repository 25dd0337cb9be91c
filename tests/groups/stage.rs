//! Records of runs, and clusters to run on.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bellwether::client::{GroupView, MemberEnd, Members};
use bellwether::handler::with_state;
use bellwether::testing::Cluster;
use bellwether::{Client, GroupId, HandlerError, Handlers, JobId, JobKind, JoinKind};
use bellwether_testkit::{eventually, eventually_some};

pub(crate) const SOON: Duration = Duration::from_secs(60);

/// Completed runs, in order.
#[derive(Debug, Clone, Default)]
pub(crate) struct Runs(Arc<Mutex<Vec<String>>>);

impl Runs {
    pub(crate) fn note(&self, what: impl Into<String>) {
        self.0.lock().unwrap().push(what.into());
    }

    pub(crate) fn all(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }

    pub(crate) fn count(&self, what: &str) -> usize {
        self.all().iter().filter(|run| *run == what).count()
    }

    /// Returns the position of its last entry.
    pub(crate) fn last(&self, what: &str) -> usize {
        self.all().iter().rposition(|run| run == what).unwrap_or_else(|| panic!("{what} never ran"))
    }

    /// Returns the position of its first entry.
    pub(crate) fn first(&self, what: &str) -> usize {
        self.all().iter().position(|run| run == what).unwrap_or_else(|| panic!("{what} never ran"))
    }
}

/// Doubles a number. Its groups count and add the results.
pub(crate) struct Double;

impl JobKind for Double {
    const NAME: &'static str = "double";
    type Payload = u64;
    type Result = u64;
}

impl JoinKind for Double {
    type Joined = (u64, u64);
}

/// Handlers that double a number.
pub(crate) fn doubling(runs: &Runs) -> Handlers {
    let runs = with_state(runs.clone());
    Handlers::new()
        .add(runs.kind::<Double>(|runs, context, n| async move {
            runs.note(context.job().to_string());
            Ok(2 * n)
        }))
        .add(runs.join::<Double>(|runs, context, members| async move {
            let summed = sum(members).await?;
            runs.note(context.job().to_string());
            Ok(summed)
        }))
}

/// Returns how many members succeeded, and the sum of their results.
pub(crate) async fn sum<K: JobKind<Result = u64>>(
    mut members: Members<K>,
) -> Result<(u64, u64), HandlerError> {
    let (mut count, mut sum) = (0, 0);
    while let Some(member) = members.next().await? {
        match member.end {
            MemberEnd::Succeeded(result) => {
                count += 1;
                sum += result;
            }
            MemberEnd::Cancelled | MemberEnd::Dead(_) | MemberEnd::Open => {}
            MemberEnd::Undecodable(_) | MemberEnd::Unreadable(_) => {
                member.into_result()?;
            }
        }
    }
    Ok((count, sum))
}

pub(crate) async fn cluster(handlers: Handlers, nodes: usize) -> Cluster {
    Cluster::builder(handlers).nodes(nodes).configure(|_, node| node.slots(4)).start().await.unwrap()
}

/// Returns the group of a job's sub-jobs, once it has some.
pub(crate) async fn sub_jobs(client: &Client, parent: &str) -> String {
    let parent = JobId::new(parent).unwrap();
    let what = format!("{parent} has sub-jobs");
    let first = async || client.get(&parent).await.unwrap()?.sub_jobs.into_iter().next();
    eventually_some(&what, SOON, first).await.to_string()
}

pub(crate) fn group(id: &str) -> GroupId {
    GroupId::new(id).unwrap()
}

/// Waits until a group exists and is done.
pub(crate) async fn done(client: &Client, id: &str) -> GroupView {
    let there = format!("group {id} exists");
    eventually(&there, SOON, async || client.get_group(&group(id)).await.unwrap().is_some()).await;
    client.wait_group(&group(id), SOON).await.unwrap()
}

/// Waits until a job exists and has ended, and returns its result.
pub(crate) async fn result(client: &Client, id: &str) -> serde_json::Value {
    let there = format!("{id} exists");
    eventually(&there, SOON, async || client.get(&JobId::new(id).unwrap()).await.unwrap().is_some()).await;
    let view = client.wait(&JobId::new(id).unwrap(), SOON).await.unwrap();
    let result = view.result.clone().unwrap_or_else(|| panic!("{}: {}", id, view.status()));
    serde_json::from_slice(result.bytes()).unwrap()
}

/// Returns how often each job's run was completed.
#[allow(dead_code, reason = "for the report of a failed test")]
pub(crate) fn counts(runs: &Runs) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for run in runs.all() {
        *counts.entry(run).or_default() += 1;
    }
    counts
}
