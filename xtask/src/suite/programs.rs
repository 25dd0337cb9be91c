//! The test programs of the workspace.

use std::path::Path;

use crate::Server;
use crate::cargo::{self, DEV_FEATURES, TESTING, cargo};
use crate::failure::Failure;
use crate::messages::{self, Message, TestProgram};
use crate::queue::Job;

/// The programs of integration tests, without the examples: `tests/examples.rs` runs them as modules, and clippy checks their `main`.
const PROGRAMS: [&str; 5] = ["--workspace", TESTING, "--bins", "--test", "*"];

/// The commands that build and run the unit tests. The core, the keeper and the simulator are optimised for the model check, the
/// simulations and the servers of tests. Their unit tests are compiled without optimisation: that saves 15 s of processor time for
/// the keeper, it saved 41 s for the simulator when that had level 2, and both run as fast. Those of the core take three times as long
/// to compile with it.
///
/// These arguments give the dependencies the same features as for the other programs, and compile no package that depends on the one
/// that is not optimised. The package of the model check is left out: cargo would compile the simulator for its empty library.
const UNITS: [(&str, &[&str]); 3] = [
    (
        "unit tests of bellwether-core",
        &["--package=bellwether-core", "--config=profile.test.package.bellwether-core.opt-level=0"],
    ),
    (
        "unit tests of bellwether-keeper",
        &[
            "--package=bellwether-keeper",
            "--features=bellwether-keeper/testing,bellwether-keeper/tls",
            "--config=profile.test.package.bellwether-keeper.opt-level=0",
        ],
    ),
    (
        "unit tests of the other packages",
        &[
            "--workspace",
            "--exclude=bellwether-core",
            "--exclude=bellwether-keeper",
            "--exclude=bellwether-model-check",
            TESTING,
            "--config=profile.test.package.bellwether-sim.opt-level=0",
        ],
    ),
];

/// The directories of the integration tests that connect to a server of the ZooKeeper protocol.
const ON_A_SERVER: [&str; 5] =
    ["tests", "actors/host/tests", "crates/server/tests", "crates/zk/tests", "crates/testkit/tests"];
/// Those in these directories that run once only: they choose a server themselves, or use only the HTTP API, as the console does, or only
/// the client, as the command line does.
const RUN_ONCE: [&str; 8] =
    ["actors", "cli", "codec", "console", "otel", "short", "suspended_clock", "testing"];

/// The programs that start first, so that the suite ends earlier: those that take long, with those that mostly wait among those that
/// compute, then those that ended last on ZooKeeper.
const LONG: [&str; 14] = [
    "console",
    "http",
    "exhaustive",
    "faults",
    "actors",
    "cli",
    "access",
    "simulator",
    "client",
    "short",
    "leases",
    "worker",
    "groups",
    "namespace",
];

/// Modules of programs whose tests measure times that people notice: they run when all other tests have ended.
const ALONE: [(&str, &str); 1] = [("console", "first_view")];

const WORKSPACE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

/// Builds the programs of integration tests, with further arguments for cargo.
pub(super) fn build(arguments: &[&String]) -> Result<Vec<TestProgram>, Failure> {
    let mut build = cargo();
    build.args(["test", "--no-run", "--package", DEV_FEATURES]).args(PROGRAMS).args(arguments);
    build.arg("--message-format=json-render-diagnostics");
    let output = cargo::output(&mut build)?;
    let programs = messages::parse(&output).filter_map(|message| match message {
        Message::Artifact(artifact) => artifact.test_program(),
        Message::Said { .. } | Message::Other => None,
    });
    let mut programs = programs.collect::<Vec<_>>();
    programs.sort_by_key(|program| {
        let long = LONG.iter().position(|name| program.is_integration && *name == program.name);
        (long.unwrap_or(LONG.len()), program.source.clone())
    });
    Ok(programs)
}

/// The unit tests, as jobs. They are built while other tests run, because the compiler uses one core for a large part of such a build.
pub(super) fn units() -> impl Iterator<Item = Job> {
    UNITS.into_iter().map(|(title, arguments)| {
        let mut command = cargo();
        command.args(["test", "--package", DEV_FEATURES, "--lib"]).args(arguments);
        Job { title: title.to_owned(), command }
    })
}

/// Those that test something on this server.
pub(super) fn on(server: Server, programs: &[TestProgram]) -> impl Iterator<Item = &TestProgram> {
    let workspace = Path::new(WORKSPACE).canonicalize();
    programs.iter().filter(move |program| {
        server == Server::Keeper
            || workspace.as_ref().is_ok_and(|workspace| {
                program.source.strip_prefix(workspace).is_ok_and(|source| uses_a_server(program, source))
            })
    })
}

/// The module of this program that runs alone.
pub(super) fn alone(program: &TestProgram) -> Option<&'static str> {
    let found = ALONE.iter().find(|(name, _)| program.is_integration && *name == program.name);
    found.map(|(_, module)| *module)
}

fn uses_a_server(program: &TestProgram, source: &Path) -> bool {
    program.is_integration
        && !RUN_ONCE.contains(&program.name.as_str())
        && ON_A_SERVER.iter().any(|tests| source.starts_with(tests))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cargo::crates;

    fn program(source: &str, is_integration: bool) -> TestProgram {
        let source = Path::new(WORKSPACE).canonicalize().unwrap().join(source);
        let name = source.components().rev().map(|part| part.as_os_str().to_string_lossy());
        let name =
            name.map(|part| part.trim_end_matches(".rs").to_owned()).find(|part| part != "main").unwrap();
        TestProgram { path: "p".into(), name, is_integration, source, folder: "f".into() }
    }

    #[test]
    fn on_zookeeper_only_tests_with_a_selectable_server_run() {
        let programs = {
            let run = [
                "tests/client/main.rs",
                "tests/groups/main.rs",
                "actors/host/tests/worker/main.rs",
                "crates/server/tests/faults/main.rs",
                "crates/zk/tests/namespace/main.rs",
            ];
            let not = [
                "tests/testing.rs",
                "crates/server/tests/cli/main.rs",
                "crates/server/tests/console/main.rs",
                "tests/chaos/tests/short.rs",
                "crates/sim/tests/simulator.rs",
                "crates/keeper/tests/differential/main.rs",
            ];
            let all = run.iter().chain(&not).map(|source| program(source, true));
            all.chain([program("src/lib.rs", false)]).collect::<Vec<_>>()
        };
        let found = on(Server::Zookeeper, &programs).map(|program| program.name.as_str()).collect::<Vec<_>>();
        assert_eq!(found, ["client", "groups", "worker", "faults", "namespace"]);
        assert_eq!(on(Server::Keeper, &programs).count(), programs.len());
    }

    #[test]
    fn the_unit_tests_use_the_third_party_crates_of_the_other_tests() {
        // cargo resolves the features of procedural macros and of their dependencies separately.
        let edges = ["--edges", "normal,dev,no-proc-macro"];
        let all = crates(&[&["--workspace", TESTING][..], &edges].concat());
        for (title, arguments) in UNITS {
            let units = crates(&[arguments, &["--package", DEV_FEATURES][..], &edges].concat());
            let again = units.difference(&all).collect::<Vec<_>>();
            assert!(
                again.is_empty(),
                "{title}: cargo compiles them twice: add what enables their features to xtask/features: {again:#?}"
            );
        }
    }
}
