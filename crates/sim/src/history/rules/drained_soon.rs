//! L9: a draining worker leaves.
//!
//! After the healing, a registration that is marked as draining is deleted within [`LATE`] plus the session's end: the
//! worker sees the mark, ends or hands back its jobs within its grace period, and gives up soon after if that fails.

use std::collections::BTreeMap;

use bellwether_core::name::WorkerId;
use bellwether_core::path::Place;

use super::Predicate;
use crate::history::checker::{Found, Step, World};
use crate::history::truth::Spot;

/// The sum of: the interval at which a worker reads its registration if every watch event was lost (30 s); the longest
/// grace period of the recorders (10 s); the time after which a drain is given up (5 s); and some seconds of slack.
const LATE: u64 = 50_000;

#[derive(Default)]
pub(super) struct DrainedSoon {
    since: BTreeMap<WorkerId, u64>,
}

impl Predicate for DrainedSoon {
    fn observe(&mut self, step: &Step<'_>, world: &World, found: &mut Found<'_>) {
        for change in step.commit.iter().flat_map(|commit| &commit.changes) {
            let Spot::Place(Place::Worker(id)) = &change.spot else { continue };
            let info = change.after.as_ref().and_then(|znode| znode.worker());
            if info.is_some_and(|info| info.draining) {
                self.since.entry(*id).or_insert(world.now);
            } else {
                self.since.remove(id);
            }
        }
        self.late(world, found);
    }

    fn finish(&mut self, world: &World, found: &mut Found<'_>) {
        self.late(world, found);
    }
}

impl DrainedSoon {
    fn late(&mut self, world: &World, found: &mut Found<'_>) {
        let Some(healed) = world.healed else { return };
        self.since.retain(|id, since| {
            let late = (*since).max(healed) + world.session_end() + LATE < world.now;
            if late {
                found.push(format!("{id} has been draining since {since} ms and has not left"));
            }
            !late
        });
    }
}

#[cfg(test)]
mod tests {
    use crate::history::event::EventKind;
    use crate::history::rules::fixture::{SESSION_END, Story, W1};

    #[test]
    fn a_draining_worker_that_stays_is_found_once_it_is_late() {
        for (healed, leaves, wait) in
            [(true, false, 60_000), (true, true, 60_000), (true, false, 20_000), (false, false, 60_000)]
        {
            let mut story = Story::with_workers();
            story.mark(W1, true);
            if healed {
                story.push(EventKind::Healed);
            }
            story.pass(wait);
            if leaves {
                story.unregister(W1);
            }
            story.pass(SESSION_END);
            story.submit("a");
            let late = healed && !leaves && wait > 50_000;
            if late { story.assert_breaks("L9") } else { story.assert_keeps("L9") }
        }
    }
}
