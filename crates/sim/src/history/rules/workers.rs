//! S14: a restarted worker inherits nothing.
//!
//! A worker id is registered once, together with its inbox. Nothing is assigned to an id that is not registered, and
//! its jobs run in the process that registered it.

use std::collections::BTreeMap;

use bellwether_core::name::{NodeId, WorkerId};
use bellwether_core::path::{self, Place};

use super::Predicate;
use crate::history::checker::{Found, Step, World};
use crate::history::event::{EventKind, Life, RunStep};
use crate::history::truth::{Change, Commit, Spot};

#[derive(Default)]
pub(super) struct Workers {
    /// Number of processes of each node so far.
    processes: BTreeMap<NodeId, u32>,
    /// The process that registered each worker.
    registered: BTreeMap<WorkerId, u32>,
}

impl Predicate for Workers {
    fn observe(&mut self, step: &Step<'_>, world: &World, found: &mut Found<'_>) {
        if let Some(commit) = step.commit {
            for change in &commit.changes {
                self.changed(change, commit, world, found);
            }
        }
        match step.event {
            EventKind::Node { node, is: Life::Started } => {
                *self.processes.entry(node.clone()).or_default() += 1
            }
            EventKind::Run { worker, job, step: RunStep::Started, .. } => {
                let node = world.truth.worker(*worker).and_then(|worker| worker.node.as_ref());
                let process = node.map(|node| self.process(node));
                if process != self.registered.get(worker).copied() {
                    found.push(format!("{job} runs under {worker}, which another process registered"));
                }
            }
            EventKind::Node { .. }
            | EventKind::Link { .. }
            | EventKind::LeaderWrites { .. }
            | EventKind::Invoke { .. }
            | EventKind::Return { .. }
            | EventKind::Leadership { .. }
            | EventKind::Run { step: RunStep::Ended | RunStep::Said(_), .. }
            | EventKind::Txn { .. }
            | EventKind::Refused { .. }
            | EventKind::Evicted { .. }
            | EventKind::Healed => {}
        }
    }
}

impl Workers {
    fn process(&self, node: &NodeId) -> u32 {
        self.processes.get(node).copied().unwrap_or_default()
    }

    fn changed(&mut self, change: &Change, commit: &Commit, world: &World, found: &mut Found<'_>) {
        match (&change.spot, &change.before, &change.after) {
            (Spot::Place(Place::Worker(id)), None, Some(after)) => {
                let node = after.worker().map(|info| &info.node);
                let process = node.map_or(0, |node| self.process(node));
                if self.registered.insert(*id, process).is_some() {
                    found.push(format!("{id} was registered a second time"));
                }
                let inbox = commit.change_of(&path::inbox(*id));
                if after.owner == 0 || inbox.is_none_or(|inbox| inbox.after.is_none()) {
                    found.push(format!("{id} was registered without an inbox, or with a persistent znode"));
                }
            }
            (Spot::Place(Place::Assignment(worker, job)), None, Some(_)) => {
                if !world.truth.worker(*worker).is_some_and(|worker| worker.registered && worker.inbox) {
                    found.push(format!("{job} was assigned to {worker}, which is not registered"));
                }
            }
            (_, _, _) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::history::event::{Life, RunStep};
    use crate::history::rules::fixture::{Story, W1, W2};

    #[test]
    fn a_worker_may_run_its_assigned_jobs() {
        let mut story = Story::with_workers();
        story.submit("a");
        story.assign("a", W1);
        story.run("a", W1, RunStep::Started);
        story.assert_keeps("S14");
    }

    #[test]
    fn an_id_that_is_used_again_is_found() {
        let mut story = Story::with_workers();
        story.unregister(W1);
        story.register(W1, "n1");
        story.assert_breaks("S14");
    }

    #[test]
    fn an_assignment_to_a_worker_that_left_is_found() {
        let mut story = Story::with_workers();
        story.submit("a");
        story.unregister(W2);
        story.assign("a", W2);
        story.assert_breaks("S14");
    }

    #[test]
    fn a_run_in_the_next_process_is_found() {
        let mut story = Story::with_workers();
        story.submit("a");
        story.assign("a", W1);
        story.node("n1", Life::Killed);
        story.node("n1", Life::Started);
        story.run("a", W1, RunStep::Started);
        story.assert_breaks("S14");
    }
}
