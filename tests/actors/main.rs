//! Injects a panic, a kill and a stall into every actor at every kind of message, in a whole cluster in this process.
//!
//! ```text
//!  roster ── (actor, kind) ──┐
//!  situations, run without   ├─▶ cases: pair × fault, in the first situation with the pair ─▶ check
//!  a fault ─── pairs seen ───┘
//! ```
//!
//! The pairs come from the message enums, so a new variant automatically adds a case. A pair that occurs in no
//! situation fails the test, unless it is listed as never sent ([`table::NEVER`]).
//!
//! After each fault, the supervisors must have restarted exactly the expected actors, a second round of jobs must end,
//! every run must belong to an attempt, and the namespace must contain no leftovers. After the stop, no actor and no
//! task may remain in the case's runtime.
#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

mod case;
mod client;
mod diagram;
mod namespace;
mod runs;
mod situations;
mod stage;
mod table;

use std::time::Duration;

use bellwether::testing::actors::Fault;

use case::{Case, Report, run_all};
use situations::SITUATIONS;

// A sixth of the processor time was in the allocator of glibc.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Longer than the session timeout of these nodes.
const STALL: Duration = Duration::from_millis(1_750);

const FAULTS: [Fault; 3] = [Fault::Panic, Fault::Kill, Fault::Stall(STALL)];

/// The number of parallel cases. A case mostly waits for ZooKeeper's timeouts, so many can run in parallel.
const AT_ONCE: usize = 16;

#[test]
fn every_actor_survives_every_fault_at_every_message() {
    case::quiet_planned_panics();
    let only = std::env::var("ACTOR_FAULTS").unwrap_or_default();
    let undisturbed = SITUATIONS.iter().map(|situation| Case { situation, plan: None }).collect();
    let mut met = table::Met::new();
    let mut failed = Vec::new();
    for (index, report) in run_all(undisturbed, AT_ONCE).into_iter().enumerate() {
        match report {
            Report { name, outcome: Err(error), .. } => failed.push(format!("{name}: {error}")),
            Report { outcome: Ok(counts), .. } => {
                for (pair, count) in counts {
                    met.entry(pair).or_default().push((index, count));
                }
            }
        }
    }
    assert!(failed.is_empty(), "without a fault:\n{}", failed.join("\n"));

    let pairs = table::pairs(&met);
    let cases = pairs.into_iter().flat_map(|(actor, kind, situation)| {
        let situation = &SITUATIONS[situation];
        println!("{actor} {kind} in {}", situation.name);
        FAULTS.map(|fault| Case { situation, plan: Some((actor, kind, fault)) })
    });
    let cases = cases.filter(|case| case.name().contains(&only)).collect::<Vec<_>>();
    let count = cases.len();
    let reports = run_all(cases, AT_ONCE);
    let failed = reports.iter().filter_map(|report| {
        let error = report.outcome.as_ref().err()?;
        Some(format!("{} ({:?}): {error}", report.name, report.took))
    });
    let failed = failed.collect::<Vec<_>>();
    assert!(failed.is_empty(), "{} of {count} cases:\n{}", failed.len(), failed.join("\n"));
    println!("{count} cases");
}
