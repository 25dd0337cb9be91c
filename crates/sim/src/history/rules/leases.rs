//! S9, for attempts that a leader takes from live workers: none is closed before its lease has passed since the last
//! change of its assignment.
//!
//! The rule uses ZooKeeper's order and one clock, which no process of the cluster has. A worker that ends its own
//! attempt when the lease is over may be earlier, because its clock starts when it sends a renewal.

use std::collections::BTreeMap;
use std::time::Duration;

use bellwether_core::job::AttemptOutcome;
use bellwether_core::name::JobId;
use bellwether_core::path::Place;
use bellwether_core::time::as_millis;

use super::Predicate;
use crate::history::checker::{Found, Step, World};
use crate::history::truth::{Commit, Spot};

#[derive(Default)]
pub(super) struct Leases {
    /// When the lease of each assigned job ends.
    until: BTreeMap<JobId, u64>,
}

impl Predicate for Leases {
    fn observe(&mut self, step: &Step<'_>, world: &World, found: &mut Found<'_>) {
        let Some(commit) = step.commit else { return };
        if commit.epoch_checked().is_some() {
            self.taken(commit, world.now, found);
        }
        for change in &commit.changes {
            let Spot::Place(Place::Assignment(_, job)) = &change.spot else { continue };
            match change.after.as_ref().and_then(|znode| znode.assignment()) {
                Some(assignment) => {
                    let lease: Duration = assignment.lease;
                    self.until.insert(job.clone(), world.now.saturating_add(as_millis(lease)));
                }
                None => {
                    self.until.remove(job);
                }
            }
        }
    }
}

impl Leases {
    fn taken(&self, commit: &Commit, now: u64, found: &mut Found<'_>) {
        for change in &commit.changes {
            let (Spot::Record(job), Some(record)) =
                (&change.spot, change.after.as_ref().and_then(|znode| znode.record()))
            else {
                continue;
            };
            let expired = record.last.is_some_and(|last| last.how == AttemptOutcome::LeaseExpired);
            let before = change.before.as_ref().and_then(|znode| znode.record());
            let closes = before.is_none_or(|before| before.attempts != record.attempts);
            match self.until.get(job) {
                Some(until) if expired && closes && now < *until => {
                    found.push(format!(
                        "{job} was taken back at {now} ms, before its lease ended at {until} ms"
                    ));
                }
                Some(_) | None => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::history::rules::fixture::{Story, W1};

    fn assigned() -> Story {
        let mut story = Story::with_workers();
        story.submit("a");
        story.assign("a", W1);
        story
    }

    #[test]
    fn an_attempt_taken_back_after_its_lease_is_allowed() {
        let mut story = assigned();
        story.pass(300_000);
        story.revoke("a", W1);
        story.assert_keeps("S9");
    }

    #[test]
    fn an_attempt_taken_back_before_its_lease_is_found() {
        let mut story = assigned();
        story.pass(299_000);
        story.revoke("a", W1);
        story.assert_breaks("S9");
    }
}
