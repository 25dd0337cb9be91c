//! `--seeds`: which random plans of the simulator, with an ensemble, find a mutation. They are candidates for `crates/sim/tests/found.rs`.
//!
//! Unlike a layer, this runs thousands of seeds, so the simulator is a release build, once without a mutation and once with
//! each. A seed finds a mutation if it breaks an invariant with it, and none without it.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::Mutate;
use super::Trouble;
use super::catalogue::Mutation;
use super::layer::Layer;
use super::scratch::{self, Scratch};
use crate::cargo;

/// Seeds per run of the simulator. Between two runs it is decided whether enough seeds were found.
const PACE: u64 = 500;
/// Enough to choose from.
const ENOUGH: usize = 8;

/// Prints the first seeds that find each mutation. Fails if none of `seeds` does.
#[expect(clippy::print_stdout, reason = "the result is this command's output")]
pub(super) fn run(mutate: &Mutate, root: &Path, chosen: &[Mutation], seeds: u64) -> Result<(), Trouble> {
    let place = mutate.scratch.clone().unwrap_or_else(scratch::default_place);
    let scratch = Scratch::of(root, &place)?;
    let product = build(&scratch, "product")?;
    let mut missed = Vec::new();
    for mutation in chosen.iter().filter(|mutation| Layer::Simulator.sees(mutation)) {
        let mutated = scratch.mutate(mutation)?;
        let simulator = build(&scratch, &mutation.name)?;
        drop(mutated);
        let mut found = Vec::new();
        let mut from = 0;
        while from < seeds && found.len() < ENOUGH {
            let until = seeds.min(from + PACE);
            for (seed, violation) in broken(&simulator, from..until)? {
                if broken(&product, seed..seed + 1)?.is_empty() {
                    println!("{}: seed {seed}: {violation}", mutation.name);
                    found.push(seed);
                }
            }
            from = until;
        }
        println!("{}: {} of {from} seeds find it: {found:?}", mutation.name, found.len());
        if found.is_empty() {
            missed.push(mutation.name.clone());
        }
    }
    if missed.is_empty() { Ok(()) } else { Err(Trouble::NoSeed(missed)) }
}

/// Builds the simulator from the copy as it is now, and keeps the program.
fn build(scratch: &Scratch, name: &str) -> Result<PathBuf, Trouble> {
    let mut build = scratch.cargo(&["build", "--release"], &["--package", "bellwether-sim"]);
    cargo::run(&mut build).map_err(Trouble::Command)?;
    let (built, kept) =
        (scratch.built("release/bellwether-sim"), scratch.place(&format!("simulator-{name}")));
    std::fs::copy(&built, &kept).map_err(|source| Trouble::File { path: built, source })?;
    Ok(kept)
}

/// The seeds that break an invariant, each with its first violation.
fn broken(simulator: &Path, seeds: Range<u64>) -> Result<Vec<(u64, String)>, Trouble> {
    let mut command = Command::new(simulator);
    // An ensemble has all the faults of a single server, too.
    command.args(["--list", "--ensemble", "always", "--from", &seeds.start.to_string()]);
    command.args(["--seeds", &(seeds.end - seeds.start).to_string()]);
    let output = command.stderr(Stdio::inherit()).output().map_err(Trouble::Cargo)?;
    Ok(String::from_utf8_lossy(&output.stdout).lines().filter_map(seed).collect())
}

/// Parses `seed 7: S19: …`.
fn seed(line: &str) -> Option<(u64, String)> {
    let (seed, violation) = line.strip_prefix("seed ")?.split_once(": ")?;
    Some((seed.parse().ok()?, violation.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_lines_about_seeds_are_read() {
        assert_eq!(
            seed("seed 7: S19 at 5 ms: lane l0: two runs"),
            Some((7, "S19 at 5 ms: lane l0: two runs".into()))
        );
        for line in ["violations 3", "500 seeds in 3.1 s: 9 steps", "seed x: S1"] {
            assert_eq!(seed(line), None, "{line}");
        }
    }
}
