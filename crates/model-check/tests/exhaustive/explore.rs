//! Explores all states of a model and reports the result.
//!
//! Invariants are of the form [`Property::always`](stateright::Property::always). States that must be seen at least
//! once, so that a model without steps is noticed, are *milestones*. A step notes a milestone in [`Milestones`], outside the state,
//! because otherwise the milestone would multiply the states. A `Property::sometimes` then reports it once; the state that
//! it is reported for has no meaning.

use std::fmt::Debug;
use std::hash::Hash;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use stateright::{Checker, Expectation, HasDiscoveries, Model};

/// One exploration uses both cores of a small machine.
const THREADS: usize = 2;

/// Upper limit of the transitions of one exploration, which must take only seconds. Above it the bounds are too wide.
const MOST_TRANSITIONS: usize = 2_000_000;

/// The milestones that a model expects within its bounds, and the milestones noted so far, by number.
#[derive(Debug)]
pub(crate) struct Milestones<S: 'static> {
    pub(crate) expected: &'static [S],
    noted: AtomicU64,
    told: AtomicU64,
}

impl<S> Milestones<S> {
    pub(crate) fn expecting(expected: &'static [S]) -> Self {
        Self { expected, noted: AtomicU64::new(0), told: AtomicU64::new(0) }
    }

    pub(crate) fn note(&self, milestone: u32) {
        if self.noted.load(Ordering::Relaxed) & (1 << milestone) == 0 {
            self.noted.fetch_or(1 << milestone, Ordering::Relaxed);
        }
    }

    /// Returns whether the milestone was noted, but `true` only once, because the checker stores a path for each `true`.
    pub(crate) fn tell(&self, milestone: u32) -> bool {
        let bit = 1 << milestone;
        self.noted.load(Ordering::Relaxed) & bit != 0 && self.told.fetch_or(bit, Ordering::Relaxed) & bit == 0
    }
}

/// Explores all states and prints their number. Fails with the steps that lead to a broken invariant, or when a milestone
/// was never seen, or when there are fewer states than `floor`.
#[expect(clippy::print_stdout, reason = "the number of states is the result of an exploration")]
pub(crate) fn explore<M>(name: &str, floor: usize, model: M)
where
    M: Model + Send + Sync + 'static,
    M::State: Hash + Clone + PartialEq + Debug + Send + Sync + 'static,
    M::Action: Debug + Clone + PartialEq,
{
    let begun = Instant::now();
    let checker = model.checker().threads(THREADS).target_state_count(MOST_TRANSITIONS);
    let checker = checker.finish_when(HasDiscoveries::AnyFailures).spawn_bfs().join();
    let (unique, depth) = (checker.unique_state_count(), checker.max_depth());
    println!(
        "{name}: {unique} states, {} transitions, {depth} steps deep, {:.1} s",
        checker.state_count(),
        begun.elapsed().as_secs_f64()
    );
    assert!(checker.state_count() < MOST_TRANSITIONS, "{name}: too many states to explore them all");
    let found = checker.discoveries();
    for property in checker.model().properties() {
        match (property.expectation, found.get(property.name)) {
            (Expectation::Always | Expectation::Eventually, None) | (Expectation::Sometimes, Some(_)) => {}
            (Expectation::Always | Expectation::Eventually, Some(path)) => {
                let steps = path.clone().into_actions();
                let lines: Vec<_> = steps.iter().map(|step| format!("  {step:?}")).collect();
                panic!(
                    "{name}: {:?} broken after {} steps:\n{}",
                    property.name,
                    steps.len(),
                    lines.join("\n")
                );
            }
            (Expectation::Sometimes, None) => panic!("{name}: never seen: {}", property.name),
        }
    }
    assert!(unique >= floor, "{name}: only {unique} states, expected at least {floor}");
}

/// Names the milestones of a model, which notes them in its steps, and defines properties of the expected ones.
macro_rules! milestones {
    ($model:ty { $($milestone:ident = $text:literal,)* }) => {
        #[derive(Debug, Clone, Copy)]
        pub(crate) enum Milestone { $($milestone,)* }

        impl $model {
            pub(super) fn note(&self, milestone: Milestone) {
                self.milestones.note(milestone as u32);
            }

            fn milestones(&self) -> impl Iterator<Item = stateright::Property<Self>> {
                self.milestones.expected.iter().map(|milestone| match milestone {
                    $(Milestone::$milestone => stateright::Property::sometimes($text, |model: &Self, _| {
                        model.milestones.tell(Milestone::$milestone as u32)
                    }),)*
                })
            }
        }
    };
}

/// Names invariants that are checked in each step, and defines properties of them. A state stores the first one that
/// was broken.
macro_rules! invariants {
    ($model:ty { $($invariant:ident = $text:literal,)* }) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub(crate) enum Invariant { $($invariant,)* }

        fn invariants() -> Vec<stateright::Property<$model>> {
            type State = <$model as stateright::Model>::State;
            vec![$(stateright::Property::always($text, |_: &$model, state: &State| {
                state.broken != Some(Invariant::$invariant)
            }),)*]
        }
    };
}

pub(crate) use {invariants, milestones};
