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

#[derive(Default)]
pub(super) struct FailedSubmissions {
    submitted: BTreeMap<JobId, Submitted>,
}

#[derive(Default)]
struct Submitted {
    times: u32,
    failed: bool,
}

impl Predicate for FailedSubmissions {
    fn observe(&mut self, step: &Step<'_>, world: &World, found: &mut Found<'_>) {
        let changes =
            step.commit.iter().flat_map(|commit| commit.changes.iter().map(move |change| (commit, change)));
        for (commit, change) in changes {
            let (Spot::Record(job), None) = (&change.spot, &change.before) else { continue };
            if commit.epoch_checked().is_some() {
                // The tick of a schedule with this job id: like another submission.
                self.submitted.entry(job.clone()).or_default().times += 1;
            } else if self.submitted.get(job).is_some_and(|calls| calls.times == 1 && calls.failed) {
                found.push(format!("{job} was created after its only submission had failed"));
            }
        }
        match step.event {
            EventKind::Invoke { what: Call::Submit { job, .. }, .. } => {
                self.submitted.entry(job.clone()).or_default().times += 1;
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
