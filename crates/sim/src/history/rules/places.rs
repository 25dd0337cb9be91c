//! S1: an open job is in exactly one place and has its turn; a terminal job has neither, but it keeps its turn until its
//! sub-jobs have ended.
//!
//! S1 needs this in addition to the record: a job without a place would never run, and one with two places would run
//! twice. A turn that is deleted too early lets the next job of the lane run, and one that stays blocks the lane.

use std::collections::BTreeSet;

use bellwether_core::name::JobId;
use bellwether_core::path::{GroupPlace, Place};

use super::Predicate;
use crate::history::checker::{Found, Step, World};
use crate::history::truth::{Change, Spot};

#[derive(Default)]
pub(super) struct Places;

impl Predicate for Places {
    fn observe(&mut self, step: &Step<'_>, world: &World, found: &mut Found<'_>) {
        let Some(commit) = step.commit else { return };
        let touched: BTreeSet<&JobId> = commit.changes.iter().filter_map(job_of).collect();
        for job in touched {
            check(job, world, found);
        }
    }
}

fn check(job: &JobId, world: &World, found: &mut Found<'_>) {
    let Some(seen) = world.truth.jobs().get(job) else { return };
    let record = world.truth.record(job);
    let (open, turn) = match record.map(|znode| znode.record()) {
        None => (false, None),
        Some(Some(record)) => {
            let goes_on = world.truth.settled(job, record).is_none();
            (!record.is_terminal(), record.turn().filter(|_| goes_on))
        }
        // The record is unreadable, so only its place is checked: there must be one.
        Some(None) => (true, None),
    };
    let wanted = usize::from(open);
    if seen.places.len() != wanted {
        let state = if record.is_none() {
            "absent"
        } else if open {
            "open"
        } else {
            "terminal"
        };
        found.push(format!("{job} is {state} but has the places {:?}", seen.places));
    }
    let turns: Vec<_> = seen.turns.keys().collect();
    let wanted: Vec<_> = turn.iter().collect();
    if turns != wanted && record.is_none_or(|znode| znode.record().is_some()) {
        found.push(format!("{job} has the turns {turns:?} instead of {wanted:?}"));
    }
}

fn job_of(change: &Change) -> Option<&JobId> {
    match &change.spot {
        Spot::Record(job) | Spot::Quarantine(job) => Some(job),
        Spot::Place(Place::Ready(entry)) => Some(entry.job()),
        Spot::Place(Place::DelayedEntry(_, job) | Place::Assignment(_, job) | Place::Turn(_, job)) => {
            Some(job)
        }
        // The stage of a group decides whether the parent is in progress.
        Spot::Place(Place::Group(GroupPlace::Record(_))) => {
            let group = change.after.as_ref().and_then(|znode| znode.group());
            group.and_then(|group| group.parent.as_ref()).map(|parent| &parent.job)
        }
        Spot::Epoch
        | Spot::Candidate
        | Spot::Retention
        | Spot::Place(
            Place::ReadyClass(_)
            | Place::ReadySlot(..)
            | Place::Worker(_)
            | Place::Inbox(_)
            | Place::Schedule(_)
            | Place::Group(GroupPlace::Member(..) | GroupPlace::Mark(..))
            | Place::SegmentChunk(..)
            | Place::Other,
        ) => None,
    }
}

#[cfg(test)]
mod tests {
    use bellwether_core::group::{GroupRecord, Stage};
    use bellwether_core::time::WallMillis;

    use crate::history::rules::fixture::{Story, W1, W2};

    #[test]
    fn a_job_moves_from_place_to_place() {
        let mut story = Story::with_workers();
        story.submit_in_lane("a", "x");
        story.assign("a", W1);
        story.succeed("a", W1);
        story.assert_keeps("S1");
    }

    #[test]
    fn a_job_without_a_place_is_found() {
        let mut story = Story::new();
        story.submit("a");
        let entry = story.entry("a");
        story.delete(&[&entry]);
        story.assert_breaks("S1");
    }

    #[test]
    fn a_job_in_two_inboxes_is_found() {
        let mut story = Story::with_workers();
        story.submit("a");
        story.assign("a", W1);
        story.create_assignment("a", W2, 1);
        story.assert_breaks("S1");
    }

    #[test]
    fn a_parent_keeps_its_turn_until_its_sub_jobs_have_ended() {
        let ended = |keep: bool| {
            let mut story = Story::with_workers();
            story.submit_in_lane("p", "x");
            story.assign("p", W1);
            let nested = story.spawn("p", W1);
            if keep {
                story.succeed("p", W1);
            } else {
                story.succeed_and_leave_lane("p", W1);
            }
            (story, nested)
        };
        let joined = || {
            let (mut story, nested) = ended(true);
            story.set_group_by_leader(&nested, |group| group.closed = true);
            story.set_group_by_leader(&nested, |group| group.total = Some(0));
            story.advance_group(&nested, |group| group.stage = Stage::Joining);
            let join = format!("sum.join:@{nested}");
            story.assign(&join, W1);
            story.succeed(&join, W1);
            (story, nested)
        };
        let done = |group: &mut GroupRecord| group.stage = Stage::Done { at: WallMillis(1) };
        let (mut story, nested) = joined();
        story.advance_group(&nested, done);
        story.assert_keeps("S1");
        let (mut story, nested) = joined();
        story.set_group_by_leader(&nested, done);
        story.assert_breaks("S1");
        let (story, _) = ended(false);
        story.assert_breaks("S1");
    }

    #[test]
    fn a_turn_that_outlives_its_job_is_found() {
        let mut story = Story::with_workers();
        story.submit_in_lane("a", "x");
        story.assign("a", W1);
        story.succeed_but_keep_turn("a", W1);
        story.assert_breaks("S1");
    }
}
