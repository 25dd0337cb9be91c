//! Checks the Python package: format, lints, types, what would be published, and its tests on a real gateway.
//!
//! | file | content |
//! | --- | --- |
//! | `interpreters` | the versions of Python that are installed |
//! | `published` | the wheel and the source distribution, and environments that have only the wheel |

mod interpreters;
mod published;

use std::fs;
use std::num::NonZero;
use std::path::Path;
use std::process::Command;
use std::thread;

use crate::cargo;
use crate::environment::{self, Environment};
use crate::failure::Failure;
use crate::queue::{self, Job};

use interpreters::Interpreter;

/// The virtual environments, the wheel and the source distribution.
const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../target/python");
const PACKAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../python");
/// The command whose `dev` server the tests start.
const COMMAND: &str = "BELLWETHER_COMMAND";
/// The tests for further versions of Python: all of the client, the event loop and the threads, and no killed processes.
const SHORT: [&str; 6] = [
    "tests/test_aio.py",
    "tests/test_client.py",
    "tests/test_exchange.py",
    "tests/test_table.py",
    "tests/test_values.py",
    "tests/test_worker_protocol.py",
];

/// The checks that run.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Extent {
    /// All tests, with `python3`.
    Tests,
    /// Also the format, the lints, the types, and what would be published.
    Package,
    /// Also a part of the tests with each other version that is installed.
    AllVersions,
}

/// The checks as a job.
pub(crate) fn job(command: &Path, extent: Extent) -> Result<Job, Failure> {
    let mut job = queue::task(&["python", "--command"])?;
    job.command.arg(command).args(match extent {
        Extent::Tests => Some("--tests-only"),
        Extent::Package => None,
        Extent::AllVersions => Some("--all-versions"),
    });
    Ok(job)
}

/// Checks the package with the server of this command.
pub(crate) fn run(command: &Path, extent: Extent) -> Result<(), Failure> {
    environment::pip()?;
    let tools = Environment::of(FOLDER, "tools");
    cargo::run(&mut tools.create(Path::new("python3")))?;
    let extra = if extent == Extent::Tests { ".[test]" } else { ".[dev]" };
    cargo::run(tools.install().args(["--editable", extra]).current_dir(PACKAGE))?;

    let command = fs::canonicalize(command)
        .map_err(|source| Failure::Launch { line: command.display().to_string(), source })?;
    let mut jobs = vec![tests("python3", &tools, &[], &command)];
    let mut others = Vec::new();
    if extent != Extent::Tests {
        cargo::run(&mut module(&tools, &["ruff", "format", "--check", "."]))?;
        cargo::run(&mut module(&tools, &["ruff", "check", "."]))?;
        cargo::run(&mut module(&tools, &["mypy"]))?;
        let wheel = published::build(&tools)?;
        published::install_alone(&tools, &wheel)?;
        if extent == Extent::AllVersions {
            others = interpreters::others()?;
            let environments: Vec<_> =
                others.iter().map(|other| Environment::of(FOLDER, &other.name())).collect();
            published::install_for_tests(&others, &environments, &wheel)?;
            for (other, environment) in others.iter().zip(&environments) {
                jobs.push(tests(&other.name(), environment, &SHORT, &command));
            }
        }
    }
    run_jobs(jobs)?;
    eprintln!("xtask: all tests of the Python package ran with python3");
    if extent == Extent::AllVersions {
        let also = others.iter().map(Interpreter::name).collect::<Vec<_>>().join(", ");
        eprintln!("xtask: a part of the tests also ran with: {also}");
    }
    Ok(())
}

fn tests(name: &str, environment: &Environment, files: &[&str], command: &Path) -> Job {
    let mut tests = module(environment, &["pytest", "--quiet", "-p", "no:cacheprovider"]);
    tests.args(files).env(COMMAND, command);
    Job { title: format!("python/tests with {name}"), command: tests }
}

/// Runs commands concurrently, one per core.
fn run_jobs(jobs: Vec<Job>) -> Result<(), Failure> {
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    queue::run(jobs, cores, false, &Path::new(FOLDER).join("logs"))
}

/// A module of the environment, run in the folder of the package.
fn module(environment: &Environment, words: &[&str]) -> Command {
    let mut module = Command::new(environment.python());
    module.current_dir(PACKAGE).arg("-m").args(words);
    module
}
