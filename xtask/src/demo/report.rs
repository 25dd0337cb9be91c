//! What happened, for people, and whether it is what was promised.

use std::time::Duration;

use bellwether::{JobId, JobView, State, WorkerId};

use super::kills::Cluster;
use crate::failure::Failure;

/// Extra attempts that are told one by one; of hundreds, some tell enough.
const TOLD: usize = 5;

/// What is known at the end.
pub(super) struct Report<'a> {
    pub(super) ids: &'a [JobId],
    pub(super) jobs: Vec<JobView>,
    pub(super) cluster: &'a Cluster,
    pub(super) submitting: Duration,
    pub(super) took: Duration,
}

impl Report<'_> {
    /// Tells all, and fails unless every job succeeded and every extra attempt is explained.
    pub(super) fn tell(&self) -> Result<(), Failure> {
        let total = self.ids.len();
        let succeeded = self.jobs.iter().filter(|job| job.state == State::Succeeded).count();
        say("");
        say("Leaders");
        for term in &self.cluster.terms {
            say(&format!("  epoch {:<3}  {} {}", term.epoch, term.node, term.how));
        }
        say("Killed");
        for kill in &self.cluster.kills {
            say(&format!("  {kill}"));
        }
        say("Jobs");
        say(&format!("  acknowledged  {total:>7}  in {:.1} s", self.submitting.as_secs_f64()));
        say(&format!("  succeeded     {succeeded:>7}"));
        say(&format!("  lost          {:>7}", total - self.jobs.len()));
        let unexplained = self.attempts();
        let rate = total as f64 / self.took.as_secs_f64();
        say(&format!(
            "Throughput\n  {rate:.0} jobs/s over {:.1} s, both kills included",
            self.took.as_secs_f64()
        ));
        if succeeded == total && unexplained == 0 {
            return Ok(());
        }
        for job in self.jobs.iter().filter(|job| job.state != State::Succeeded).take(TOLD) {
            say(&format!("  {}: {}", job.id, job.status()));
        }
        let rest = total - succeeded;
        Err(Failure::Demo(format!("{rest} jobs did not succeed, {unexplained} attempts are not explained")))
    }

    /// Tells of the attempts; how many nothing explains.
    fn attempts(&self) -> u32 {
        let attempts = self.jobs.iter().map(|job| job.attempt).sum::<u32>();
        let again = self.jobs.iter().filter(|job| job.attempt > 1).collect::<Vec<_>>();
        let (mut killed, mut other, mut unexplained) = (0, 0, 0);
        for job in &again {
            // The record closes each attempt as one of these, and the last as the success.
            let closed = job.losses + job.failures + u32::from(job.state == State::Succeeded);
            unexplained += job.attempt.abs_diff(closed);
            if self.killed_under(job).is_some() {
                killed += job.losses;
            } else {
                other += job.losses + job.failures;
            }
        }
        say("Attempts");
        say(&format!("  {attempts:>7}  in all"));
        say(&format!(
            "  {killed:>7}  ended with a killed node, closed as lost by the leader, and ran again elsewhere"
        ));
        if other > 0 {
            say(&format!("  {other:>7}  ended otherwise by their record, such as with an expired session"));
        }
        say(&format!("  {unexplained:>7}  unexplained"));
        for job in again.iter().take(TOLD) {
            say(&format!("           {}: {}", job.id, self.story(job)));
        }
        if let Some(more @ 1..) = again.len().checked_sub(TOLD) {
            say(&format!("           and {more} more"));
        }
        unexplained
    }

    /// Why it was tried again, and where it succeeded.
    fn story(&self, job: &JobView) -> String {
        let node = |worker: &WorkerId| self.cluster.workers.get(worker).map_or("?", String::as_str);
        let why = match self.killed_under(job) {
            Some(worker) => format!("attempt {} was lost with {}", job.attempt - 1, node(worker)),
            None => job.error.clone().unwrap_or_else(|| "?".to_owned()),
        };
        let on = job.worker.as_ref().map_or("?", node);
        format!("{why}, attempt {} {} on {on}", job.attempt, job.state)
    }

    /// The killed worker that its last lost attempt was on: the error names it.
    fn killed_under(&self, job: &JobView) -> Option<&WorkerId> {
        let error = job.error.as_deref().unwrap_or_default();
        self.cluster.killed.iter().find(|worker| error.ends_with(&worker.to_string()))
    }
}

#[expect(clippy::print_stdout, reason = "the report is this command's output")]
pub(super) fn say(line: &str) {
    println!("{line}");
}
