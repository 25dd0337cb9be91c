//! S2: one end per generation.
//!
//! A terminal record changes only into the next generation: by an operator's retry if the job was dead or cancelled, or
//! by another submission that opens it again.

use bellwether_core::job::{JobRecord, JobState, Verdict};

use super::Predicate;
use crate::history::checker::{Found, Step, World};
use crate::history::truth::Spot;

#[derive(Default)]
pub(super) struct OneEnd;

impl Predicate for OneEnd {
    fn observe(&mut self, step: &Step<'_>, _: &World, found: &mut Found<'_>) {
        for change in step.commit.iter().flat_map(|commit| &commit.changes) {
            let Spot::Record(job) = &change.spot else { continue };
            let before = change.before.as_ref().and_then(|znode| znode.record());
            let after = change.after.as_ref().and_then(|znode| znode.record());
            let (Some(before), Some(after)) = (before, after) else { continue };
            let next = before.generation + 1;
            match &before.state {
                JobState::Open { .. } if after.generation == before.generation => {}
                JobState::Terminal { verdict: Verdict::Cancelled | Verdict::Dead, .. }
                    if reopens(after, next) => {}
                JobState::Terminal { verdict: Verdict::Succeeded(_), .. }
                    if reopens(after, next) && after.token != before.token => {}
                JobState::Open { .. } | JobState::Terminal { .. } => {
                    let (from, to) = (told(before), told(after));
                    found.push(format!("{job} changed from {from} to {to}"));
                }
            }
        }
    }
}

fn reopens(after: &JobRecord, generation: u32) -> bool {
    !after.is_terminal() && after.generation == generation
}

fn told(record: &JobRecord) -> String {
    let state = match &record.state {
        JobState::Open { .. } => "open",
        JobState::Terminal { verdict: Verdict::Succeeded(_), .. } => "succeeded",
        JobState::Terminal { verdict: Verdict::Cancelled, .. } => "cancelled",
        JobState::Terminal { verdict: Verdict::Dead, .. } => "dead",
    };
    format!("{state} in generation {}", record.generation)
}

#[cfg(test)]
mod tests {
    use crate::history::rules::fixture::{Story, W1};

    #[test]
    fn a_cancelled_job_may_be_retried() {
        let mut story = Story::new();
        story.submit("a");
        story.cancel("a");
        story.reopen("a");
        story.cancel("a");
        story.assert_keeps("S2");
    }

    #[test]
    fn a_result_may_be_followed_by_another_submission() {
        let mut story = Story::with_workers();
        story.submit("a");
        story.assign("a", W1);
        story.succeed("a", W1);
        story.open_again("a", |_| {});
        story.assert_keeps("S2");
    }

    #[test]
    fn a_second_end_is_found() {
        let mut story = Story::new();
        story.submit("a");
        story.cancel("a");
        story.edit("a", |record| record.last_error = Some("again".to_owned()));
        story.assert_breaks("S2");
    }

    #[test]
    fn a_revoked_result_is_found() {
        let mut story = Story::with_workers();
        story.submit("a");
        story.assign("a", W1);
        story.succeed("a", W1);
        story.reopen("a");
        story.assert_breaks("S2");
    }
}
