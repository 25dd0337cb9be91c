//! Proof of Bellwether's invariants.
//!
//! * [`history`]: what is recorded of a cluster, simulated or real, and the checker of its invariants.
//! * [`simulate`]: nodes, clients and a ZooKeeper in one thread and in virtual time, with everything that may go wrong
//!   between them, drawn from a seed. See `README.md`.
#![forbid(unsafe_code)]

mod client;
pub mod history;
mod node;
pub mod plan;
mod report;
mod trace;
mod world;
mod zk;

use std::panic::{AssertUnwindSafe, catch_unwind};

use history::Violation;
use plan::Plan;
pub use report::{Report, Stats};
pub use trace::Trace;
use world::World;

/// The id of a panic: a machine, or the simulator, met what it takes to be impossible.
const PANIC: &str = "P";

/// Runs a plan to its end, or to the first event that breaks an invariant, or panics. The same plan gives the same report.
#[must_use]
pub fn simulate(plan: &Plan, trace: Trace) -> Report {
    let world = World::new(plan.clone(), trace);
    catch_unwind(AssertUnwindSafe(|| world.run())).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message");
        let violation = Violation { id: PANIC, at: 0, zxid: 0, what: format!("panicked: {text}") };
        let (stats, trace) = (Stats::default(), Trace::default());
        Report { seed: plan.seed, violations: vec![violation], stats, trace }
    })
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
