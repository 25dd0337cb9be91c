//! Proof of Bellwether's invariants.
//!
//! * [`history`]: what is recorded of a cluster, simulated or real, and the checker of its invariants.
//! * [`simulate`]: nodes, clients and a ZooKeeper in one thread and in virtual time, with everything that may go wrong
//!   between them, drawn from a seed. See `README.md`.
#![forbid(unsafe_code)]

pub mod history;
mod host;
pub mod plan;
mod report;
mod runtime;
mod trace;
mod workload;
mod world;
mod zk;

use plan::Plan;
pub use report::{Report, Stats};
pub use trace::Trace;
use world::World;

/// Runs a plan to its end, or to the first event that breaks an invariant. The same plan gives the same report. A panic of a
/// machine, or of the simulator, counts as broken, under the id `P`.
#[must_use]
pub fn simulate(plan: &Plan, trace: Trace) -> Report {
    World::new(plan.clone(), trace).run()
}

/// Tries of [`minimise`]: at some tens of milliseconds each.
const TRIES: u32 = 600;

/// The least plan found that breaks the same invariant as this one does.
#[must_use]
pub fn minimise(plan: &Plan, id: &str) -> Plan {
    plan::shrink(plan.clone(), TRIES, |less| {
        simulate(less, Trace::hashed()).violations.iter().any(|violation| violation.id == id)
    })
}
