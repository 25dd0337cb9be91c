//! The layers of tests, from the cheapest: what each runs, for how long, and its verdict about a mutated tree.
//!
//! A layer catches a mutation if one of its tests fails, which also stops the layer, or if it exceeds its time limit. A
//! build failure is not a catch: the mutation must then be written differently.

use std::fmt;
use std::process::{Command, ExitStatus};
use std::time::Duration;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use super::Trouble;
use super::catalogue::Mutation;
use super::scratch::Scratch;
use super::watch::{failed_test, watched};

/// The time limit of a build, so that a hung build is detected.
pub(super) const BUILD: Duration = Duration::from_secs(1_200);

/// A layer of tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Layer {
    /// The unit and property tests of the mutated package, without servers.
    Unit,
    /// The exhaustive model check of core's machines.
    Model,
    /// The simulator: the actors and the client with seeded faults, and every invariant.
    Simulator,
    /// The actors on a keeper. For a mutation of the crate `zk`: the tests of that crate, on a keeper.
    Actors,
    /// The client on a keeper. For a mutation of the crate `overflow`: the tests of that crate, on a keeper.
    Client,
    /// Node processes that are killed, frozen and cut off.
    Faults,
    /// Namespaces that are closed to others, on a keeper and on Apache ZooKeeper.
    Access,
    /// The gateway on a socket.
    Http,
}

impl Layer {
    pub(super) const ALL: [Self; 8] = [
        Self::Unit,
        Self::Model,
        Self::Simulator,
        Self::Actors,
        Self::Client,
        Self::Faults,
        Self::Access,
        Self::Http,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Unit => "unit",
            Self::Model => "model",
            Self::Simulator => "simulator",
            Self::Actors => "actors",
            Self::Client => "client",
            Self::Faults => "faults",
            Self::Access => "access",
            Self::Http => "http",
        }
    }

    /// Whether the layer runs code of the mutated file.
    pub(super) fn sees(self, mutation: &Mutation) -> bool {
        // The simulator drives the real client. A mutation of the simulator's own code simulates a defective server.
        let simulated =
            matches!(mutation.package(), "bellwether-core" | "bellwether-actors" | "bellwether-sim")
                || mutation.file.starts_with("src/client/");
        let served = ["bellwether-bench", "bellwether-documents", "bellwether-gateway", "bellwether-server"];
        let gateway = served.contains(&mutation.package());
        let overflow = mutation.package() == "bellwether-overflow";
        match self {
            Self::Unit => true,
            Self::Model => mutation.package() == "bellwether-core",
            Self::Simulator => simulated,
            Self::Actors => {
                let elsewhere = ["bellwether", "bellwether-overflow", "bellwether-sim"];
                !gateway && !elsewhere.contains(&mutation.package())
            }
            Self::Client => {
                let packages = ["bellwether", "bellwether-zk", "bellwether-core", "bellwether-actors"];
                overflow || packages.contains(&mutation.package()) && !gateway
            }
            Self::Faults => !gateway && !overflow && mutation.package() != "bellwether-sim",
            // The code that connects, that creates znodes, and that passes the login on.
            Self::Access => {
                matches!(mutation.package(), "bellwether" | "bellwether-zk" | "bellwether-host") && !gateway
            }
            Self::Http => gateway,
        }
    }

    /// Whether its tests start the command as a server.
    pub(super) fn needs_server(self) -> bool {
        match self {
            Self::Unit | Self::Model | Self::Simulator => false,
            Self::Actors | Self::Client | Self::Faults | Self::Access | Self::Http => true,
        }
    }

    /// The arguments of `cargo test`.
    pub(super) fn arguments(self, package: &str) -> Vec<&str> {
        match self {
            Self::Unit => vec!["--package", package, "--lib"],
            Self::Model => vec!["--package", "bellwether-model-check", "--test", "exhaustive"],
            Self::Simulator => vec!["--package", "bellwether-sim", "--test", "simulator", "--test", "found"],
            Self::Actors if package == "bellwether-zk" => vec!["--package", package, "--tests"],
            Self::Actors => vec!["--package", "bellwether-host", "--tests"],
            Self::Client if package == "bellwether-overflow" => vec!["--package", package, "--tests"],
            Self::Client => vec!["--package", "bellwether", "--test", "client"],
            Self::Faults => vec!["--package", "bellwether-server", "--test", "faults"],
            Self::Access => vec!["--package", "bellwether-server", "--test", "access"],
            Self::Http => vec!["--package", "bellwether-server", "--test", "http"],
        }
    }

    /// The time limit of its tests: several times what they take on two busy cores. Without a fence, the product may
    /// also loop forever.
    pub(super) fn bound(self) -> Duration {
        Duration::from_secs(match self {
            Self::Unit | Self::Model | Self::Simulator | Self::Client => 300,
            Self::Actors | Self::Access | Self::Http => 400,
            Self::Faults => 900,
        })
    }
}

/// The verdict of a layer about a mutation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub(super) enum Verdict {
    /// The first tests that failed, or one line about another kind of failure.
    Caught { by: Vec<String>, seconds: u64 },
    /// All tests passed.
    Survived { seconds: u64 },
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Caught { by, seconds } => write!(f, "caught in {seconds} s by {}", by.join(", ")),
            Self::Survived { seconds } => write!(f, "survived {seconds} s"),
        }
    }
}

impl Verdict {
    pub(super) fn is_caught(&self) -> bool {
        matches!(self, Self::Caught { .. })
    }
}

/// Builds and runs a layer on the current tree.
pub(super) fn run(layer: Layer, package: &str, scratch: &Scratch, log: &str) -> Result<Verdict, Trouble> {
    let arguments = layer.arguments(package);
    let build_log = scratch.log(&format!("{log}.build"));
    let built = watched(&mut scratch.cargo(&["test", "--no-run"], &arguments), &build_log, BUILD)?;
    if !built.ended.is_some_and(|status| status.success()) {
        return Err(Trouble::Build { what: log.to_owned(), log: build_log });
    }
    let mut test = scratch.cargo(&["test"], &arguments);
    limit_cases(&mut test);
    let ran = watched(&mut test, &scratch.log(log), layer.bound())?;
    Ok(verdict(ran.ended, &ran.said, ran.took.as_secs()))
}

/// Runs a quarter of CI's cases: a mutation that these catch is also caught by more cases.
pub(super) fn limit_cases(test: &mut Command) {
    test.env("PROPTEST_CASES", "64").env("PROPTEST_DISABLE_FAILURE_PERSISTENCE", "1");
}

pub(super) fn verdict(ended: Option<ExitStatus>, said: &str, seconds: u64) -> Verdict {
    let mut by: Vec<String> = said.lines().filter_map(failed_test).map(str::to_owned).collect();
    match ended {
        Some(status) if status.success() => return Verdict::Survived { seconds },
        Some(_) | None if !by.is_empty() => {}
        Some(status) => by.push(format!("the test program ended: {status}")),
        None => by.push(format!("no end within {seconds} s")),
    }
    Verdict::Caught { by, seconds }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt as _;

    use super::*;

    #[test]
    fn failed_tests_are_named_and_a_crash_is_described() {
        let said = "running 3 tests\ntest a::one ... ok\ntest a::two ... FAILED\ntest b::three ... FAILED\n";
        let failed = verdict(Some(ExitStatus::from_raw(101 << 8)), said, 4);
        let by = vec!["a::two".to_owned(), "b::three".to_owned()];
        assert_eq!(failed, Verdict::Caught { by: by.clone(), seconds: 4 });
        assert_eq!(verdict(None, said, 4), Verdict::Caught { by, seconds: 4 }, "stopped after a failed test");
        let aborted = verdict(Some(ExitStatus::from_raw(6)), "running 3 tests\n", 4);
        assert!(matches!(&aborted, Verdict::Caught { by, .. } if by[0].contains("signal: 6")), "{aborted:?}");
        let hung = verdict(None, "test a::one ... ok\n", 9);
        assert!(matches!(&hung, Verdict::Caught { by, .. } if by[0] == "no end within 9 s"), "{hung:?}");
        assert_eq!(verdict(Some(ExitStatus::from_raw(0)), said, 4), Verdict::Survived { seconds: 4 });
    }
}
