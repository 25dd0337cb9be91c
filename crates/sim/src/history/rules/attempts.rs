//! S9: attempts are 1, 2, …, n without a gap, within the policy, and each is closed once.
//!
//! | change of a record | condition |
//! | --- | --- |
//! | created | generation 1, all counts are 0 |
//! | an attempt is closed | it is the next one; its assignment is deleted in the same transaction; it gives counts and verdict; losses are excused only of workers that a registration named as former ids before, and at most the limit |
//! | new generation | all counts are 0 |
//! | any other | it is cancelled, or dead after its expiry, or counts and state do not change |
//!
//! An entry names the next attempt of its record. An assignment may name an older attempt if the leader has not yet
//! seen that the job was cancelled and retried; such an assignment ends without a run.

use std::collections::BTreeSet;

use bellwether_core::budget::MAX_EXCUSED_LOSSES;
use bellwether_core::job::{AttemptEnd, AttemptOutcome, JobRecord, JobState, Verdict};
use bellwether_core::name::{JobId, WorkerId};
use bellwether_core::path::{self, Place};

use super::Predicate;
use crate::history::checker::{Found, Step, World};
use crate::history::truth::{Change, Commit, Spot, Value};

#[derive(Default)]
pub(super) struct Attempts {
    /// The former ids that registrations have named.
    former: BTreeSet<WorkerId>,
}

impl Predicate for Attempts {
    fn observe(&mut self, step: &Step<'_>, world: &World, found: &mut Found<'_>) {
        let Some(commit) = step.commit else { return };
        for change in &commit.changes {
            match &change.spot {
                Spot::Record(job) => record_changed(job, change, commit, &self.former, found),
                Spot::Place(Place::Ready(entry)) => named(entry.job(), change, world, found),
                Spot::Place(Place::DelayedEntry(_, job)) => named(job, change, world, found),
                Spot::Place(Place::Worker(_)) => {
                    let registration = change.after.as_ref().and_then(|znode| znode.worker());
                    self.former.extend(registration.into_iter().flat_map(|info| &info.former));
                }
                Spot::Quarantine(_)
                | Spot::Epoch
                | Spot::Candidate
                | Spot::Retention
                | Spot::Place(
                    Place::ReadyClass(_)
                    | Place::ReadySlot(..)
                    | Place::Inbox(_)
                    | Place::Assignment(..)
                    | Place::Turn(..)
                    | Place::Schedule(_)
                    | Place::Group(_)
                    | Place::SegmentChunk(..)
                    | Place::Other,
                ) => {}
            }
        }
    }
}

/// Checks that an entry names the next attempt.
fn named(job: &JobId, change: &Change, world: &World, found: &mut Found<'_>) {
    let Some(after) = &change.after else { return };
    let Some((znode, record)) = world.truth.record(job).and_then(|znode| Some((znode, znode.record()?)))
    else {
        return;
    };
    let next = (record.generation, record.attempts + 1, znode.version);
    match &*after.value {
        Value::Entry(entry) if (entry.generation, entry.attempt, entry.fencing_token) != next => {
            let named = (entry.generation, entry.attempt, entry.fencing_token);
            found.push(format!(
                "the entry of {job} names generation, attempt and fencing token {named:?} instead of {next:?}"
            ));
        }
        _ => {}
    }
}

fn record_changed(
    job: &JobId,
    change: &Change,
    commit: &Commit,
    former: &BTreeSet<WorkerId>,
    found: &mut Found<'_>,
) {
    let Some(after) = change.after.as_ref().and_then(|znode| znode.record()) else { return };
    let Some(before) = &change.before else {
        if (after.generation, counts(after), after.excused) != (1, (0, 0, 0), 0) {
            found.push(format!("{job} was created with counts {:?}", counts(after)));
        }
        return;
    };
    let Some(before) = before.record() else { return };
    let policy = &after.policy;
    if after.failures > policy.max_attempts || after.losses > policy.max_losses {
        found.push(format!("{job} exceeded its policy: counts {:?}", counts(after)));
    }
    if after.generation != before.generation {
        if (counts(after), after.excused) != ((0, 0, 0), 0) {
            found.push(format!("a new generation of {job} started with counts {:?}", counts(after)));
        }
    } else if after.attempts == before.attempts + 1 {
        match after.last {
            Some(last) if last.attempt.number == after.attempts => {
                excused(job, [before, after], former, found);
                closed(job, last, [before, after], commit, found);
            }
            Some(_) | None => {
                found.push(format!("attempt {} of {job} was closed without an end", after.attempts))
            }
        }
    } else {
        let ended = match &after.state {
            JobState::Terminal { verdict: Verdict::Cancelled, .. } => true,
            JobState::Terminal { verdict: Verdict::Dead, at } => after.is_overdue(*at),
            JobState::Terminal { verdict: Verdict::Succeeded(_), .. } | JobState::Open { .. } => false,
        };
        // A release from quarantine changes only the note of its author and the mark for the name of its entry.
        let (changed, released) = (before.changed.clone(), before.released);
        let noted = JobRecord { changed, released, ..after.clone() } == *before;
        if counts(after) != counts(before) || after.last != before.last || !(ended || noted) {
            found.push(format!(
                "the record of {job} changed outside an attempt: counts {:?}, then {:?}",
                counts(before),
                counts(after)
            ));
        }
    }
}

/// Checks the losses that a close took back.
fn excused(
    job: &JobId,
    [before, after]: [&JobRecord; 2],
    former: &BTreeSet<WorkerId>,
    found: &mut Found<'_>,
) {
    let excused = after.excused.checked_sub(before.excused);
    let survived = before.lost_workers.iter().filter(|worker| former.contains(worker)).count();
    let possible = u32::try_from(survived).unwrap_or(u32::MAX);
    if excused.is_none_or(|excused| excused > possible) || after.excused > MAX_EXCUSED_LOSSES {
        found.push(format!(
            "{job}: {} losses were excused, then {}, of {survived} workers whose process is alive",
            before.excused, after.excused
        ));
    }
}

fn closed(
    job: &JobId,
    last: AttemptEnd,
    [before, after]: [&JobRecord; 2],
    commit: &Commit,
    found: &mut Found<'_>,
) {
    let number = after.attempts;
    let assignment = commit
        .change_of(&path::assignment(last.attempt.worker, job))
        .filter(|change| change.after.is_none())
        .and_then(|change| change.before.as_ref())
        .and_then(|znode| znode.assignment());
    match assignment {
        Some(assignment) if assignment.attempt == number => {}
        // The leader assigned from old information: the attempt is handed back without a run, or lost.
        Some(_) if !matches!(last.how, AttemptOutcome::Succeeded | AttemptOutcome::Failed) => {}
        Some(assignment) => {
            found.push(format!(
                "{job}: attempt {number} of generation {} was closed, but {:?} was assigned",
                after.generation,
                assignment.key()
            ));
        }
        None => {
            let worker = last.attempt.worker;
            found.push(format!("{job}: attempt {number} was closed without an assignment to {worker}"));
        }
    }
    let failed = before.failures + u32::from(last.how == AttemptOutcome::Failed);
    let is_loss = matches!(last.how, AttemptOutcome::Lost | AttemptOutcome::LeaseExpired);
    let excused = after.excused.saturating_sub(before.excused);
    let lost = (before.losses + u32::from(is_loss)).saturating_sub(excused);
    if (after.failures, after.losses) != (failed, lost) {
        found.push(format!("{job}: {:?} after an attempt that ended {:?}", counts(after), last.how));
    }
    let spent = failed >= after.policy.max_attempts || lost >= after.policy.max_losses;
    let fits = match (&after.state, last.how) {
        (JobState::Terminal { verdict, .. }, how) => match verdict {
            Verdict::Succeeded(_) => how == AttemptOutcome::Succeeded,
            Verdict::Cancelled => how == AttemptOutcome::Cancelled,
            Verdict::Dead => match how {
                AttemptOutcome::Failed | AttemptOutcome::Lost | AttemptOutcome::LeaseExpired => spent,
                AttemptOutcome::Invalid | AttemptOutcome::Expired => true,
                AttemptOutcome::Succeeded
                | AttemptOutcome::Cancelled
                | AttemptOutcome::Released
                | AttemptOutcome::Snoozed => false,
            },
        },
        (
            JobState::Open { not_before },
            AttemptOutcome::Failed
            | AttemptOutcome::Snoozed
            | AttemptOutcome::Lost
            | AttemptOutcome::LeaseExpired,
        ) => !spent && not_before.is_some(),
        (JobState::Open { not_before }, AttemptOutcome::Released) => !spent && not_before.is_none(),
        (
            JobState::Open { .. },
            AttemptOutcome::Succeeded
            | AttemptOutcome::Cancelled
            | AttemptOutcome::Invalid
            | AttemptOutcome::Expired,
        ) => false,
    };
    if !fits {
        found.push(format!("{job}: attempt {number} ended {:?}, but the job is {:?}", last.how, after.state));
    }
}

fn counts(record: &JobRecord) -> (u32, u32, u32) {
    (record.attempts, record.failures, record.losses)
}

#[cfg(test)]
mod tests {
    /// S16
    #[test]
    fn an_end_without_an_attempt_is_a_cancel_or_an_expiry() {
        let mut story = Story::with_workers();
        story.submit_with_times("a", None, 999);
        story.expire("a");
        story.assert_keeps("S9");
        let mut story = Story::with_workers();
        story.submit_with_times("a", None, 1_000);
        story.expire("a");
        story.assert_breaks("S9");
    }

    use bellwether_core::name::WorkerId;
    use uuid::Uuid;

    use crate::history::rules::fixture::{Story, W1, W2};

    const W3: WorkerId = WorkerId::new(Uuid::from_u128(3));

    /// S20
    #[test]
    fn only_losses_of_processes_that_registered_again_are_excused() {
        for former in [vec![W1], vec![W2], vec![]] {
            let mut story = Story::with_workers();
            story.submit("a");
            story.assign("a", W1);
            story.lose("a", W1);
            story.promote("a");
            story.register_again(W3, "c", former.clone());
            story.assign("a", W2);
            story.lose_and_excuse("a", W2, &[W1]);
            if former == [W1] {
                story.assert_keeps("S9");
            } else {
                story.assert_breaks("S9");
            }
        }
    }

    #[test]
    fn a_failure_a_loss_and_a_result_are_allowed() {
        let mut story = Story::with_workers();
        story.submit("a");
        story.assign("a", W1);
        story.fail("a", W1);
        story.promote("a");
        story.assign("a", W2);
        story.lose("a", W2);
        story.promote("a");
        story.assign("a", W1);
        story.succeed("a", W1);
        story.assert_keeps("S9");
    }

    #[test]
    fn a_result_of_a_worker_without_the_assignment_is_found() {
        let mut story = Story::with_workers();
        story.submit("a");
        story.assign("a", W1);
        story.lose("a", W1);
        story.promote("a");
        story.assign("a", W2);
        story.close_record_of("a", W1);
        story.assert_breaks("S9");
    }

    #[test]
    fn a_skipped_attempt_number_is_found() {
        let mut story = Story::with_workers();
        story.submit("a");
        story.edit("a", |record| record.attempts += 2);
        story.assert_breaks("S9");
    }

    #[test]
    fn an_old_assignment_may_be_lost_but_not_have_a_result() {
        for result in [false, true] {
            let mut story = Story::with_workers();
            story.submit("a");
            story.assign("a", W1);
            story.lose("a", W1);
            story.promote("a");
            story.assign_old("a", W2, 1);
            if result {
                story.succeed("a", W2);
                story.assert_breaks("S9");
            } else {
                story.lose("a", W2);
                story.assert_keeps("S9");
            }
        }
    }
}
