//! S23: a read that follows an acknowledged submission sees it, whichever client makes it.
//!
//! The read is made after the answer to the submission. It does not find the job absent, unless the record was removed
//! since. A read that passes a generation does not return an earlier one.

use std::collections::{BTreeMap, BTreeSet};

use bellwether_core::name::JobId;

use super::Predicate;
use super::removals::Removals;
use crate::history::checker::{Found, Step, World};
use crate::history::event::{Answer, Call, EventKind, JobSight};
use crate::history::truth::Spot;

#[derive(Default)]
pub(super) struct FreshReads {
    /// Jobs with an acknowledged submission whose records were not removed since.
    acknowledged: BTreeSet<JobId>,
    /// By call: whether the job was acknowledged when the read was made, and the generation that it passed.
    reads: BTreeMap<u64, (bool, Option<u32>)>,
    removals: Removals,
}

impl Predicate for FreshReads {
    fn observe(&mut self, step: &Step<'_>, world: &World, found: &mut Found<'_>) {
        for change in step.commit.iter().flat_map(|commit| &commit.changes) {
            if let (Spot::Record(job), None) = (&change.spot, &change.after) {
                self.acknowledged.remove(job);
            }
        }
        let gone_since = self.removals.observe(step, world);
        match step.event {
            EventKind::Invoke { call, what: Call::Read { job, generation }, .. } => {
                self.reads.insert(*call, (self.acknowledged.contains(job), *generation));
            }
            EventKind::Return { call, answer } => {
                let Some(job) = world.calls.get(call).and_then(|invoked| invoked.what.job()) else { return };
                match (self.reads.remove(call), answer) {
                    // The record of an accepted submission may have been removed before the answer (S1 checks that).
                    (None, Answer::Accepted) if world.truth.record(job).is_some() => {
                        self.acknowledged.insert(job.clone());
                    }
                    (Some((known, generation)), Answer::Seen { job: sight }) if !gone_since => {
                        let is_stale = match sight {
                            JobSight::Absent => known,
                            JobSight::Quarantined => false,
                            JobSight::There { generation: seen, .. } => {
                                generation.is_some_and(|generation| *seen < generation)
                            }
                        };
                        if is_stale {
                            let of = generation.map_or(String::new(), |it| format!(" of generation {it}"));
                            found.push(format!("a read of {job}{of} saw {sight:?} after its submission"));
                        }
                    }
                    (_, _) => {}
                }
            }
            EventKind::Invoke { .. }
            | EventKind::Leadership { .. }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::event::Seen;
    use crate::history::rules::fixture::Story;

    fn there(generation: u32, is: Seen) -> Answer {
        Answer::Seen { job: JobSight::There { generation, is } }
    }

    const ABSENT: Answer = Answer::Seen { job: JobSight::Absent };

    fn acknowledged(story: &mut Story) {
        let call = story.invoke_submit("a");
        story.submit("a");
        story.answer(call, Answer::Accepted);
    }

    #[test]
    fn a_read_that_overlaps_the_submission_may_miss_it() {
        let mut story = Story::new();
        let read = story.invoke_read("a");
        acknowledged(&mut story);
        story.answer(read, ABSENT);
        story.assert_keeps("S23");
    }

    #[test]
    fn a_read_after_the_submission_finds_the_job() {
        let mut story = Story::new();
        acknowledged(&mut story);
        let read = story.invoke_read_of("a", 1);
        story.answer(read, there(1, Seen::Open));
        story.assert_keeps("S23");
    }

    #[test]
    fn a_removed_job_may_be_absent() {
        let mut story = Story::new();
        story.keep_records(std::time::Duration::ZERO);
        acknowledged(&mut story);
        story.cancel("a");
        story.pass(10_000);
        let overlaps = story.invoke_read("a");
        story.remove_record("a");
        let later = story.invoke_read("a");
        story.answer(overlaps, ABSENT);
        story.answer(later, ABSENT);
        story.assert_keeps("S23");
    }

    #[test]
    fn an_absent_job_after_the_submission_is_found() {
        let mut story = Story::new();
        acknowledged(&mut story);
        let read = story.invoke_read("a");
        story.answer(read, ABSENT);
        story.assert_breaks("S23");
    }

    #[test]
    fn an_earlier_generation_than_the_reader_knows_is_found() {
        let mut story = Story::new();
        acknowledged(&mut story);
        let read = story.invoke_read_of("a", 2);
        story.answer(read, there(1, Seen::Succeeded));
        story.assert_breaks("S23");
    }
}
