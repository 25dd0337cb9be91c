//! S7: a group's join is created once, after its last member ended; the join of a stopped group is created immediately.
//!
//! The rule reads the records of the jobs, not the places and marks that the leader counts.
//!
//! | change | condition |
//! | --- | --- |
//! | a member is created | its group is open and not closed, and has no total at or below the member's number |
//! | a member or its sub-jobs are open | it has its place and no mark |
//! | a member and its sub-jobs have ended | it has one mark, with how it ended, and no place |
//! | a group advances | by one stage, never back; this transaction, and no other, creates the job of the next stage |
//! | it leaves *open* without being stopped | all members up to its total, their sub-jobs and its parent have ended |
//! | it leaves *joining* or *finishing* | its join, or its parent's finished job, has ended |
//! | it is stopped | a member failed and it is fail-fast, its parent failed, or its parent's group was stopped |
//! | it is done | its parent has ended and, if it was stopped, all of its members have |
//! | its total changes | it had none; or it is closed, had a higher total, and has exactly this many members |
//! | its list of further groups grows | by one group, which this transaction creates; its parent is open |
//! | a further group is created | the first group lists its kind |
//! | a further group is done | it has one mark in the first group |
//! | a first group finishes or is done | all of its further groups are done |
//!
//! A member that is retried after its group has advanced is no longer counted.

use bellwether_core::group::{End, FirstGroup, GroupRecord, Mark, Parent, Stage, Stop};
use bellwether_core::job::{JobRecord, Membership, Role};
use bellwether_core::name::{GroupId, JobId};
use bellwether_core::path::{self, GroupPlace, Place};

use super::Predicate;
use crate::history::checker::{Found, Step, World};
use crate::history::truth::{Change, Commit, Spot, Truth, part};

#[derive(Default)]
pub(super) struct Joins;

impl Predicate for Joins {
    fn observe(&mut self, step: &Step<'_>, world: &World, found: &mut Found<'_>) {
        let (Some(commit), truth) = (step.commit, &world.truth) else { return };
        for change in &commit.changes {
            let told = match &change.spot {
                Spot::Record(job) => record_changed(job, change, commit, truth),
                Spot::Place(Place::Group(GroupPlace::Record(group))) => {
                    group_changed(group, change, commit, truth)
                }
                Spot::Place(Place::Group(GroupPlace::Member(group, number))) => member(group, *number, truth),
                Spot::Place(Place::Group(GroupPlace::Mark(group, mark, _))) => match mark {
                    Mark::Member(number) => member(group, *number, truth),
                    Mark::Further(number) => further_marked(group, *number, truth),
                    Mark::Parent | Mark::Join | Mark::Finish => Ok(()),
                },
                Spot::Quarantine(_)
                | Spot::Epoch
                | Spot::Candidate
                | Spot::Retention
                | Spot::Place(
                    Place::Ready(_)
                    | Place::ReadyClass(_)
                    | Place::ReadySlot(..)
                    | Place::DelayedEntry(..)
                    | Place::Worker(_)
                    | Place::Inbox(_)
                    | Place::Assignment(..)
                    | Place::Turn(..)
                    | Place::Schedule(_)
                    | Place::SegmentChunk(..)
                    | Place::Other,
                ) => Ok(()),
            };
            if let Err(why) = told {
                found.push(why);
            }
        }
    }
}

type Verdict = Result<(), String>;

fn record_changed(job: &JobId, change: &Change, commit: &Commit, truth: &Truth) -> Verdict {
    let either = change.after.as_ref().or(change.before.as_ref()).and_then(|znode| znode.record());
    let Some(Membership { group, role, .. }) = either.and_then(|record| record.membership.as_ref()) else {
        return parent_ended(job, change, truth);
    };
    let made = change.before.is_none();
    match role {
        Role::Member(number) if made => {
            let Some(record) = truth.group(group) else {
                return Err(format!("{job} was created without its group {group}"));
            };
            let lane = either.and_then(|record| record.placement.lane.as_ref());
            record.admits(group, *number, lane).map_err(|why| format!("{job} was created: {why}"))?;
            if !commit.checks.iter().any(|(checked, _)| *checked == path::group(group)) {
                return Err(format!("{job} was created without a check of its group"));
            }
            member(group, *number, truth)?;
        }
        Role::Member(number) => member(group, *number, truth)?,
        Role::Join | Role::Finish if made => {
            let stage = |znode: &Option<crate::history::truth::Znode>| {
                znode.as_ref().and_then(|znode| znode.group()).map(|group| group.stage)
            };
            let moved = commit.change_of(&path::group(group));
            let fits = moved.is_some_and(|moved| {
                let is = if *role == Role::Join { Stage::Joining } else { Stage::Finishing };
                stage(&moved.after) == Some(is) && stage(&moved.before) != Some(is)
            });
            if !fits {
                return Err(format!("{job} was created, but {group} did not advance to its stage"));
            }
        }
        Role::Join | Role::Finish => {}
    }
    parent_ended(job, change, truth)
}

/// Checks that the end of a job with sub-jobs is marked in their group.
fn parent_ended(job: &JobId, change: &Change, truth: &Truth) -> Verdict {
    let Some(record) = change.after.as_ref().and_then(|znode| znode.record()) else { return Ok(()) };
    let Some(end) = End::of(&record.state).filter(|_| record.spawned) else { return Ok(()) };
    let nested = GroupId::of_sub_jobs(job, record);
    let Some(there) = truth.group(&nested).and_then(|_| truth.groups().get(&nested)) else {
        return Err(format!("{job} has sub-jobs without a group"));
    };
    if there.ends(Mark::Parent).collect::<Vec<_>>() == [end] {
        Ok(())
    } else {
        Err(format!("{job} ended, but the group {nested} of its sub-jobs has no matching mark"))
    }
}

/// Checks the place and the marks of a member.
fn member(group: &GroupId, number: u32, truth: &Truth) -> Verdict {
    let Some(there) = truth.groups().get(group) else { return Ok(()) };
    let place = there.places.contains(&number);
    let marks: Vec<_> = there.ends(Mark::Member(number)).collect();
    let Some(job) = there.members.get(&number) else {
        // The removal of a group deletes records before it deletes the marks.
        return if place {
            Err(format!("member {number} of {group} has a place but no record"))
        } else {
            Ok(())
        };
    };
    let Some(record) = truth.job(job) else { return Ok(()) };
    let fits = match (part(record), truth.settled(job, record)) {
        (Some(_), None) => place && marks.is_empty(),
        (Some(_), Some(end)) => !place && marks == [end],
        (None, _) => !place && marks.len() <= 1,
    };
    if fits {
        return Ok(());
    }
    let is = if record.is_terminal() { "terminal" } else { "open" };
    let place = if place { "a" } else { "no" };
    Err(format!("{job} is {is}, but has {place} place in {group} and the marks {marks:?}"))
}

fn group_changed(id: &GroupId, change: &Change, commit: &Commit, truth: &Truth) -> Verdict {
    let group = |znode: &Option<_>| {
        znode.as_ref().and_then(|znode: &crate::history::truth::Znode| znode.group()).cloned()
    };
    let wrong = |why: String| Err(format!("{id} {why}"));
    match (group(&change.before), group(&change.after)) {
        (None, Some(after)) if after.stage != Stage::Open || after.closed || after.stopped.is_some() => {
            wrong(format!("was created as {:?}", after.stage))
        }
        (None, Some(after)) if !is_listed(id, &after, truth) => {
            wrong("was created without a place in the first group of its parent".to_owned())
        }
        (Some(before), None) if !matches!(before.stage, Stage::Done { .. }) => {
            wrong(format!("was removed as {:?}", before.stage))
        }
        (None, _) | (Some(_), None) => Ok(()),
        (Some(before), Some(after)) => went_on(id, &before, &after, commit, truth)
            .or_else(|why| wrong(format!("{why}: from {before:?} to {after:?}"))),
    }
}

fn went_on(
    id: &GroupId,
    before: &GroupRecord,
    after: &GroupRecord,
    commit: &Commit,
    truth: &Truth,
) -> Result<(), &'static str> {
    let rules = |group: &GroupRecord| {
        // An open parent may request a finished job later.
        let parent = group.parent.clone().map(|parent| Parent { finish: false, ..parent });
        (group.kind.clone(), group.fail_fast, group.join, parent, group.token)
    };
    if rules(before) != rules(after) {
        return Err("changed its options");
    }
    let finishes = |group: &GroupRecord| group.parent.as_ref().is_some_and(|parent| parent.finish);
    let extended = before.further != after.further || finishes(before) != finishes(after);
    if extended && !extended_rightly(id, before, after, commit, truth) {
        return Err("changed its further groups or its finished job without its parent");
    }
    if (before.closed && !after.closed) || (before.stopped.is_some() && before.stopped != after.stopped) {
        return Err("was reopened");
    }
    let members: Vec<_> = truth.counted(id).collect();
    match (before.total, after.total) {
        (was, is) if was == is => {}
        (None, Some(_)) if before.parent.is_none() => {}
        // The end of the parent's handler sets the total, too.
        (None, Some(_)) if !before.closed => {}
        (None, Some(total)) if total as usize == members.len() => {}
        (Some(was), Some(is)) if before.closed && is < was && is as usize == members.len() => {}
        (_, _) => return Err("changed its total"),
    }
    if before.stopped != after.stopped && !stopped_rightly(after, truth, id) {
        return Err("was stopped without a reason");
    }
    if before.stage == after.stage {
        return Ok(());
    }
    let at = match after.stage {
        Stage::Done { at } => at,
        Stage::Open | Stage::Joining | Stage::Finishing => before.created_at,
    };
    if before.next_stage(at) != after.stage {
        return Err("did not advance to its next stage");
    }
    let job = after.stage_job(id, at).ok().flatten().map(|(job, _)| job);
    if let Some(job) = job
        && commit
            .change_of(&path::record(&job))
            .is_none_or(|made| made.before.is_some() || made.after.is_none())
    {
        return Err("advanced to a stage without creating its job");
    }
    let is_over =
        |job: Option<JobId>| job.and_then(|job| truth.job(&job)).is_some_and(JobRecord::is_terminal);
    let parent_is_over = after.parent.as_ref().is_none_or(|parent| is_over_for_good(parent, truth));
    let further_open = after.further_groups(id).any(|further| is_open(&further, truth));
    let all_over = members.iter().all(|(_, _, end)| end.is_some());
    match before.stage {
        Stage::Open if after.stopped.is_some() => {}
        Stage::Open if !parent_is_over => return Err("advanced before its parent ended"),
        Stage::Open => {
            let below =
                members.iter().filter(|(number, ..)| after.closed || Some(*number) < after.total).count();
            if !all_over || after.total.is_none_or(|total| below != total as usize) {
                return Err("advanced before all members ended");
            }
        }
        Stage::Joining if !is_over(after.join_id(id).ok()) => return Err("advanced before its join ended"),
        Stage::Finishing if !is_over(after.parent.as_ref().and_then(|it| it.finish_id(id).ok())) => {
            return Err("advanced before its finished job ended");
        }
        Stage::Joining | Stage::Finishing | Stage::Done { .. } => {}
    }
    match after.stage {
        Stage::Finishing | Stage::Done { .. } if !parent_is_over => Err("advanced before its parent ended"),
        Stage::Finishing | Stage::Done { .. } if further_open => Err("advanced before its further groups"),
        Stage::Done { .. } if after.stopped.is_some() && !all_over => Err("is done before its members ended"),
        Stage::Done { .. } => {
            parent_is_told(after, truth).map_err(|_| "is done without a mark in its parent's group")
        }
        Stage::Open | Stage::Joining | Stage::Finishing => Ok(()),
    }
}

fn is_open(group: &GroupId, truth: &Truth) -> bool {
    truth.group(group).is_some_and(|group| !group.is_done())
}

fn is_over_for_good(parent: &Parent, truth: &Truth) -> bool {
    let record = truth.job(&parent.job);
    record.is_some_and(|record| record.is_terminal() && record.generation == parent.generation)
}

/// Returns whether the first group of the parent lists this group; true for all groups but further ones.
fn is_listed(id: &GroupId, group: &GroupRecord, truth: &Truth) -> bool {
    let Some(first) = group.parent.as_ref().and_then(|parent| parent.first.as_ref()) else { return true };
    let listed = truth.group(&first.group).and_then(|there| there.number_of(&group.kind));
    listed == Some(first.number) && *id == first.group.further(first.number)
}

/// Returns whether an open parent extended its first group: by a finished job, or by one group that is created with it.
fn extended_rightly(
    id: &GroupId,
    before: &GroupRecord,
    after: &GroupRecord,
    commit: &Commit,
    truth: &Truth,
) -> bool {
    let Some(parent) = &after.parent else { return false };
    let keeps = after.further.starts_with(&before.further)
        && before.parent.as_ref().is_some_and(|before| parent.finish || !before.finish);
    let mut added = after.further_groups(id).skip(before.further.len());
    let created = added
        .next()
        .is_none_or(|group| commit.change_of(&path::group(&group)).is_some_and(|made| made.before.is_none()));
    keeps && created && added.next().is_none() && !is_over_for_good(parent, truth)
}

/// Checks the mark of a further group in the first group.
fn further_marked(first: &GroupId, number: u32, truth: &Truth) -> Verdict {
    // The first group is removed, with its marks, before its further groups.
    if truth.group(first).is_none() {
        return Ok(());
    }
    let group = first.further(number);
    let marks = truth.groups().get(first).map_or(0, |there| there.ends(Mark::Further(number)).count());
    match truth.group(&group) {
        Some(record) if record.is_done() != (marks == 1) => {
            Err(format!("{group} is {:?} and has {marks} marks in {first}", record.stage))
        }
        Some(_) | None => Ok(()),
    }
}

fn parent_is_told(group: &GroupRecord, truth: &Truth) -> Verdict {
    if let Some(FirstGroup { group: first, number }) =
        group.parent.as_ref().and_then(|parent| parent.first.as_ref())
    {
        return further_marked(first, *number, truth);
    }
    let outer = group.parent.as_ref().and_then(|parent| parent.membership.as_ref());
    match outer.map(|outer| (&outer.group, outer.role)) {
        Some((outer, Role::Member(number))) => member(outer, number, truth),
        Some((_, Role::Join | Role::Finish)) | None => Ok(()),
    }
}

/// Returns whether the recorded reason of a stop is true.
fn stopped_rightly(group: &GroupRecord, truth: &Truth, id: &GroupId) -> bool {
    let failed = |end| matches!(end, Some(End::Cancelled | End::Dead));
    let parent = group.parent.as_ref();
    match group.stopped {
        None => false,
        Some(Stop::Member(number)) => {
            group.fail_fast && truth.counted(id).any(|(of, _, end)| of == number && failed(end))
        }
        Some(Stop::Parent) => {
            parent.and_then(|parent| truth.job(&parent.job)).is_some_and(|job| failed(End::of(&job.state)))
        }
        Some(Stop::Outer) => {
            let outer = parent.and_then(|parent| parent.membership.as_ref());
            outer.and_then(|outer| truth.group(&outer.group)).is_some_and(|outer| outer.stopped.is_some())
        }
        // No simulated run lasts a day, and no simulated client abandons a group.
        Some(Stop::Abandoned) => false,
    }
}

#[cfg(test)]
mod tests {
    use bellwether_core::group::{GroupRecord, Stage, Stop};

    use crate::history::rules::fixture::{Story, W1};

    /// Creates a story with two members, a total and workers.
    fn sealed() -> Story {
        let mut story = Story::with_workers();
        story.group("g", |_| {});
        story.member("g", 0);
        story.member("g", 1);
        story.set_group("g", |group| group.total = Some(2));
        story
    }

    fn ended() -> Story {
        let mut story = sealed();
        for member in ["sum:g:0", "sum:g:1"] {
            story.assign(member, W1);
            story.succeed(member, W1);
        }
        story
    }

    fn joined(group: &mut GroupRecord) {
        group.stage = Stage::Joining;
    }

    fn done(group: &mut GroupRecord) {
        group.stage = Stage::Done { at: bellwether_core::time::WallMillis(1) };
    }

    #[test]
    fn a_join_after_all_members_is_allowed() {
        let mut story = ended();
        story.advance_group("g", joined);
        story.assign("sum.join:@g", W1);
        story.succeed("sum.join:@g", W1);
        story.advance_group("g", done);
        story.assert_keeps("S7");
    }

    #[test]
    fn a_join_that_is_too_early_is_found() {
        let mut story = sealed();
        story.assign("sum:g:0", W1);
        story.succeed("sum:g:0", W1);
        story.advance_group("g", joined);
        story.assert_breaks("S7");
    }

    #[test]
    fn a_join_of_fewer_members_than_the_total_is_found() {
        let mut story = Story::with_workers();
        story.group("g", |group| group.total = Some(1));
        story.advance_group("g", joined);
        story.assert_breaks("S7");
    }

    #[test]
    fn a_join_without_its_stage_and_a_stage_without_its_join_are_found() {
        let mut story = ended();
        story.make_join("g");
        story.assert_breaks("S7");
        let mut story = ended();
        story.set_group("g", joined);
        story.assert_breaks("S7");
    }

    #[test]
    fn a_member_created_after_its_group_advanced_is_found() {
        let mut story = ended();
        story.advance_group("g", joined);
        story.member("g", 2);
        story.assert_breaks("S7");
    }

    #[test]
    fn a_member_at_the_total_is_found() {
        let mut story = sealed();
        story.member("g", 2);
        story.assert_breaks("S7");
    }

    #[test]
    fn a_member_that_keeps_its_place_or_is_counted_twice_is_found() {
        let mut story = sealed();
        story.assign("sum:g:0", W1);
        story.succeed_but_stay_in_group("sum:g:0", W1);
        story.assert_breaks("S7");
        let mut story = ended();
        story.mark_twice("g", 0);
        story.assert_breaks("S7");
    }

    #[test]
    fn a_stopped_group_joins_immediately_and_is_done_when_no_member_is_open() {
        let stopped = |group: &mut GroupRecord| {
            group.stopped = Some(Stop::Member(0));
            group.closed = true;
            group.stage = Stage::Joining;
        };
        let story = |fail_fast| {
            let mut story = Story::with_workers();
            story.group("g", |group| (group.fail_fast, group.total) = (fail_fast, Some(2)));
            story.member("g", 0);
            story.member("g", 1);
            story.cancel("sum:g:0");
            story.advance_group("g", stopped);
            story.assign("sum.join:@g", W1);
            story.succeed("sum.join:@g", W1);
            story
        };
        let mut fine = story(true);
        fine.cancel("sum:g:1");
        fine.advance_group("g", done);
        fine.assert_keeps("S7");
        let mut early = story(true);
        early.advance_group("g", done);
        early.assert_breaks("S7");
        story(false).assert_breaks("S7");
    }

    #[test]
    fn a_parent_ends_with_its_sub_jobs() {
        let spawned = || {
            let mut story = Story::with_workers();
            story.submit("p");
            story.assign("p", W1);
            let nested = story.spawn("p", W1);
            story.member(&nested, 0);
            story.succeed("p", W1);
            (story, nested)
        };
        let (mut story, nested) = spawned();
        let member = format!("sum:{nested}:0");
        story.assign(&member, W1);
        story.succeed(&member, W1);
        story.set_group_by_leader(&nested, |group| group.closed = true);
        story.set_group_by_leader(&nested, |group| group.total = Some(1));
        story.advance_group(&nested, joined);
        story.assert_keeps("S7");
        let (mut story, nested) = spawned();
        story.set_group_by_leader(&nested, |group| group.closed = true);
        story.set_group_by_leader(&nested, |group| group.total = Some(0));
        story.assert_breaks("S7");
    }

    /// A parent with two empty groups, which has succeeded. Returns the ids of the first and the further group.
    fn two_groups() -> (Story, String, String) {
        let mut story = Story::with_workers();
        story.submit("p");
        story.assign("p", W1);
        let first = story.spawn("p", W1);
        let further = story.spawn_further("p", &first);
        story.succeed("p", W1);
        (story, first, further)
    }

    fn end_first(story: &mut Story, first: &str) {
        story.set_group_by_leader(first, |group| group.closed = true);
        story.set_group_by_leader(first, |group| group.total = Some(0));
        story.advance_group(first, joined);
        let join = format!("sum.join:@{first}");
        story.assign(&join, W1);
        story.succeed(&join, W1);
        story.advance_group(first, done);
    }

    #[test]
    fn a_first_group_is_done_after_its_further_groups() {
        let (mut story, first, further) = two_groups();
        story.end_further(&further, true);
        end_first(&mut story, &first);
        story.assert_keeps("S7");
        let (mut early, first, _) = two_groups();
        end_first(&mut early, &first);
        early.assert_breaks("S7");
        let (mut unmarked, _, further) = two_groups();
        unmarked.end_further(&further, false);
        unmarked.assert_breaks("S7");
    }

    #[test]
    fn a_further_group_that_is_created_after_its_parents_end_is_found() {
        let mut story = Story::with_workers();
        story.submit("p");
        story.assign("p", W1);
        let first = story.spawn("p", W1);
        story.succeed("p", W1);
        story.spawn_further("p", &first);
        story.assert_breaks("S7");
    }

    #[test]
    fn a_group_that_advances_without_a_fence_is_found() {
        let mut story = ended();
        story.set_group("g", joined);
        story.assert_breaks("S3");
        let mut story = ended();
        story.advance_group("g", joined);
        story.assert_keeps("S3");
    }
}
