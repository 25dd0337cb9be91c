//! L4: each due tick is handled within its window.
//!
//! Checked at the end, some time after the healing. Histories have no wall clock, but transactions have wall-clock
//! stamps: of the claim of a term and of the submission of a job. The smallest offset between a stamp and its event's
//! time gives a lower bound of the current wall time. Every active schedule must have handled all ticks up to that
//! bound, less the time of a leader change and a sweep.

use bellwether_core::time::WallMillis;

use super::Predicate;
use crate::history::checker::{Found, Step, World};

/// The time that a leader may need in addition to a session's end: a sweep and some rounds of requests.
const LATE: u64 = 30_000;

#[derive(Default)]
pub(super) struct DueTicks {
    /// Lower bound of the offset from the history's clock to the wall clock.
    ahead: Option<i64>,
}

impl Predicate for DueTicks {
    fn observe(&mut self, step: &Step<'_>, world: &World, _: &mut Found<'_>) {
        for change in step.commit.iter().flat_map(|commit| &commit.changes) {
            let Some(after) = &change.after else { continue };
            let claimed = after.epoch().map(|claim| claim.since);
            let submitted = after.record().filter(|_| change.before.is_none()).map(|job| job.submitted_at);
            if let Some(stamp) = claimed.or(submitted) {
                let ahead = stamp.0.cast_signed() - world.now.cast_signed();
                self.ahead = Some(self.ahead.map_or(ahead, |other| other.min(ahead)));
            }
        }
    }

    fn finish(&mut self, world: &World, found: &mut Found<'_>) {
        let (Some(ahead), Some(healed)) = (self.ahead, world.healed) else { return };
        let late = world.session_end() + LATE;
        if world.now < healed + late {
            return;
        }
        let by = WallMillis(world.now.saturating_add_signed(ahead).saturating_sub(late));
        for (path, znode) in world.truth.below(bellwether_core::path::SCHEDULES) {
            let Some(schedule) = znode.schedule() else { continue };
            let Ok(calendar) = schedule.spec.when.calendar() else { continue };
            if let Some(next) = schedule.next(&calendar).filter(|next| *next < by) {
                found.push(format!("{path} has not handled its tick at {next} by {by}"));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::history::event::EventKind;
    use crate::history::rules::fixture::Story;

    #[test]
    fn an_unhandled_tick_is_found_once_it_is_late() {
        for late in [false, true] {
            let mut story = Story::new();
            story.schedule("a");
            story.push(EventKind::Healed);
            story.pass(if late { 150_000 } else { 20_000 });
            story.invoke_submit("b");
            if late { story.assert_breaks("L4") } else { story.assert_keeps("L4") }
        }
    }
}
