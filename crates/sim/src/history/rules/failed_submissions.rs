//! S1: a submission that was answered as failed creates no job.
//!
//! Applies to jobs that were submitted once, and not by a schedule: the history does not show which of several submissions
//! created a record.

use std::collections::BTreeMap;

use bellwether_core::name::JobId;

use super::Predicate;
use crate::history::checker::{Found, Step, World};
use crate::history::event::{Answer, Call, EventKind};
use crate::history::truth::Spot;

/// The time of a transaction in ZooKeeper's log, in whole milliseconds and converted from another clock, may be this many
/// milliseconds too early. Then a submission follows the transaction that it caused.
const EARLY: u64 = 10;

#[derive(Default)]
pub(super) struct FailedSubmissions {
    submitted: BTreeMap<JobId, Submitted>,
    /// Jobs that were created after their only submission had failed, and when: another submission may follow.
    created: Vec<(JobId, u64)>,
}

#[derive(Default)]
struct Submitted {
    times: u32,
    failed: bool,
}

impl FailedSubmissions {
    fn report(&mut self, is_due: impl Fn(u64) -> bool, found: &mut Found<'_>) {
        for (job, _) in self.created.extract_if(.., |(_, at)| is_due(*at)) {
            found.push(format!("{job} was created after its only submission had failed"));
        }
    }
}

impl Predicate for FailedSubmissions {
    fn observe(&mut self, step: &Step<'_>, world: &World, found: &mut Found<'_>) {
        self.report(|at| at + EARLY < world.now, found);
        let changes =
            step.commit.iter().flat_map(|commit| commit.changes.iter().map(move |change| (commit, change)));
        for (commit, change) in changes {
            let (Spot::Record(job), None) = (&change.spot, &change.before) else { continue };
            if commit.epoch_checked().is_some() {
                // The tick of a schedule with this job id: like another submission.
                self.submitted.entry(job.clone()).or_default().times += 1;
            } else if self.submitted.get(job).is_some_and(|calls| calls.times == 1 && calls.failed) {
                self.created.push((job.clone(), world.now));
            }
        }
        match step.event {
            EventKind::Invoke { what: Call::Submit { job, .. }, .. } => {
                self.submitted.entry(job.clone()).or_default().times += 1;
                self.created.retain(|(created, _)| created != job);
            }
            EventKind::Return { call, answer: Answer::Failed { .. } } => {
                let Some(Call::Submit { job, .. }) = world.calls.get(call).map(|invoked| &invoked.what)
                else {
                    return;
                };
                let there = world.truth.record(job).is_some();
                let Some(calls) = self.submitted.get_mut(job).filter(|calls| calls.times == 1) else {
                    return;
                };
                calls.failed = true;
                if there {
                    found.push(format!("the only submission of {job} failed, but the job exists"));
                }
            }
            EventKind::Invoke { .. }
            | EventKind::Return { .. }
            | EventKind::Leadership { .. }
            | EventKind::Link { .. }
            | EventKind::LeaderWrites { .. }
            | EventKind::Node { .. }
            | EventKind::Run { .. }
            | EventKind::Txn { .. }
            | EventKind::Refused { .. }
            | EventKind::Evicted { .. }
            | EventKind::Healed => {}
        }
    }

    fn finish(&mut self, _: &World, found: &mut Found<'_>) {
        self.report(|_| true, found);
    }
}

#[cfg(test)]
mod tests {
    use crate::history::event::Answer;
    use crate::history::rules::fixture::Story;

    fn failed() -> Answer {
        Answer::Failed { why: "it was not sent".to_owned() }
    }

    #[test]
    fn a_job_submitted_again_after_a_failed_submission_is_allowed() {
        let mut story = Story::new();
        let call = story.invoke_submit("a");
        story.answer(call, failed());
        let call = story.invoke_submit("a");
        story.submit("a");
        story.answer(call, Answer::Accepted);
        story.assert_keeps("S1");
    }

    /// A run on the keeper, seed 2753, placed a transaction a millisecond before the submission that caused it.
    #[test]
    fn a_submission_may_be_recorded_a_few_milliseconds_after_its_transaction() {
        for (millis, breaks) in [(1, false), (20, true)] {
            let mut story = Story::new();
            let call = story.invoke_submit("a");
            story.answer(call, failed());
            story.submit("a");
            story.pass(millis);
            let call = story.invoke_submit("a");
            story.answer(call, Answer::Accepted);
            assert_eq!(story.finds("S1", "only submission"), breaks, "{millis} ms");
        }
    }

    #[test]
    fn a_job_whose_only_submission_failed_is_found_before_and_after_the_answer() {
        for late in [true, false] {
            let mut story = Story::new();
            let call = story.invoke_submit("a");
            if !late {
                story.submit("a");
            }
            story.answer(call, failed());
            if late {
                story.submit("a");
            }
            story.assert_breaks("S1");
        }
    }
}
