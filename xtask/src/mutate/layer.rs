//! The layers of the proof, from the cheapest: what each runs, for how long, and what it says of a mutated tree.
//!
//! A layer catches a mutation when a test of it fails, and is stopped then; or when it does not end within its bound. A
//! tree that does not build is no catch: it is a mutation that must be written better.

use std::fs::{self, File};
use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use clap::ValueEnum;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};

use super::Trouble;
use super::catalogue::Mutation;
use super::scratch::Scratch;

/// How often a child is looked at.
const LOOK: Duration = Duration::from_millis(200);

/// Builds are bounded too: nothing that hangs goes unnoticed.
const BUILD: Duration = Duration::from_secs(1_200);

/// One kind of proof.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Layer {
    /// The unit and property tests of the mutated package, without servers.
    Unit,
    /// The exhaustive model check of core's machines.
    Model,
    /// The simulator: core's machines, seeded adversity, every invariant.
    Simulator,
    /// The actors, on a keeper; for what only touches the ZooKeeper client, its own tests there.
    Actors,
    /// The client, on a keeper.
    Client,
    /// Node processes that are killed, frozen and cut off.
    Faults,
    /// Namespaces that are closed to others, on a keeper and on Apache ZooKeeper.
    Access,
    /// The gateway, on a socket.
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

    /// Whether the layer runs the file at all.
    pub(super) fn sees(self, mutation: &Mutation) -> bool {
        let simulated = matches!(mutation.package(), "bellwether-core" | "bellwether-actors");
        let gateway = mutation.file.starts_with("src/http/");
        match self {
            Self::Unit => true,
            Self::Model => mutation.package() == "bellwether-core",
            Self::Simulator => simulated,
            Self::Actors => mutation.package() != "bellwether",
            Self::Client => {
                let packages = ["bellwether", "bellwether-zk", "bellwether-core", "bellwether-actors"];
                packages.contains(&mutation.package()) && !gateway
            }
            Self::Faults => !gateway,
            // Who a session is: what connects, what creates, and what is given a login to hand on.
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

    /// What cargo is told, after `cargo test`.
    pub(super) fn arguments(self, package: &str) -> Vec<&str> {
        match self {
            Self::Unit => vec!["--package", package, "--lib"],
            Self::Model => vec!["--package", "bellwether-sim", "--test", "exhaustive"],
            Self::Simulator => vec!["--package", "bellwether-sim", "--test", "simulator"],
            Self::Actors if package == "bellwether-zk" => vec!["--package", package, "--tests"],
            Self::Actors => vec!["--package", "bellwether-host", "--tests"],
            Self::Client => vec!["--package", "bellwether", "--test", "client"],
            Self::Faults => vec!["--package", "bellwether", "--test", "faults"],
            Self::Access => vec!["--package", "bellwether", "--test", "access"],
            Self::Http => vec!["--package", "bellwether", "--test", "http"],
        }
    }

    /// How long its tests may take: some times what they take on two busy cores. What a fence keeps out may also be a
    /// loop.
    fn bound(self) -> Duration {
        Duration::from_secs(match self {
            Self::Unit | Self::Model | Self::Simulator | Self::Client => 300,
            Self::Actors | Self::Access | Self::Http => 400,
            Self::Faults => 900,
        })
    }
}

/// What a layer said of a mutation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub(super) enum Verdict {
    /// These tests were the first to fail; or a line about how it failed otherwise.
    Caught { by: Vec<String>, seconds: u64 },
    /// All passed.
    Survived { seconds: u64 },
}

impl Verdict {
    pub(super) fn is_caught(&self) -> bool {
        matches!(self, Self::Caught { .. })
    }
}

/// Builds and runs a layer on the tree as it stands.
pub(super) fn run(layer: Layer, package: &str, scratch: &Scratch, log: &str) -> Result<Verdict, Trouble> {
    let arguments = layer.arguments(package);
    let build = scratch.cargo(&["test", "--no-run"], &arguments);
    let built = watched(build, scratch, &format!("{log}.build"), BUILD)?;
    if !built.ended.is_some_and(|status| status.success()) {
        return Err(Trouble::Build { what: log.to_owned(), log: built.log });
    }
    let mut test = scratch.cargo(&["test"], &arguments);
    // A quarter of what CI runs: a catch by fewer cases is one by more.
    test.env("PROPTEST_CASES", "64").env("PROPTEST_DISABLE_FAILURE_PERSISTENCE", "1");
    let ran = watched(test, scratch, log, layer.bound())?;
    let said = read(&ran.log)?;
    Ok(verdict(ran.ended, &said, ran.seconds))
}

fn verdict(ended: Option<ExitStatus>, said: &str, seconds: u64) -> Verdict {
    let mut by: Vec<String> = said.lines().filter_map(failed_test).map(str::to_owned).collect();
    match ended {
        Some(status) if status.success() => return Verdict::Survived { seconds },
        Some(_) | None if !by.is_empty() => {}
        Some(status) => by.push(format!("the test program ended: {status}")),
        None => by.push(format!("no end within {seconds} s")),
    }
    Verdict::Caught { by, seconds }
}

/// `test a::b ... FAILED`, of which `a::b`.
fn failed_test(line: &str) -> Option<&str> {
    line.strip_prefix("test ")?.strip_suffix(" ... FAILED")
}

fn read(path: &Path) -> Result<String, Trouble> {
    let said = fs::read(path).map_err(|source| Trouble::File { path: path.to_owned(), source })?;
    Ok(String::from_utf8_lossy(&said).into_owned())
}

/// What became of a command.
struct Ran {
    /// `None` when it was stopped.
    ended: Option<ExitStatus>,
    seconds: u64,
    log: PathBuf,
}

/// Runs a command in a process group of its own, with its output in a file, until it ends, a test fails, or its time is
/// over.
fn watched(mut command: Command, scratch: &Scratch, log: &str, bound: Duration) -> Result<Ran, Trouble> {
    let log = scratch.log(log);
    let at = |source| Trouble::File { path: log.clone(), source };
    let output = File::create(&log).map_err(at)?;
    let errors = output.try_clone().map_err(at)?;
    let since = Instant::now();
    let mut child = command
        .stdin(Stdio::null())
        .stdout(output)
        .stderr(errors)
        .process_group(0)
        .spawn()
        .map_err(Trouble::Cargo)?;
    let ended = loop {
        if let Some(status) = child.try_wait().map_err(Trouble::Cargo)? {
            break Some(status);
        }
        if since.elapsed() > bound || read(&log)?.lines().any(|line| failed_test(line).is_some()) {
            kill(&mut child).map_err(Trouble::Cargo)?;
            break None;
        }
        thread::sleep(LOOK);
    };
    Ok(Ran { ended, seconds: since.elapsed().as_secs(), log })
}

fn kill(child: &mut Child) -> io::Result<()> {
    let group = i32::try_from(child.id()).expect("a process id is positive");
    killpg(Pid::from_raw(group), Signal::SIGKILL)?;
    child.wait().map(|_| ())
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt as _;

    use super::*;

    #[test]
    fn the_tests_that_failed_are_named_and_a_death_without_one_is_told() {
        let said = "running 3 tests\ntest a::one ... ok\ntest a::two ... FAILED\ntest b::three ... FAILED\n";
        let failed = verdict(Some(ExitStatus::from_raw(101 << 8)), said, 4);
        let by = vec!["a::two".to_owned(), "b::three".to_owned()];
        assert_eq!(failed, Verdict::Caught { by: by.clone(), seconds: 4 });
        assert_eq!(verdict(None, said, 4), Verdict::Caught { by, seconds: 4 }, "stopped at once");
        let aborted = verdict(Some(ExitStatus::from_raw(6)), "running 3 tests\n", 4);
        assert!(matches!(&aborted, Verdict::Caught { by, .. } if by[0].contains("signal: 6")), "{aborted:?}");
        let hung = verdict(None, "test a::one ... ok\n", 9);
        assert!(matches!(&hung, Verdict::Caught { by, .. } if by[0] == "no end within 9 s"), "{hung:?}");
        assert_eq!(verdict(Some(ExitStatus::from_raw(0)), said, 4), Verdict::Survived { seconds: 4 });
    }
}
