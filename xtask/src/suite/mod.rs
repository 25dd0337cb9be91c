//! Runs the tests on one of the servers.
//!
//! The integration tests are built once, with [`TESTING`], and run on any server. Tests that start processes use the command
//! from the same build, unless the caller provides another one: `cargo xtask ci` provides that of the Debian package.

mod programs;

use std::env;
use std::num::NonZero;
use std::path::Path;
use std::process::Command;
use std::thread;

use crate::Server;
use crate::cargo::{self, TESTING, cargo};
use crate::failure::Failure;
use crate::install;
use crate::messages::TestProgram;
use crate::queue::{self, Job};

/// Runs rustdoc, which then compares the error codes of tests that must not compile.
const RUSTDOC: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/rustdoc");
/// Selects the server that the tests use.
const SERVER: &str = "BELLWETHER_TEST_SERVER";
/// The command that is started as a keeper for tests.
const COMMAND: &str = "BELLWETHER_TEST_COMMAND";
/// The command under test of the tests that start processes.
const BINARY: &str = "BELLWETHER_TEST_BINARY";

/// How many tests of a program run concurrently: one per core.
const THREADS: &str = "RUST_TEST_THREADS";
/// More programs run concurrently than there are cores, because tests mostly wait: for a session to expire, for a process to start.
const PROGRAMS_PER_CORE: usize = 2;

/// Where the output of the running programs is kept, relative to the profile directory.
pub(crate) const LOGS: &str = "../tmp/suite";

/// Arguments that restrict cargo to some tests.
const CHOICES: [&str; 9] =
    ["-p", "--package", "--test", "--tests", "--lib", "--bin", "--doc", "--example", "--bench"];

/// Installs what the tests need, and builds and runs those that the arguments select on this server, or the whole suite. The whole
/// suite starts the jobs `beside` before its first test program.
pub(crate) fn run(
    server: Server,
    cargo_arguments: &[String],
    binary_arguments: &[String],
    beside: Vec<Job>,
) -> Result<(), Failure> {
    if let Some(misplaced) = cargo_arguments.iter().find(|word| word.starts_with("--server")) {
        return Err(Failure::Misplaced(misplaced.clone()));
    }
    if CHOICES.iter().any(|choice| has(cargo_arguments, choice)) {
        install::tools()?;
        return chosen(server, cargo_arguments, binary_arguments);
    }
    let (keep_going, build): (Vec<_>, Vec<_>) =
        cargo_arguments.iter().partition(|word| *word == "--no-fail-fast");
    // apt and npm wait for downloads and disks.
    let programs =
        queue::beside(queue::task(&["install"])?, &cargo::built(LOGS)?, || programs::build(&build))?;
    let keep_going = !keep_going.is_empty();
    let options = Options { build: &build, binary_arguments, shipped: None, keep_going };
    let mut suite = suite(server, &programs, &options)?;
    suite.together.splice(..0, beside);
    suite.run(keep_going)
}

/// Builds the programs of integration tests.
pub(crate) fn build() -> Result<Vec<TestProgram>, Failure> {
    programs::build(&[])
}

/// Runs these programs on both servers; those on the keeper come last. The jobs `with_zookeeper` and `with_keeper` start before the
/// first program on that server. Tests that start processes use the command `shipped`.
pub(crate) fn run_on_both(
    programs: &[TestProgram],
    shipped: &Path,
    with_zookeeper: Vec<Job>,
    with_keeper: Vec<Job>,
) -> Result<(), Failure> {
    let options = Options { build: &[], binary_arguments: &[], shipped: Some(shipped), keep_going: false };
    let mut both = Suite { together: with_zookeeper, alone: Vec::new() };
    both.extend(suite(Server::Zookeeper, programs, &options)?);
    both.together.extend(with_keeper);
    both.extend(suite(Server::Keeper, programs, &options)?);
    both.run(false)
}

/// The jobs of a suite.
struct Suite {
    /// Several run at a time.
    together: Vec<Job>,
    /// They run one at a time when the others have ended.
    alone: Vec<Job>,
}

impl Suite {
    fn extend(&mut self, more: Self) {
        self.together.extend(more.together);
        self.alone.extend(more.alone);
    }

    fn run(self, keep_going: bool) -> Result<(), Failure> {
        let logs = cargo::built(LOGS)?;
        let mut tested = queue::run(self.together, cores() * PROGRAMS_PER_CORE, keep_going, &logs);
        if tested.is_ok() || keep_going {
            let quiet = queue::run(self.alone, 1, keep_going, &logs);
            tested = tested.and(quiet);
        }
        tested
    }
}

fn cores() -> usize {
    thread::available_parallelism().map_or(1, NonZero::get)
}

/// How the whole suite runs.
struct Options<'a> {
    /// Further arguments of cargo for builds.
    build: &'a [&'a String],
    /// The arguments of each test program.
    binary_arguments: &'a [String],
    /// Replaces the command under test.
    shipped: Option<&'a Path>,
    /// Whether all programs run after one has failed.
    keep_going: bool,
}

/// Runs the selected tests, with cargo.
fn chosen(server: Server, cargo_arguments: &[String], binary_arguments: &[String]) -> Result<(), Failure> {
    let mut test = cargo();
    test.arg("test").args(cargo_arguments).env(SERVER, server.name()).env("RUSTDOC", RUSTDOC);
    // Cargo ignores a package next to `--workspace`, and refuses a feature of a package that is not selected.
    if !["-p", "--package"].iter().any(|choice| has(cargo_arguments, choice)) {
        test.args(["--workspace", TESTING]);
    }
    if !binary_arguments.is_empty() {
        test.arg("--").args(binary_arguments);
    }
    cargo::run(&mut test)
}

/// All tests on this server; on the keeper also the unit tests and those of the documentation.
fn suite(server: Server, programs: &[TestProgram], options: &Options<'_>) -> Result<Suite, Failure> {
    let Options { build, binary_arguments, shipped, keep_going } = *options;
    // Tests connect to servers of this build, because the profile of tests optimises the keeper.
    let server_command = cargo::built("bellwether")?;

    let environment = |test: &mut Command| {
        test.env(SERVER, server.name());
        if env::var_os(THREADS).is_none() {
            test.env(THREADS, cores().to_string());
        }
        if let Some(shipped) = shipped {
            test.env(BINARY, shipped);
        }
        if env::var_os(COMMAND).is_none() {
            test.env(COMMAND, &server_command);
        }
    };
    let test = |program: &TestProgram| {
        let mut test = Command::new(&program.path);
        program.place(&mut test);
        environment(&mut test);
        test.args(binary_arguments);
        test
    };
    // Unit tests and those of the documentation are built when they run, one after the other.
    let mut built_later = Vec::new();
    if server == Server::Keeper {
        for Job { title, mut command } in programs::units() {
            environment(&mut command);
            command.args(build).args(keep_going.then_some("--no-fail-fast")).arg("--").args(binary_arguments);
            built_later.push(Job { title, command });
        }
        let mut documentation = cargo();
        documentation.args(["test", "--doc", "--workspace", TESTING]).env("RUSTDOC", RUSTDOC);
        built_later.push(Job { title: "cargo test --doc".to_owned(), command: documentation });
    }
    let mut built_later = built_later.into_iter();
    let mut suite = Suite { together: Vec::new(), alone: Vec::new() };
    for (index, program) in programs::on(server, programs).enumerate() {
        if index % 2 == 0 {
            suite.together.extend(built_later.next());
        }
        let on = if server == Server::Zookeeper { " on ZooKeeper" } else { "" };
        let (title, mut command) = (format!("{}{on}", program.title()), test(program));
        // The caller's arguments may select tests, and another name would add tests to that selection.
        if let Some(module) = programs::alone(program).filter(|_| binary_arguments.is_empty()) {
            command.args(["--skip", module]);
            let mut quiet = test(program);
            quiet.arg(module);
            suite.alone.push(Job { title: format!("{module} of {title}"), command: quiet });
        }
        suite.together.push(Job { title, command });
    }
    suite.together.extend(built_later);
    Ok(suite)
}

/// Whether an option is present, as a separate word or with its value.
fn has(words: &[String], option: &str) -> bool {
    let mut rests = words.iter().filter_map(|word| word.strip_prefix(option));
    rests.any(|rest| rest.is_empty() || rest.starts_with('='))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misplaced_server_option_is_refused() {
        let line = ["--no-fail-fast", "--server", "zookeeper"].map(str::to_owned);
        let refused = run(Server::Keeper, &line, &[], Vec::new()).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "--server would be passed to cargo: put it before the arguments for cargo"
        );
    }
}
