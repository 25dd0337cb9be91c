//! S3: the writes of a stale leader do not commit.
//!
//! A leader's transaction is recognized by its effect: it creates an assignment, moves a delayed job to the queue,
//! deletes an assignment or an inbox of another session's worker, removes a record, creates the job of a tick, advances
//! a group or creates its join. (Once a client has purged records, a transaction that only removes records may be the
//! client's.) Each such transaction must check the epoch, and it must be the epoch of the session that sends it. A worker that
//! takes over an attempt is no leader: it moves the assignment and sets the record.

use bellwether_core::group::GroupRecord;
use bellwether_core::job::Role;
use bellwether_core::path::{GroupPlace, Place};
use bellwether_core::schedule::parse_tick;

use super::Predicate;
use crate::history::checker::{Found, Step, World};
use crate::history::truth::{Change, Commit, Spot};

#[derive(Default)]
pub(super) struct Fenced;

impl Predicate for Fenced {
    fn observe(&mut self, step: &Step<'_>, world: &World, found: &mut Found<'_>) {
        let Some(commit) = step.commit else { return };
        let Some(what) = commit.changes.iter().find_map(|change| leads(change, commit, world)) else {
            return;
        };
        let Some(checked) = commit.epoch_checked() else {
            return found.push(format!("session {:#x} {what} without checking the epoch", commit.session));
        };
        if world.truth.epoch() != Some(checked) {
            found.push(format!("a write under epoch {checked} committed in epoch {:?}", world.truth.epoch()));
        }
        let claim = world.truth.get(bellwether_core::path::EPOCH).and_then(|znode| znode.epoch());
        if let Some(claim) = claim.filter(|claim| claim.session != commit.session) {
            let (session, owner) = (commit.session, claim.session);
            found.push(format!("session {session:#x} {what} under epoch {checked} of {owner:#x}"));
        }
    }
}

/// Describes a change that only a leader makes.
fn leads(change: &Change, commit: &Commit, world: &World) -> Option<String> {
    let others = |worker| {
        let owner = world.truth.worker(worker).map(|worker| worker.session);
        owner != Some(commit.session)
    };
    if let (Spot::Record(job), None) = (&change.spot, &change.after) {
        if world.purged && commit.changes.iter().all(|change| is_removal(change) || counts(change)) {
            return None;
        }
        return Some(format!("removes the record of {job}"));
    }
    if let (Spot::Record(job), None) = (&change.spot, &change.before)
        && parse_tick(job).is_some()
    {
        return Some(format!("creates {job}"));
    }
    if let (Spot::Record(job), None, Some(made)) = (&change.spot, &change.before, &change.after)
        && let Some(part) = made.record().and_then(|record| record.membership.as_ref())
        && matches!(part.role, Role::Join | Role::Finish)
    {
        return Some(format!("creates {job}"));
    }
    if let Spot::Place(Place::Group(GroupPlace::Record(id))) = &change.spot
        && let Some(before) = change.before.as_ref().and_then(|znode| znode.group())
    {
        let moves = |group: &GroupRecord| (group.stage, group.closed, group.stopped);
        let after = change.after.as_ref().and_then(|znode| znode.group());
        // A client only sets the total.
        return after.is_none_or(|after| moves(after) != moves(before)).then(|| format!("advances {id}"));
    }
    if commit.moves(change, &world.truth) {
        return None;
    }
    let Spot::Place(place) = &change.spot else { return None };
    match (place, &change.before, &change.after) {
        (Place::Assignment(worker, job), None, Some(_)) => Some(format!("assigns {job} to {worker}")),
        (Place::Assignment(worker, job), Some(_), None) if others(*worker) => {
            Some(format!("takes back {job} from {worker}"))
        }
        (Place::Inbox(worker), Some(_), None) if others(*worker) => {
            Some(format!("removes the inbox of {worker}"))
        }
        (Place::DelayedEntry(_, job), Some(_), None) => {
            let is_ready = |change: &Change| {
                matches!(&change.spot, Spot::Place(Place::Ready(entry)) if entry.job() == job)
                    && change.after.is_some()
            };
            commit.changes.iter().any(is_ready).then(|| format!("promotes {job}"))
        }
        (_, _, _) => None,
    }
}

/// Whether the change counts a removal in its bucket.
fn counts(change: &Change) -> bool {
    matches!((&change.spot, &change.after), (Spot::Place(Place::Other), Some(_)))
}

fn is_removal(change: &Change) -> bool {
    matches!((&change.spot, &change.after), (Spot::Record(_), None))
}

#[cfg(test)]
mod tests {
    use crate::history::rules::fixture::{LEADER, OTHER, Story, W1, W2, session_of};

    #[test]
    fn a_fenced_assignment_and_a_close_by_the_worker_are_allowed() {
        let mut story = Story::with_workers();
        story.submit("a");
        story.assign("a", W1);
        story.succeed("a", W1);
        story.assert_keeps("S3");
    }

    #[test]
    fn a_record_that_is_removed_without_a_fence_is_found() {
        let mut story = Story::new();
        story.submit("a");
        story.cancel("a");
        story.delete(&["/jobs/1f/e/a"]);
        story.assert_breaks("S3");
        let mut story = Story::new();
        story.submit("a");
        story.cancel("a");
        story.pass(60_000);
        story.invoke_purge();
        story.delete(&["/jobs/1f/e/a"]);
        story.assert_keeps("S3");
    }

    #[test]
    fn an_assignment_without_a_fence_is_found() {
        let mut story = Story::with_workers();
        story.submit("a");
        story.assign_by("a", W1, LEADER, None);
        story.assert_breaks("S3");
    }

    #[test]
    fn an_assignment_by_another_session_under_the_leaders_epoch_is_found() {
        let mut story = Story::with_workers();
        story.submit("a");
        story.assign_by("a", W1, OTHER, Some(1));
        story.assert_breaks("S3");
    }

    #[test]
    fn an_assignment_taken_back_without_a_fence_is_found() {
        let mut story = Story::with_workers();
        story.submit("a");
        story.assign("a", W1);
        story.lose_by("a", W1, LEADER, None);
        story.assert_breaks("S3");
    }

    #[test]
    fn a_promotion_without_a_fence_is_found() {
        let mut story = Story::with_workers();
        story.submit("a");
        story.assign("a", W1);
        story.fail("a", W1);
        story.promote_by("a", OTHER, None);
        story.assert_breaks("S3");
    }

    #[test]
    fn a_takeover_by_the_new_worker_is_allowed_and_one_by_another_session_is_found() {
        for (session, keeps) in [(session_of(W2), true), (OTHER, false)] {
            let mut story = Story::new();
            story.register(W1, "n1");
            story.register_to_take_over(W2, "n2");
            story.submit("a");
            story.assign("a", W1);
            story.take_over_by("a", (W1, W2), session, |_| {});
            if keeps { story.assert_keeps("S3") } else { story.assert_breaks("S3") }
        }
    }
}
