//! The report of the demo, as text and as JSON, and its verdict.

use std::fmt;
use std::time::Duration;

use bellwether::{JobView, State, WorkerId};
use serde::Serialize;

use super::cluster::{Cluster, LeaderChange};
use crate::cli::exit::Failure;

/// How many jobs the report describes one by one.
const DESCRIBED: usize = 5;

/// The outcome of a demo.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    /// The leaders, in order.
    leaders: Vec<LeaderChange>,
    /// The kills, in order.
    killed: Vec<String>,
    /// Jobs whose submission was acknowledged.
    acknowledged: usize,
    /// Jobs that succeeded.
    succeeded: usize,
    /// Jobs whose state is unknown at the end.
    lost: usize,
    /// Attempts of all jobs.
    attempts: u32,
    /// Attempts that were lost with a killed node: the leader closed them and the job ran again.
    lost_with_a_killed_node: u32,
    /// Attempts that their record closed for another reason.
    ended_otherwise: u32,
    /// Attempts that no record explains.
    unexplained: u32,
    /// Examples of jobs that failed or ran more than once, each with the cause.
    stories: Vec<String>,
    /// Jobs that ran more than once beyond those examples.
    more: usize,
    submitting_seconds: f64,
    seconds: f64,
}

impl Report {
    pub(super) fn of(
        acknowledged: usize,
        jobs: &[JobView],
        cluster: &Cluster,
        submitting: Duration,
        took: Duration,
    ) -> Self {
        let again = jobs.iter().filter(|job| job.attempt > 1).collect::<Vec<_>>();
        let (mut killed, mut otherwise, mut unexplained) = (0, 0, 0);
        for job in &again {
            // The record counts each closed attempt as a loss, a failure or the success.
            let closed = job.losses + job.failures + u32::from(job.state == State::Succeeded);
            unexplained += job.attempt.abs_diff(closed);
            match killed_under(job, cluster) {
                Some(_) => killed += job.losses,
                None => otherwise += job.losses + job.failures,
            }
        }
        let failed = jobs.iter().filter(|job| job.state != State::Succeeded);
        let failed = failed.map(|job| format!("{}: {}", job.id, job.status()));
        let twice = again.iter().map(|job| format!("{}: {}", job.id, story(job, cluster)));
        Self {
            leaders: cluster.terms.clone(),
            killed: cluster.kills.clone(),
            acknowledged,
            succeeded: jobs.iter().filter(|job| job.state == State::Succeeded).count(),
            lost: acknowledged - jobs.len(),
            attempts: jobs.iter().map(|job| job.attempt).sum(),
            lost_with_a_killed_node: killed,
            ended_otherwise: otherwise,
            unexplained,
            stories: failed.take(DESCRIBED).chain(twice.take(DESCRIBED)).collect(),
            more: again.len().saturating_sub(DESCRIBED),
            submitting_seconds: submitting.as_secs_f64(),
            seconds: took.as_secs_f64(),
        }
    }

    /// Returns a failure unless every job succeeded and every extra attempt is explained.
    pub(super) fn verdict(&self) -> Result<(), Failure> {
        if self.succeeded == self.acknowledged && self.unexplained == 0 {
            return Ok(());
        }
        let (rest, unexplained) = (self.acknowledged - self.succeeded, self.unexplained);
        Err(Failure::failed(format!("{rest} jobs did not succeed, {unexplained} attempts are not explained")))
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "Leaders")?;
        for LeaderChange { epoch, node, how } in &self.leaders {
            writeln!(f, "  epoch {epoch:<3}  {node} {how}")?;
        }
        writeln!(f, "Killed")?;
        for kill in &self.killed {
            writeln!(f, "  {kill}")?;
        }
        writeln!(f, "Jobs")?;
        writeln!(f, "  acknowledged  {:>7}  in {:.1} s", self.acknowledged, self.submitting_seconds)?;
        writeln!(f, "  succeeded     {:>7}", self.succeeded)?;
        writeln!(f, "  lost          {:>7}", self.lost)?;
        writeln!(f, "Attempts")?;
        writeln!(f, "  {:>7}  total", self.attempts)?;
        let killed = self.lost_with_a_killed_node;
        writeln!(f, "  {killed:>7}  lost with a killed node, closed by the leader, and retried")?;
        if self.ended_otherwise > 0 {
            let otherwise = self.ended_otherwise;
            writeln!(f, "  {otherwise:>7}  closed for another reason, such as an expired session")?;
        }
        writeln!(f, "  {:>7}  unexplained", self.unexplained)?;
        for story in &self.stories {
            writeln!(f, "           {story}")?;
        }
        if self.more > 0 {
            writeln!(f, "           and {} more", self.more)?;
        }
        let rate = self.acknowledged as f64 / self.seconds;
        write!(f, "Throughput\n  {rate:.0} jobs/s over {:.1} s, both kills included", self.seconds)
    }
}

/// Describes why a job ran again and where it succeeded.
fn story(job: &JobView, cluster: &Cluster) -> String {
    let node = |worker: &WorkerId| cluster.workers.get(worker).map_or("?", String::as_str);
    let why = match killed_under(job, cluster) {
        Some(worker) => format!("attempt {} was lost with {}", job.attempt - 1, node(worker)),
        None => job.error.clone().unwrap_or_else(|| "?".to_owned()),
    };
    let on = job.worker.as_ref().map_or("?", node);
    format!("{why}, attempt {} {} on {on}", job.attempt, job.state)
}

/// Returns the killed worker of the job's last lost attempt. The job's error names it.
fn killed_under<'a>(job: &JobView, cluster: &'a Cluster) -> Option<&'a WorkerId> {
    let error = job.error.as_deref().unwrap_or_default();
    cluster.killed.iter().find(|worker| error.ends_with(&worker.to_string()))
}
