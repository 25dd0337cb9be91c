//! S1: an acknowledged job is there, until its retention is over.
//!
//! Every submission that was accepted has a record when the answer comes, and a submission makes one record. A record is
//! deleted only when its job is over, and has been for as long as the setting says; by a purge, when it has been for a
//! minute and belongs to no group.

use std::collections::{BTreeMap, BTreeSet};

use bellwether_core::budget::MIN_RETENTION;
use bellwether_core::job::JobState;
use bellwether_core::name::JobId;
use bellwether_core::path;
use bellwether_core::time::as_millis;
use uuid::Uuid;

use super::Predicate;
use crate::history::checker::{Found, Step, World};
use crate::history::event::{Answer, Call, EventKind};
use crate::history::truth::{Change, Spot};

/// By how much the wall clocks of machines may differ, in milliseconds: who ends a job, ZooKeeper and the leader have one
/// each.
const SKEW: u64 = 3_500;

#[derive(Default)]
pub(super) struct Accepted {
    /// Since when jobs are over.
    ended: BTreeMap<JobId, u64>,
    removed: BTreeSet<JobId>,
    /// What was submitted: the token is of one submission.
    made: BTreeSet<(JobId, Uuid)>,
}

impl Predicate for Accepted {
    fn observe(&mut self, step: &Step<'_>, world: &World, found: &mut Found<'_>) {
        for change in step.commit.iter().flat_map(|commit| &commit.changes) {
            if let Spot::Record(job) = &change.spot {
                self.changed(job, change, world, found);
            }
        }
        if let EventKind::Return { call, answer: Answer::Accepted } = step.event
            && let Some(Call::Submit { job, .. }) = world.calls.get(call).map(|invoked| &invoked.what)
            && world.truth.record(job).is_none()
            && !self.removed.contains(job)
        {
            found.push(format!("{job} was accepted and has no record"));
        }
    }
}

impl Accepted {
    fn changed(&mut self, job: &JobId, change: &Change, world: &World, found: &mut Found<'_>) {
        let Some(after) = &change.after else { return self.deleted(job, change, world, found) };
        let Some(record) = after.record() else { return };
        // What the leader makes has none: its id is its own.
        if change.before.is_none() && !record.token.is_nil() && !self.made.insert((job.clone(), record.token))
        {
            found.push(format!("one submission made {job} twice"));
        }
        if record.is_terminal() {
            self.ended.entry(job.clone()).or_insert(world.now);
        } else {
            self.ended.remove(job);
        }
    }

    fn deleted(&mut self, job: &JobId, change: &Change, world: &World, found: &mut Found<'_>) {
        self.removed.insert(job.clone());
        let before = change.before.as_ref().and_then(|znode| znode.record());
        let verdict = before.and_then(|record| match &record.state {
            JobState::Terminal { verdict, .. } => Some(verdict),
            JobState::Open { .. } => None,
        });
        let (Some(ended), Some(verdict)) = (self.ended.remove(job), verdict) else {
            return found.push(format!("the record of {job} was deleted, and the job is not over"));
        };
        let kept = world.now - ended;
        let alone = before.is_some_and(|record| record.membership.is_none() && !record.spawned);
        if world.purged && alone && kept + SKEW >= as_millis(MIN_RETENTION) {
            return;
        }
        let setting = world.truth.get(path::RETENTION).and_then(|znode| znode.retention());
        let Some(retention) = setting else {
            return found.push(format!("the record of {job} was deleted, and nothing says that it may be"));
        };
        let wanted = as_millis(retention.of(verdict));
        if kept + SKEW < wanted {
            found.push(format!("the record of {job} was deleted after {kept} ms instead of {wanted}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use crate::history::event::Answer;
    use crate::history::rules::fixture::Story;

    #[test]
    fn an_accepted_job_has_a_record() {
        let mut story = Story::new();
        let call = story.invoke_submit("a");
        story.submit("a");
        story.answer(call, Answer::Accepted);
        story.assert_keeps("S1");
    }

    #[test]
    fn one_without_a_record_is_found() {
        let mut story = Story::new();
        let call = story.invoke_submit("a");
        story.answer(call, Answer::Accepted);
        story.assert_breaks("S1");
    }

    #[test]
    fn a_record_that_is_deleted_while_its_job_is_open_is_found() {
        let mut story = Story::new();
        story.keep_records(Duration::ZERO);
        story.submit("a");
        story.delete(&["/jobs/1f/a", "/queue/1f/a"]);
        story.assert_breaks("S1");
    }

    #[test]
    fn a_record_may_go_after_its_retention_and_its_id_may_be_used_again() {
        let mut story = Story::new();
        story.keep_records(Duration::from_secs(60));
        let call = story.invoke_submit("a");
        story.submit("a");
        story.cancel("a");
        story.pass(60_000);
        story.remove_record("a");
        story.answer(call, Answer::Accepted);
        story.submit_again("a");
        story.assert_keeps("S1");
    }

    #[test]
    fn a_record_that_goes_too_soon_or_without_a_setting_is_found() {
        for setting in [true, false] {
            let mut story = Story::new();
            if setting {
                story.keep_records(Duration::from_secs(60));
            }
            story.submit("a");
            story.cancel("a");
            story.pass(50_000);
            story.remove_record("a");
            story.assert_breaks("S1");
        }
    }

    #[test]
    fn a_purge_removes_what_has_been_over_for_a_minute_and_nothing_younger() {
        for (over_for, keeps) in [(60_000, true), (50_000, false)] {
            let mut story = Story::new();
            story.submit("a");
            story.cancel("a");
            story.pass(over_for);
            story.invoke_purge();
            story.delete(&["/jobs/1f/a"]);
            if keeps { story.assert_keeps("S1") } else { story.assert_breaks("S1") }
        }
    }

    #[test]
    fn a_submission_that_is_carried_out_twice_is_found() {
        let mut story = Story::new();
        story.keep_records(Duration::ZERO);
        story.submit("a");
        story.cancel("a");
        story.pass(10_000);
        story.remove_record("a");
        story.submit("a");
        story.assert_breaks("S1");
    }
}
