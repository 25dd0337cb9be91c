//! S20: a job that kills every worker it runs on, with neighbours that have the default limits.

use std::collections::BTreeMap;

use bellwether_core::job::Policy;
use bellwether_core::machine::election::campaign;
use bellwether_core::name::{JobId, Kind};
use bellwether_sim::plan::{Action, JobPlan, NodePlan, Plan, PlannedCall};
use bellwether_sim::{Trace, simulate};

const NEIGHBOURS: usize = 9;

fn job(kind: &str, number: usize) -> JobPlan {
    let policy = Policy::default();
    JobPlan {
        id: JobId::new(format!("{kind}-{number}")).expect("letters and digits"),
        kind: Kind::new(kind).expect("letters"),
        lane: None,
        priority: 5,
        delay_ms: None,
        expires_ms: None,
        max_attempts: policy.max_attempts,
        max_losses: policy.max_losses,
        backoff_ms: 1_000,
        timeout_ms: None,
        lease_ms: None,
        renews: true,
        dead_letter: kind == "killer",
        tagged: false,
    }
}

/// Nodes that are workers and candidates, and killers in front of their neighbours. There are no other faults.
fn plan(seed: u64, nodes: usize, killers: usize, slots: u32) -> Plan {
    let kinds = ["slow", "sum", "slow"];
    let neighbours = (0..NEIGHBOURS).map(|n| job(kinds[n % kinds.len()], n));
    let jobs = (0..killers).map(|n| job("killer", n)).chain(neighbours).collect::<Vec<_>>();
    let submit = Action { at_ms: 0, client: 0, call: PlannedCall::Submit((0..jobs.len()).collect()) };
    let waits = (0..jobs.len()).map(|n| Action { at_ms: 1_000, client: 0, call: PlannedCall::Wait(n) });
    Plan {
        seed,
        session_timeout_ms: 2_000,
        tick_ms: 500,
        sync_limit: None,
        campaign: campaign::Strategy::Queue,
        nodes: vec![NodePlan { skew_ms: 0, slots, tagged: false }; nodes],
        clients: vec![0],
        groups: vec![],
        schedules: vec![],
        retention_ms: None,
        actions: [submit].into_iter().chain(waits).collect(),
        jobs,
        faults: vec![],
        heal_ms: 1_000,
    }
}

/// The last state of each job that a client read.
fn ends(lines: &[String]) -> BTreeMap<String, String> {
    let (mut jobs, mut ends) = (BTreeMap::new(), BTreeMap::new());
    for line in lines {
        let Some((call, what)) = line.split_once(" call ").and_then(|(_, call)| call.split_once(": ")) else {
            continue;
        };
        let after = |key: &str| what.split_once(key).and_then(|(_, rest)| rest.split([',', ' ', '}']).next());
        if let Some(job) = after("Read { job: ") {
            jobs.insert(call.to_owned(), job.to_owned());
        } else if let (Some(job), Some(is)) = (jobs.get(call), after("is: ")) {
            ends.insert(job.clone(), is.to_owned());
        }
    }
    ends
}

#[track_caller]
fn neighbours_succeed(seed: u64, nodes: usize, killers: usize, slots: u32) {
    let plan = plan(seed, nodes, killers, slots);
    let report = simulate(&plan, Trace::told());
    assert_eq!(report.violations, [], "seed {seed}, {nodes} nodes");
    let ends = ends(report.trace.lines());
    assert_eq!(ends.len(), killers + NEIGHBOURS, "seed {seed}: {ends:?}");
    for (job, end) in &ends {
        let expected = if job.starts_with("killer") { "Dead" } else { "Succeeded" };
        assert_eq!(end, expected, "seed {seed}, {nodes} nodes: {job} of {ends:?}");
    }
}

#[test]
fn the_neighbours_of_a_job_that_kills_the_only_worker_succeed() {
    (0..12).for_each(|seed| neighbours_succeed(seed, 1, 1, 12));
}

#[test]
fn the_neighbours_of_a_job_that_kills_every_worker_succeed() {
    (0..12).for_each(|seed| neighbours_succeed(seed, 3, 1, 4));
}

/// Each killer may cost a neighbour one loss, and the third run of a neighbour is alone.
#[test]
fn the_neighbours_of_several_jobs_that_kill_every_worker_succeed() {
    (0..8).for_each(|seed| neighbours_succeed(seed, 2, 4, 12));
}
