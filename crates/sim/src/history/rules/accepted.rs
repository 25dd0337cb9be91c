//! S1: an acknowledged job has a record until its retention is over.
//!
//! Every accepted submission has a record when the answer comes, and one submission creates one record. A record is
//! deleted only after its job has been terminal for the retention time. A purge may delete it earlier, if the job has
//! been terminal for a minute and belongs to no group.

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

/// Maximum difference of the wall clocks of the machines, in milliseconds: of the process that ends a job, of ZooKeeper
/// and of the leader.
const SKEW: u64 = 3_500;

#[derive(Default)]
pub(super) struct Accepted {
    /// When each terminal job ended.
    ended: BTreeMap<JobId, u64>,
    removed: BTreeSet<JobId>,
    /// The submissions that created a record. The token identifies one submission.
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
            found.push(format!("{job} was accepted but has no record"));
        }
    }
}

impl Accepted {
    fn changed(&mut self, job: &JobId, change: &Change, world: &World, found: &mut Found<'_>) {
        let Some(after) = &change.after else { return self.deleted(job, change, world, found) };
        let Some(record) = after.record() else { return };
        // Records created by the leader have no token; their ids are unique.
        if change.before.is_none() && !record.token.is_nil() && !self.made.insert((job.clone(), record.token))
        {
            found.push(format!("one submission created {job} twice"));
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
            return found.push(format!("the record of {job} was deleted before the job was terminal"));
        };
        let kept = world.now - ended;
        let alone = before.is_some_and(|record| record.membership.is_none() && !record.spawned);
        if world.purged && alone && kept + SKEW >= as_millis(MIN_RETENTION) {
            return;
        }
        let setting = world.truth.get(path::RETENTION).and_then(|znode| znode.retention());
        let Some(retention) = setting else {
            return found.push(format!("the record of {job} was deleted without a retention setting"));
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
    fn an_accepted_job_without_a_record_is_found() {
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
        let entry = story.entry("a");
        story.delete(&["/jobs/1f/e/a", &entry]);
        story.assert_breaks("S1");
    }

    #[test]
    fn a_record_may_be_removed_after_its_retention_and_its_id_reused() {
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
    fn a_record_removed_too_early_or_without_a_setting_is_found() {
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
    fn a_purge_may_remove_records_only_a_minute_after_the_end() {
        for (over_for, keeps) in [(60_000, true), (50_000, false)] {
            let mut story = Story::new();
            story.submit("a");
            story.cancel("a");
            story.pass(over_for);
            story.invoke_purge();
            story.delete(&["/jobs/1f/e/a"]);
            if keeps { story.assert_keeps("S1") } else { story.assert_breaks("S1") }
        }
    }

    #[test]
    fn a_submission_that_is_applied_twice_is_found() {
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
