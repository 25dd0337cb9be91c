//! S8: a tick has at most one job, and exactly one unless it was skipped, which is recorded.
//!
//! A tick's job is created by the transaction that moves its schedule's cursor past it. For each instant that the
//! cursor moves past, either the job is created there, or the schedule records the instant as skipped. The cursor never
//! moves back. Ids are used once, so no instant has two jobs.
//!
//! The ticks of a schedule with a job id open that job again instead. This happens only after the job and its sub-jobs have
//! ended, so several such schedules and clients start it at most once at a time.

use std::collections::{BTreeMap, BTreeSet};

use bellwether_core::name::{JobId, ScheduleId};
use bellwether_core::path::Place;
use bellwether_core::schedule::{ScheduleRecord, parse_tick};
use bellwether_core::time::WallMillis;

use super::Predicate;
use crate::history::checker::{Found, Step, World};
use crate::history::truth::{Commit, Spot};

/// Number of instants that are checked in one move of a cursor. If more are skipped, only the first ones and the last
/// one are checked.
const FOLLOWED: usize = 1_000;

#[derive(Default)]
pub(super) struct Ticks;

impl Predicate for Ticks {
    fn observe(&mut self, step: &Step<'_>, world: &World, found: &mut Found<'_>) {
        let Some(commit) = step.commit else { return };
        let mut made = made(commit);
        let mut started = started(commit, world, found);
        for change in &commit.changes {
            let Spot::Place(Place::Schedule(schedule)) = &change.spot else { continue };
            let record = |znode: &Option<_>| {
                znode.as_ref().and_then(|znode: &crate::history::truth::Znode| znode.schedule()).cloned()
            };
            let (Some(before), Some(after)) = (record(&change.before), record(&change.after)) else {
                continue;
            };
            let tick = match &before.spec.template.job_id {
                None => made.remove(schedule),
                // The transaction that starts the job moves one cursor with a tick.
                Some(job) => after.last_tick.filter(|_| after.ticked > before.ticked && started.remove(job)),
            };
            if let Err(why) = decided(&before, &after, tick) {
                found.push(format!("{schedule}: {why}"));
            }
        }
        for (schedule, at) in made {
            found.push(format!("the job of {schedule} at {at} was created without moving the cursor"));
        }
    }
}

/// Returns the jobs that a transaction creates or opens again. A job must not be opened again while a part of it is open.
fn started(commit: &Commit, world: &World, found: &mut Found<'_>) -> BTreeSet<JobId> {
    let mut started = BTreeSet::new();
    for change in &commit.changes {
        let Spot::Record(job) = &change.spot else { continue };
        let record = |znode: &Option<_>| {
            znode.as_ref().and_then(|znode: &crate::history::truth::Znode| znode.record()).cloned()
        };
        let Some(after) = record(&change.after) else { continue };
        match record(&change.before) {
            None if change.before.is_none() => drop(started.insert(job.clone())),
            Some(before) if after.generation > before.generation => {
                if world.truth.settled(job, &before).is_none() {
                    found.push(format!("{job} was opened again while it or a sub-job was open"));
                }
                started.insert(job.clone());
            }
            Some(_) | None => {}
        }
    }
    started
}

/// Returns the ticks whose jobs a transaction creates.
pub(super) fn made(commit: &Commit) -> BTreeMap<ScheduleId, WallMillis> {
    let made = commit.changes.iter().filter_map(|change| match &change.spot {
        Spot::Record(job) if change.before.is_none() && change.after.is_some() => parse_tick(job),
        _ => None,
    });
    made.collect()
}

fn decided(before: &ScheduleRecord, after: &ScheduleRecord, tick: Option<WallMillis>) -> Result<(), String> {
    if after.cursor < before.cursor {
        return Err(format!("the cursor moved back from {} to {}", before.cursor, after.cursor));
    }
    if before.paused && tick.is_some() {
        return Err("it ticked although it is paused".to_owned());
    }
    let skipped = after.last_skipped.filter(|_| after.skipped > before.skipped);
    let calendar = before.spec.when.calendar().map_err(|error| error.to_string())?;
    let moved_over = calendar.ticks_after(before.cursor).take_while(|at| *at <= after.cursor);
    for at in moved_over.take(FOLLOWED) {
        let over = skipped.is_some_and(|skipped| (skipped.ticks.from..=skipped.ticks.through).contains(&at));
        match (tick == Some(at), over) {
            (true, false) | (false, true) => {}
            (true, true) => return Err(format!("the tick at {at} has a job and is recorded as skipped")),
            (false, false) => {
                return Err(format!("the tick at {at} has no job and is not recorded as skipped"));
            }
        }
    }
    match tick {
        Some(at) if calendar.last_through(at) != Some(at) || at > after.cursor || at <= before.cursor => {
            Err(format!("a job for {at}, which is not a tick in this move of the cursor"))
        }
        Some(_) | None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use crate::history::rules::fixture::{Story, W1};

    #[test]
    fn a_job_for_each_tick_and_skipped_ticks_are_allowed() {
        let mut story = Story::new();
        story.schedule("a");
        story.tick("a", 10, &[10]);
        story.skip("a", 20);
        story.tick("a", 30, &[30]);
        story.assert_keeps("S8");
    }

    #[test]
    fn a_fenced_tick_is_allowed() {
        let mut story = Story::new();
        story.schedule("a");
        story.tick("a", 10, &[10]);
        story.assert_keeps("S3");
    }

    #[test]
    fn a_job_with_an_id_is_opened_again_by_ticks_only_after_its_end() {
        let shared = || {
            let mut story = Story::with_workers();
            story.schedule_of("a", Some("shared"));
            story.schedule_of("b", Some("shared"));
            story.tick("a", 10, &[10]);
            story
        };
        let mut story = shared();
        story.skip("b", 10);
        story.assign("shared", W1);
        story.succeed("shared", W1);
        story.tick_again("b", 20);
        story.assert_keeps("S8");
        let mut story = shared();
        story.assign("shared", W1);
        story.tick_again("b", 10);
        story.assert_breaks("S8");
        let mut story = shared();
        story.tick("b", 10, &[]);
        story.assert_breaks("S8");
    }

    #[test]
    fn a_tick_that_is_left_out_is_found() {
        let mut story = Story::new();
        story.schedule("a");
        story.tick("a", 20, &[20]);
        story.assert_breaks("S8");
    }

    #[test]
    fn a_job_without_a_move_of_the_cursor_is_found() {
        let mut story = Story::new();
        story.schedule("a");
        story.submit("a@1970-01-01T00:00:10Z");
        story.assert_breaks("S8");
    }

    #[test]
    fn a_move_without_a_job_is_found() {
        let mut story = Story::new();
        story.schedule("a");
        story.tick("a", 10, &[]);
        story.assert_breaks("S8");
    }

    #[test]
    fn a_tick_without_a_fence_is_found() {
        let mut story = Story::new();
        story.schedule("a");
        story.submit("a@1970-01-01T00:00:10Z");
        story.assert_breaks("S3");
    }
}
