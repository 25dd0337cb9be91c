//! Checks Bellwether's invariants.
//!
//! * [`answer`]: converts the answers of clients for a history.
//! * [`history`]: the recorded events of a cluster, simulated or real, and the checker of the invariants.
//! * [`simulate`]: nodes, clients and a ZooKeeper server in one thread and in virtual time, with faults drawn from a
//!   seed. See `README.md`.
//! * [`scale`]: a model of a namespace in several partitions, which the product does not have.
#![forbid(unsafe_code)]

pub mod answer;
pub mod history;
mod host;
mod placement;
pub mod plan;
mod report;
mod runtime;
pub mod scale;
mod trace;
mod workload;
mod world;
mod zk;

use plan::Plan;
pub use report::{Report, Stats};
pub use trace::Trace;
use world::World;

/// Runs a plan to its end, or to the first event that breaks an invariant. The same plan gives the same report.
///
/// A panic of a state machine, or of the simulator, is reported as a violation with the id `P`.
#[must_use]
pub fn simulate(plan: &Plan, trace: Trace) -> Report {
    World::new(plan.clone(), trace).run()
}

/// Maximum number of simulations in [`minimise`]; each takes some tens of milliseconds.
const TRIES: u32 = 600;

/// Returns the smallest plan found that breaks the same invariant as this plan.
#[must_use]
pub fn minimise(plan: &Plan, id: &str) -> Plan {
    plan::shrink(plan.clone(), TRIES, |less| {
        simulate(less, Trace::hashed()).violations.iter().any(|violation| violation.id == id)
    })
}
