//! S12: after an acknowledged cancel no attempt is assigned.
//!
//! *Cancelled* means that the job ended as cancelled; after an end no attempt is assigned (S10). *Requested* means that
//! its assignment has the cancel flag; the transaction that deletes a flagged assignment must end the job.

use std::collections::BTreeSet;

use bellwether_core::job::{JobState, Verdict};
use bellwether_core::name::JobId;
use bellwether_core::path::{self, Place};

use super::Predicate;
use crate::history::checker::{Found, Step, World};
use crate::history::event::{Answer, Call, EventKind};
use crate::history::truth::Spot;

#[derive(Default)]
pub(super) struct Cancelled {
    ended: BTreeSet<JobId>,
    flagged: BTreeSet<JobId>,
}

impl Predicate for Cancelled {
    fn observe(&mut self, step: &Step<'_>, world: &World, found: &mut Found<'_>) {
        for change in step.commit.iter().flat_map(|commit| &commit.changes) {
            match &change.spot {
                Spot::Record(job) => {
                    let after = change.after.as_ref().and_then(|znode| znode.record());
                    let cancelled =
                        |state| matches!(state, &JobState::Terminal { verdict: Verdict::Cancelled, .. });
                    if after.is_some_and(|record| cancelled(&record.state)) {
                        self.ended.insert(job.clone());
                    }
                }
                Spot::Place(Place::Assignment(_, job)) => {
                    let flag = |znode: &Option<crate::history::truth::Znode>| {
                        znode.as_ref().and_then(|znode| znode.assignment()).is_some_and(|it| it.cancel)
                    };
                    if flag(&change.after) {
                        self.flagged.insert(job.clone());
                    }
                    let moved = step.commit.is_some_and(|commit| commit.moves(change, &world.truth));
                    if moved && flag(&change.before) && !flagged_elsewhere(job, step) {
                        found.push(format!("{job} lost its cancel flag when it was taken over"));
                    }
                    let taken = flag(&change.before) && change.after.is_none() && !moved;
                    let aside = world.truth.get(&path::quarantine(job)).is_some();
                    let record = world.truth.record(job).and_then(|znode| znode.record());
                    if taken && !aside && record.is_some_and(|record| !record.is_terminal()) {
                        found.push(format!(
                            "{job} had the cancel flag, but its attempt ended and the job did not"
                        ));
                    }
                }
                _ => {}
            }
        }
        let EventKind::Return { call, answer } = step.event else { return };
        let Some(Call::Cancel { job }) = world.calls.get(call).map(|invoked| &invoked.what) else { return };
        match answer {
            Answer::Cancelled if !self.ended.contains(job) => {
                found.push(format!("a client was answered that {job} is cancelled, but it never was"));
            }
            Answer::CancelRequested if !self.flagged.contains(job) => {
                found
                    .push(format!("a client was answered that {job} is requested to stop, but it never was"));
            }
            _ => {}
        }
    }
}

/// Whether the transaction creates a flagged assignment of the job.
fn flagged_elsewhere(job: &JobId, step: &Step<'_>) -> bool {
    step.commit.iter().flat_map(|commit| &commit.changes).any(|change| match &change.spot {
        Spot::Place(Place::Assignment(_, other)) if other == job => {
            let after = change.after.as_ref().and_then(|znode| znode.assignment());
            after.is_some_and(|assignment| assignment.cancel)
        }
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use crate::history::event::Answer;
    use crate::history::rules::fixture::{Story, W1, W2, session_of};

    #[test]
    fn an_effective_cancel_is_allowed() {
        let mut story = Story::with_workers();
        story.submit("a");
        let call = story.invoke_cancel("a");
        story.cancel("a");
        story.answer(call, Answer::Cancelled);
        story.submit("b");
        story.assign("b", W1);
        let call = story.invoke_cancel("b");
        story.flag("b", W1);
        story.answer(call, Answer::CancelRequested);
        story.succeed("b", W1);
        story.assert_keeps("S12");
    }

    #[test]
    fn an_acknowledged_cancel_without_effect_is_found() {
        for answer in [Answer::Cancelled, Answer::CancelRequested] {
            let mut story = Story::new();
            story.submit("a");
            let call = story.invoke_cancel("a");
            story.answer(call, answer);
            story.assert_breaks("S12");
        }
    }

    #[test]
    fn an_ignored_cancel_flag_is_found() {
        let mut story = Story::with_workers();
        story.submit("a");
        story.assign("a", W1);
        story.flag("a", W1);
        story.lose("a", W1);
        story.assert_breaks("S12");
    }

    #[test]
    fn a_takeover_keeps_the_cancel_flag() {
        for keeps in [true, false] {
            let mut story = Story::new();
            story.register(W1, "n1");
            story.register_to_take_over(W2, "n2");
            story.submit("a");
            story.assign("a", W1);
            story.flag("a", W1);
            story.take_over_by("a", (W1, W2), session_of(W2), |moved| moved.cancel = keeps);
            if keeps { story.assert_keeps("S12") } else { story.assert_breaks("S12") }
        }
    }
}
