//! Developer tasks: `cargo xtask --help`.

mod cargo;
mod compat;
mod demo;
mod failure;
mod install;
mod zookeeper;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use failure::Failure;

/// Bellwether's developer tasks.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Make ready what the tests need, then run them all.
    Test {
        /// Passed on to `cargo test`, e.g. `--test proxy`; without `-p`, the whole workspace is tested.
        #[arg(allow_hyphen_values = true, value_terminator = "--")]
        cargo: Vec<String>,
        /// Passed on to the test binaries, e.g. `-- --nocapture`.
        #[arg(allow_hyphen_values = true)]
        binaries: Vec<String>,
    },
    /// Everything that a change must pass: format, lints, documentation, tests.
    Ci,
    /// Compare the keeper with a real ZooKeeper: kazoo's test suite and a zkCli session on both. Needs Python and pip.
    Compat {
        /// Passed on, e.g. `--write` (docs/keeper-compatibility.md) or `--servers keeper`.
        #[arg(allow_hyphen_values = true, trailing_var_arg = true)]
        arguments: Vec<String>,
    },
    /// Watch a cluster lose its leader and a worker, and nothing else: a throw-away ZooKeeper, three nodes, real jobs.
    ///
    /// Exit code 0 only if every job succeeded and every attempt is explained. Uses the development build unless told
    /// otherwise: it is made in a minute, and what is shown is that nothing is lost, not how fast.
    Demo(demo::Demo),
    /// Run a throw-away ZooKeeper in the foreground, until Ctrl-C.
    Zookeeper {
        /// The port on 127.0.0.1.
        #[arg(long, default_value_t = 2181)]
        port: u16,
        /// Where to keep the data; without it they are gone with the server.
        #[arg(long)]
        data_dir: Option<PathBuf>,
    },
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
        Task::Test { cargo, binaries } => {
            install::zookeeper()?;
            cargo::test(&cargo, &binaries)
        }
        Task::Ci => {
            cargo::check()?;
            install::zookeeper()?;
            cargo::test(&[], &[])
        }
        Task::Compat { arguments } => {
            install::zookeeper()?;
            compat::run(&arguments)
        }
        Task::Demo(demo) => {
            install::zookeeper()?;
            demo::run(&demo)
        }
        Task::Zookeeper { port, data_dir } => {
            install::zookeeper()?;
            zookeeper::run(port, data_dir)
        }
    }
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
    fn test_passes_on_what_is_for_cargo_and_what_is_for_the_test_binaries() {
        for (line, for_cargo, for_binaries) in [
            (vec!["--test", "proxy"], vec!["--test", "proxy"], vec![]),
            (vec!["--", "--nocapture"], vec![], vec!["--nocapture"]),
            (
                vec!["-p", "xtask", "--", "--nocapture", "cut"],
                vec!["-p", "xtask"],
                vec!["--nocapture", "cut"],
            ),
        ] {
            let parsed = Arguments::try_parse_from(["cargo xtask", "test"].into_iter().chain(line)).unwrap();
            let Task::Test { cargo, binaries } = parsed.task else { panic!("another task") };
            assert_eq!((cargo, binaries), (strings(&for_cargo), strings(&for_binaries)));
        }
    }

    fn strings(words: &[&str]) -> Vec<String> {
        words.iter().map(ToString::to_string).collect()
    }
}
