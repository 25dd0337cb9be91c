//! The test programs of the workspace.

use std::path::Path;

use crate::Server;
use crate::cargo::{self, DEV_FEATURES, TESTING, cargo};
use crate::failure::Failure;
use crate::messages::{self, Message, TestProgram};

/// The test programs, without the examples: `tests/examples.rs` runs them as modules, and clippy checks their `main`.
const PROGRAMS: [&str; 3] = ["--lib", "--bins", "--tests"];

/// The directories of the integration tests that connect to a server of the ZooKeeper protocol.
const ON_A_SERVER: [&str; 5] =
    ["tests", "actors/host/tests", "crates/server/tests", "crates/zk/tests", "crates/testkit/tests"];
/// Those in these directories that run once only: they choose a server themselves, or use only the HTTP API, as the console does, or only
/// the client, as the command line does.
const RUN_ONCE: [&str; 8] =
    ["actors", "cli", "codec", "console", "otel", "short", "suspended_clock", "testing"];

/// The programs that start first, so that the suite ends earlier: the slow ones, then those that ended last on ZooKeeper.
const LONG: [&str; 14] = [
    "exhaustive",
    "actors",
    "access",
    "simulator",
    "http",
    "faults",
    "client",
    "cli",
    "console",
    "short",
    "leases",
    "worker",
    "groups",
    "namespace",
];

/// Modules of programs whose tests measure times that people notice: they run when all other tests have ended.
const ALONE: [(&str, &str); 1] = [("console", "first_view")];

const WORKSPACE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

/// The packages that are optimised for the model check, the simulator and the servers of tests. Their unit tests are compiled without
/// optimisation: that saves 41 s of processor time for the simulator and 15 s for the keeper, and both run as fast. Those of the core take
/// three times as long to compile with it.
///
/// Each package has further arguments for the build of its unit tests. With them, cargo gives the dependencies the same features as for
/// the other programs, and compiles no package that depends on this one.
const OPTIMISED: [(&str, &[&str]); 3] = [
    ("bellwether-core", &[]),
    ("bellwether-keeper", &["--features=bellwether-keeper/testing,bellwether-keeper/tls"]),
    ("bellwether-sim", &FEATURED),
];

/// The packages whose features [`TESTING`] chooses.
const FEATURED: [&str; 3] = ["--package=bellwether", "--package=bellwether-server", TESTING];

/// Builds all test programs, with further arguments for cargo.
pub(super) fn build(arguments: &[&String]) -> Result<Vec<TestProgram>, Failure> {
    let others = OPTIMISED.map(|(package, _)| format!("--exclude={package}"));
    let others = others.iter().map(String::as_str).chain(["--workspace", TESTING]).chain(PROGRAMS);
    let mut programs = built(others, arguments)?;

    let packages = OPTIMISED.map(|(package, _)| format!("--package={package}"));
    let integration = packages.iter().map(String::as_str).chain(FEATURED).chain(["--bins", "--test", "*"]);
    programs.extend(built(integration, arguments)?.into_iter().filter(is_optimised));
    for (package, further) in OPTIMISED {
        let [selection, optimisation] =
            [format!("--package={package}"), format!("--config=profile.test.package.{package}.opt-level=0")];
        let units = further.iter().copied().chain([selection.as_str(), "--lib", &optimisation]);
        programs.extend(built(units, arguments)?.into_iter().filter(is_optimised));
    }
    programs.sort_by_key(|program| {
        let long = LONG.iter().position(|name| program.is_integration && *name == program.name);
        (long.unwrap_or(LONG.len()), program.source.clone())
    });
    Ok(programs)
}

/// Whether it belongs to one of [`OPTIMISED`], whose folders have the names of the packages.
fn is_optimised(program: &TestProgram) -> bool {
    let folder = program.folder.file_name().and_then(|name| name.to_str());
    OPTIMISED.iter().any(|(package, _)| package.strip_prefix("bellwether-") == folder)
}

fn built<'a>(
    selected: impl IntoIterator<Item = &'a str>,
    arguments: &[&String],
) -> Result<Vec<TestProgram>, Failure> {
    let mut build = cargo();
    build.args(["test", "--no-run", "--package", DEV_FEATURES]).args(selected).args(arguments);
    build.arg("--message-format=json-render-diagnostics");
    let output = cargo::output(&mut build)?;
    let programs = messages::parse(&output).filter_map(|message| match message {
        Message::Artifact(artifact) => artifact.test_program(),
        Message::Said { .. } | Message::Other => None,
    });
    Ok(programs.filter(|program| program.name.replace('_', "-") != DEV_FEATURES).collect())
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
}
