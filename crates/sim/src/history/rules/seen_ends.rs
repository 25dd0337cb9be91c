//! S15: an end that a client has seen is final.
//!
//! A call that a client makes after it saw a terminal job does not find the job absent, in an earlier generation, or
//! open or differently ended in the same generation. The removal of the record resets this.

use std::collections::BTreeMap;

use bellwether_core::name::JobId;

use super::Predicate;
use super::removals::Removals;
use crate::history::checker::{Found, Step, World};
use crate::history::event::{Answer, EventKind, JobSight, Seen};
use crate::history::truth::Spot;

#[derive(Default)]
pub(super) struct SeenEnds {
    /// By client and job: the newest generation seen, and how it ended.
    best: BTreeMap<(u32, JobId), (u32, Seen)>,
    /// By call: the state that its client had seen when it made the call.
    known: BTreeMap<u64, (u32, Seen)>,
    removals: Removals,
}

impl Predicate for SeenEnds {
    fn observe(&mut self, step: &Step<'_>, world: &World, found: &mut Found<'_>) {
        for change in step.commit.iter().flat_map(|commit| &commit.changes) {
            if let (Spot::Record(job), None) = (&change.spot, &change.after) {
                self.best.retain(|(_, seen), _| seen != job);
            }
        }
        let gone_since = self.removals.observe(step, world);
        match step.event {
            EventKind::Invoke { client, call, what, .. } => {
                let best = what.job().and_then(|job| self.best.get(&(*client, job.clone())));
                if let Some(best) = best {
                    self.known.insert(*call, *best);
                }
            }
            EventKind::Return { call, answer } => {
                let known = self.known.remove(call);
                if gone_since {
                    return;
                }
                let Some(invoked) = world.calls.get(call) else { return };
                let Some(job) = invoked.what.job() else { return };
                let Answer::Seen { job: sight } = answer else { return };
                if let Some((generation, end)) = known
                    && !follows(*sight, generation, end)
                {
                    let client = invoked.client;
                    found.push(format!(
                        "client {client} saw {job} {end:?} in generation {generation}, then {sight:?}"
                    ));
                }
                if let JobSight::There { generation, is } = sight {
                    let best = self.best.entry((invoked.client, job.clone())).or_insert((*generation, *is));
                    let newer = *generation > best.0 || (*generation == best.0 && best.1 == Seen::Open);
                    if newer {
                        *best = (*generation, *is);
                    }
                }
            }
            EventKind::Leadership { .. }
            | EventKind::Link { .. }
            | EventKind::LeaderWrites { .. }
            | EventKind::Node { .. }
            | EventKind::Run { .. }
            | EventKind::Txn { .. }
            | EventKind::Refused { .. }
            | EventKind::Evicted { .. }
            | EventKind::Healed => {}
        }
    }
}

fn follows(sight: JobSight, generation: u32, end: Seen) -> bool {
    match sight {
        JobSight::Absent => false,
        JobSight::Quarantined => true,
        JobSight::There { generation: now, is } => {
            now > generation || (now == generation && (end == Seen::Open || is == end))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::rules::fixture::Story;

    fn seen(generation: u32, is: Seen) -> Answer {
        Answer::Seen { job: JobSight::There { generation, is } }
    }

    #[test]
    fn a_job_may_end_and_may_be_opened_again() {
        let mut story = Story::new();
        for answer in
            [seen(1, Seen::Open), seen(1, Seen::Dead), seen(2, Seen::Open), seen(2, Seen::Succeeded)]
        {
            let call = story.invoke_read("a");
            story.answer(call, answer);
        }
        story.assert_keeps("S15");
    }

    #[test]
    fn calls_that_overlap_may_be_answered_in_any_order() {
        let mut story = Story::new();
        let calls = [(); 2].map(|()| story.invoke_read("a"));
        story.answer(calls[0], seen(1, Seen::Succeeded));
        story.answer(calls[1], seen(1, Seen::Open));
        story.assert_keeps("S15");
    }

    #[test]
    fn a_removed_job_may_be_seen_as_absent_or_new() {
        let mut story = Story::new();
        story.keep_records(std::time::Duration::ZERO);
        story.submit("a");
        story.cancel("a");
        story.pass(10_000);
        let [call, overlaps] = [(); 2].map(|()| story.invoke_read("a"));
        story.answer(call, seen(1, Seen::Cancelled));
        story.remove_record("a");
        story.answer(overlaps, seen(1, Seen::Cancelled));
        for answer in [Answer::Seen { job: JobSight::Absent }, seen(1, Seen::Open)] {
            let call = story.invoke_read("a");
            story.answer(call, answer);
        }
        story.assert_keeps("S15");
    }

    #[test]
    fn an_end_that_vanishes_is_found() {
        for after in [seen(1, Seen::Open), seen(1, Seen::Dead), Answer::Seen { job: JobSight::Absent }] {
            let mut story = Story::new();
            let call = story.invoke_read("a");
            story.answer(call, seen(1, Seen::Succeeded));
            let call = story.invoke_read("a");
            story.answer(call, after);
            story.assert_breaks("S15");
        }
    }
}
