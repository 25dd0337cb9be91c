//! Short runs with fresh seeds: long enough for some faults of each kind and for a valid verdict.
//!
//! A failure prints its seed and keeps its records. `BELLWETHER_CHAOS_SEED` runs the seed again, which fixes the faults
//! and the calls, but not the machine's scheduling.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test reports by panicking and printing")]

use std::process::Command;
use std::sync::{Mutex, PoisonError};

/// Serialises the runs: the bounds are in real time, so each run needs the machine for itself.
static MACHINE: Mutex<()> = Mutex::new(());

fn run(server: &str, minutes: &str) {
    let _one_at_a_time = MACHINE.lock().unwrap_or_else(PoisonError::into_inner);
    let seed = std::env::var("BELLWETHER_CHAOS_SEED").unwrap_or_else(|_| std::process::id().to_string());
    let dir = tempfile::Builder::new().prefix("bellwether-chaos-").tempdir().unwrap();
    let mut chaos = Command::new(env!("CARGO_BIN_EXE_bellwether-chaos"));
    chaos.args(["--server", server, "--minutes", minutes, "--seed", &seed, "--output", "json"]);
    let done = chaos.arg("--keep").arg(dir.path()).output().unwrap();
    let said = String::from_utf8_lossy(&done.stderr);
    println!("{said}");
    if !done.status.success() {
        panic!("seed {seed} on {server}: {}; records in {}", done.status, dir.keep().display());
    }
    let card = String::from_utf8(done.stdout).unwrap();
    let card: serde_json::Value = serde_json::from_str(&card).unwrap();
    assert_eq!((card["lost"].as_u64(), card["extra_runs_unexplained"].as_u64()), (Some(0), Some(0)));
    // A run without jobs and transactions would check nothing.
    assert!(card["acknowledged"].as_u64() > Some(50), "{card}");
    assert!(card["transactions"].as_u64() > Some(200), "{card}");
    // A fault whose recovery needs a sweep may take longer than the whole run.
    assert!(card["faults"].as_array().is_some_and(|faults| !faults.is_empty()), "{card}");
}

#[test]
fn nothing_is_lost_and_no_invariant_broken_on_an_ensemble() {
    run("ensemble", "0.2");
}

#[test]
fn nothing_is_lost_and_no_invariant_broken_on_the_keeper() {
    run("keeper", "0.15");
}
