//! Runs the tests on one of the servers.
//!
//! The tests are built once, with [`TESTING`], and run on any server. Tests that start processes use the command
//! from the same build, unless the caller provides another one: `cargo xtask ci` provides the release build.

use std::env;
use std::num::NonZero;
use std::path::Path;
use std::process::Command;
use std::thread;

use serde::Deserialize;

use crate::Server;
use crate::cargo::{self, TESTING, cargo};
use crate::failure::Failure;
use crate::python;

/// Selects the server that the tests use.
const SERVER: &str = "BELLWETHER_TEST_SERVER";
/// The command that is started as a keeper for tests.
const COMMAND: &str = "BELLWETHER_TEST_COMMAND";
/// The command under test of the tests that start processes.
const BINARY: &str = "BELLWETHER_TEST_BINARY";

/// How many tests of a program run concurrently.
const THREADS: &str = "RUST_TEST_THREADS";
/// More than one per core, because tests mostly wait: for a session to expire, for a process to start.
const THREADS_PER_CORE: usize = 2;

/// The packages whose tests connect to a server of the ZooKeeper protocol.
const ON_A_SERVER: [&str; 5] =
    ["bellwether", "bellwether-server", "bellwether-host", "bellwether-zk", "bellwether-testkit"];
/// Their tests that choose a server themselves and ignore [`SERVER`].
const OF_ITS_OWN: [&str; 3] = ["actors", "otel", "testing"];

/// The test programs. Cargo runs the tests of the documentation by themselves.
const PROGRAMS: [&str; 3] = ["--lib", "--bins", "--tests"];

/// Arguments that restrict cargo to some tests.
const CHOICES: [&str; 9] =
    ["-p", "--package", "--test", "--tests", "--lib", "--bin", "--doc", "--example", "--bench"];

/// Runs the whole suite, or the tests that the arguments select, on this server. `shipped` replaces the command under
/// test.
pub(crate) fn run(
    server: Server,
    cargo_arguments: &[String],
    binary_arguments: &[String],
    shipped: Option<&Path>,
) -> Result<(), Failure> {
    if let Some(misplaced) = cargo_arguments.iter().find(|word| word.starts_with("--server")) {
        return Err(Failure::Misplaced(misplaced.clone()));
    }
    let chosen = CHOICES.iter().any(|choice| has(cargo_arguments, choice));
    let one_package = ["-p", "--package"].iter().any(|choice| has(cargo_arguments, choice));

    let mut test = cargo();
    test.arg("test").args(cargo_arguments).env(SERVER, server.name());
    if env::var_os(THREADS).is_none() {
        let cores = thread::available_parallelism().map_or(1, NonZero::get);
        test.env(THREADS, (cores * THREADS_PER_CORE).to_string());
    }
    // Cargo ignores a package next to `--workspace`, and refuses a feature of a package that is not selected.
    if !one_package {
        test.args(["--workspace", TESTING]);
    }
    let mut python = Ok(());
    if !chosen {
        // Without the examples as programs: `tests/examples.rs` runs them as modules, and clippy checks their `main`.
        cargo::run(cargo().args(["test", "--no-run", "--workspace", TESTING]).args(PROGRAMS))?;
        let command = shipped.map_or_else(|| cargo::built("bellwether"), |path| Ok(path.into()))?;
        if let Some(shipped) = shipped {
            test.env(BINARY, shipped);
        }
        if server == Server::Keeper {
            python = python::run(&command);
            if python.is_err() && !has(cargo_arguments, "--no-fail-fast") {
                return python;
            }
        }
        if env::var_os(COMMAND).is_none() {
            test.env(COMMAND, command);
        }
        match server {
            Server::Keeper => test.args(PROGRAMS),
            Server::Zookeeper => test.args(on_a_server()?.iter().flat_map(|name| ["--test", name.as_str()])),
        };
    }
    if !binary_arguments.is_empty() {
        test.arg("--").args(binary_arguments);
    }
    let tested = cargo::run(&mut test);
    if chosen || server == Server::Zookeeper || (tested.is_err() && !has(cargo_arguments, "--no-fail-fast")) {
        return tested;
    }
    let documented = cargo::run(cargo().args(["test", "--doc", "--workspace", TESTING]));
    tested.and(documented).and(python)
}

/// Whether an option is present, as a separate word or with its value.
fn has(words: &[String], option: &str) -> bool {
    let mut rests = words.iter().filter_map(|word| word.strip_prefix(option));
    rests.any(|rest| rest.is_empty() || rest.starts_with('='))
}

/// The used part of cargo's metadata.
#[derive(Debug, Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Debug, Deserialize)]
struct Package {
    name: String,
    targets: Vec<Target>,
}

#[derive(Debug, Deserialize)]
struct Target {
    name: String,
    kind: Vec<String>,
}

/// The names of the tests that use the selected server.
fn on_a_server() -> Result<Vec<String>, Failure> {
    let mut command: Command = cargo();
    command.args(["metadata", "--no-deps", "--format-version", "1"]);
    let line = "cargo metadata".to_owned();
    let output = command.output().map_err(|source| Failure::Launch { line: line.clone(), source })?;
    let metadata: Metadata = serde_json::from_slice(&output.stdout)
        .map_err(|error| Failure::Launch { line, source: error.into() })?;
    let packages =
        metadata.packages.into_iter().filter(|package| ON_A_SERVER.contains(&package.name.as_str()));
    let targets = packages.flat_map(|package| package.targets);
    let tests =
        targets.filter(|target| target.kind.iter().any(|kind| kind == "test")).map(|target| target.name);
    Ok(tests.filter(|name| !OF_ITS_OWN.contains(&name.as_str())).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_with_a_selectable_server_are_found() {
        let found = on_a_server().unwrap();
        for name in ["client", "faults", "groups", "election", "worker", "namespace"] {
            assert!(found.iter().any(|test| test == name), "{name} is not in {found:?}");
        }
        for name in OF_ITS_OWN.iter().chain(["simulator", "exhaustive", "differential"].iter()) {
            assert!(!found.iter().any(|test| test == name), "{name} is in {found:?}");
        }
    }

    #[test]
    fn a_misplaced_server_option_is_refused() {
        let line = ["--no-fail-fast", "--server", "zookeeper"].map(str::to_owned);
        let refused = run(Server::Keeper, &line, &[], None).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "--server would be passed to cargo: put it before the arguments for cargo"
        );
    }
}
