//! A model of one namespace in several partitions. Each has its own ensemble and leader; all share the slots of the workers.
//! Partitions do not exist in the product: `docs/scale.md` describes what they would change, and quotes this model.
//!
//! * [`figures`]: what a job costs a partition, with the source of each figure.
//! * `setup`: the loads. A billion jobs wait in each.
//! * `partition`: what waits and runs in one partition.
//! * `share`, `slots`: the division of the slots, and the quotas of the workers.
//! * `simulation`: the run, in ticks of virtual time.
//!
//! Nothing of the product runs in it: jobs are counts, a commit takes no time, and the rates are assumptions.

pub mod figures;
mod outcome;
mod partition;
mod setup;
mod share;
mod simulation;
mod slots;

pub use outcome::{Loss, Outcome, Wait};
pub use setup::Setup;
pub use share::Share;

/// Runs one load. The same setup gives the same outcome.
#[must_use]
pub fn run(setup: Setup) -> Outcome {
    simulation::Simulation::new(setup).run()
}
