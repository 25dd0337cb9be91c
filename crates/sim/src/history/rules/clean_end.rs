//! L6: resources are released.
//!
//! At the end there is no inbox without its worker, no unneeded candidate, and no record of a terminal job or done
//! group that is older than the retention plus the time that the janitor needs. That a terminal job has nothing but its
//! record is checked after every transaction (S1, places).

use std::collections::BTreeMap;

use bellwether_core::group::Stage;
use bellwether_core::job::JobRecord;
use bellwether_core::name::{GroupId, JobId};
use bellwether_core::path::{self, GroupPlace, Place};
use bellwether_core::retention::KEPT_AT_LEAST;
use bellwether_core::time::as_millis;

use super::Predicate;
use crate::history::checker::{Found, Step, World};
use crate::history::truth::Spot;

/// The time that the janitor may take in addition to the retention and its slack (an eighth of the retention): a few
/// rounds, with a leader and clocks that differ by seconds. In milliseconds.
const LATE: u64 = 30_000;

#[derive(Default)]
pub(super) struct CleanEnd {
    /// When each terminal job ended.
    ended: BTreeMap<JobId, u64>,
    /// When each group was done, or when one of its jobs last ended after that.
    done: BTreeMap<GroupId, u64>,
}

impl Predicate for CleanEnd {
    fn observe(&mut self, step: &Step<'_>, world: &World, _: &mut Found<'_>) {
        for change in step.commit.iter().flat_map(|commit| &commit.changes) {
            if let Spot::Place(Place::Group(GroupPlace::Record(group))) = &change.spot {
                let after = change.after.as_ref().and_then(|znode| znode.group());
                if after.is_some_and(|group| matches!(group.stage, Stage::Done { .. })) {
                    self.done.insert(group.clone(), world.now);
                } else {
                    self.done.remove(group);
                    // Its further groups may be removed from now on.
                    let of_this = |further: &GroupId| first_of(world, further) == Some(group);
                    let further = self.done.iter_mut().filter(|(further, _)| of_this(further));
                    further.for_each(|(_, since)| *since = world.now);
                }
            }
            let Spot::Record(job) = &change.spot else { continue };
            let after = change.after.as_ref().and_then(|znode| znode.record());
            if let Some(part) = after.and_then(|record| record.membership.as_ref()) {
                self.done.entry(part.group.clone()).and_modify(|since| *since = world.now);
            }
            // The record of a job with sub-jobs, or of a job of a group, is removed with the group.
            let goes =
                |record: &JobRecord| record.is_terminal() && record.membership.is_none() && !record.spawned;
            if change.after.as_ref().and_then(|znode| znode.record()).is_some_and(goes) {
                self.ended.entry(job.clone()).or_insert(world.now);
            } else {
                self.ended.remove(job);
            }
        }
    }

    fn finish(&mut self, world: &World, found: &mut Found<'_>) {
        if world.healed.is_none() {
            return;
        }
        let jobs = world.truth.jobs();
        for inbox in jobs.inboxes() {
            if !jobs.worker(inbox).is_some_and(|worker| worker.registered) {
                found.push(format!("the inbox of {inbox} was not removed after its worker left"));
            }
        }
        let setting = world.truth.get(path::RETENTION).and_then(|znode| znode.retention());
        if let (Some(retention), Some(healed)) = (setting, world.healed) {
            let longest = retention.succeeded.max(retention.cancelled).max(retention.dead).max(KEPT_AT_LEAST);
            let late = as_millis(longest) + as_millis(longest) / 8 + LATE;
            for (job, _) in self.ended.iter().filter(|(_, at)| world.now > (**at).max(healed) + late) {
                found.push(format!("the record of {job} was not removed after its retention"));
            }
            for (group, _) in self.done.iter().filter(|(_, at)| world.now > (**at).max(healed) + late) {
                // A further group is removed after the first one.
                if first_of(world, group).is_some_and(|first| world.truth.group(first).is_some()) {
                    continue;
                }
                let members = world.truth.groups().get(group).map(|group| group.members.values());
                let open = |job| world.truth.job(job).is_some_and(|record| !record.is_terminal());
                if !members.is_some_and(|mut members| members.any(open)) {
                    found.push(format!("the group {group} was not removed after its retention"));
                }
            }
            let jobs = world.truth.jobs().all().filter_map(|(job, _)| Some((job, world.truth.job(job)?)));
            for (job, record) in jobs {
                let group = record.membership.as_ref().map(|part| part.group.clone());
                let nested = record.spawned.then(|| GroupId::of_sub_jobs(job, record));
                let groups = || group.iter().chain(&nested);
                if groups().next().is_some() && groups().all(|group| world.truth.group(group).is_none()) {
                    found.push(format!("the record of {job} was not removed with its group"));
                }
            }
        }
        let mut candidates = BTreeMap::<i64, usize>::new();
        for (_, znode) in world.truth.below(path::ELECTION) {
            *candidates.entry(znode.owner).or_default() += 1;
        }
        for (session, count) in candidates {
            if session == 0 || count > 1 {
                found.push(format!("session {session:#x} has {count} candidates"));
            }
        }
    }
}

fn first_of<'a>(world: &'a World, further: &GroupId) -> Option<&'a GroupId> {
    let parent = world.truth.group(further)?.parent.as_ref()?;
    parent.first.as_ref().map(|first| &first.group)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use crate::history::event::EventKind;
    use crate::history::rules::fixture::{LEADER, OTHER, Story, W1, W2};

    #[test]
    fn inboxes_of_live_workers_and_one_candidate_per_session_are_allowed() {
        let mut story = Story::with_workers();
        story.push(EventKind::Healed);
        story.candidate(LEADER, 1);
        story.candidate(OTHER, 2);
        story.assert_keeps("L6");
    }

    #[test]
    fn an_inbox_that_is_not_removed_is_found() {
        let mut story = Story::with_workers();
        story.push(EventKind::Healed);
        story.unregister(W1);
        story.unregister(W2);
        story.assert_breaks("L6");
    }

    #[test]
    fn a_record_that_is_not_removed_is_found_once_it_is_late() {
        for late in [false, true] {
            let mut story = Story::new();
            story.push(EventKind::Healed);
            story.keep_records(Duration::from_secs(40));
            story.submit("a");
            story.cancel("a");
            story.pass(if late { 80_000 } else { 60_000 });
            story.submit("b");
            if late { story.assert_breaks("L6") } else { story.assert_keeps("L6") }
        }
    }

    #[test]
    fn a_second_candidate_is_found() {
        let mut story = Story::new();
        story.push(EventKind::Healed);
        story.candidate(LEADER, 1);
        story.candidate(LEADER, 2);
        story.assert_breaks("L6");
    }
}
