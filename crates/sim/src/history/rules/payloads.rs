//! S13: the payload is kept byte for byte, and so are the other submitted fields. A submission that opens the job again
//! may change the fields other than the payload.

use super::Predicate;
use crate::history::Digest;
use crate::history::checker::{Found, Step, World};
use crate::history::event::{EventKind, RunStep};
use crate::history::truth::Spot;

#[derive(Default)]
pub(super) struct Payloads;

impl Predicate for Payloads {
    fn observe(&mut self, step: &Step<'_>, world: &World, found: &mut Found<'_>) {
        for change in step.commit.iter().flat_map(|commit| &commit.changes) {
            let Spot::Record(job) = &change.spot else { continue };
            let before = change.before.as_ref().and_then(|znode| znode.record());
            let after = change.after.as_ref().and_then(|znode| znode.record());
            let (Some(before), Some(after)) = (before, after) else { continue };
            let same = before.policy == after.policy
                && before.placement == after.placement
                && before.priority == after.priority
                && (before.token, before.submitted_at) == (after.token, after.submitted_at);
            let again = after.generation > before.generation && after.token != before.token;
            if !before.is_same_submission(after) || !(same || again) {
                found.push(format!("the submitted fields of {job} were changed"));
            }
        }
        if let EventKind::Run { job, payload, step: RunStep::Started, .. } = step.event
            && let Some(record) = world.truth.record(job).and_then(|znode| znode.record())
            && Digest::of(record.payload.bytes()) != *payload
        {
            found.push(format!("{job} runs with the payload {payload}, which is not the submitted one"));
        }
    }
}

#[cfg(test)]
mod tests {
    use bellwether_core::job::Payload;

    use crate::history::event::{EventKind, RunStep};
    use crate::history::rules::fixture::{Story, W1};

    #[test]
    fn a_run_with_the_submitted_payload_is_allowed() {
        let mut story = Story::with_workers();
        story.submit("a");
        story.assign("a", W1);
        story.run("a", W1, RunStep::Started);
        story.assert_keeps("S13");
    }

    #[test]
    fn a_submission_that_opens_a_job_again_may_change_times_and_policy() {
        let mut story = Story::with_workers();
        story.submit("a");
        story.cancel("a");
        story.open_again("a", |record| record.policy.max_attempts += 1);
        story.assert_keeps("S13");
        let mut story = Story::with_workers();
        story.submit("a");
        story.cancel("a");
        story.open_again("a", |record| record.payload = Payload::json(*b"[]").unwrap());
        story.assert_breaks("S13");
    }

    #[test]
    fn another_payload_is_found_in_the_record_and_in_a_run() {
        let mut story = Story::with_workers();
        story.submit("a");
        story.edit("a", |record| record.payload = Payload::json(*b"[]").unwrap());
        story.assert_breaks("S13");

        let mut story = Story::with_workers();
        story.submit("a");
        story.assign("a", W1);
        let mut run = story.run_of("a", W1);
        if let EventKind::Run { payload, .. } = &mut run {
            *payload = super::Digest::of(b"other");
        }
        story.push(run);
        story.assert_breaks("S13");
    }
}
