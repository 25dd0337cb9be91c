//! The server program of the tests.

use std::env;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use super::{Installation, StartError};

/// Selects the server of the whole test run: `keeper` (default) or `zookeeper`.
const SERVER: &str = "BELLWETHER_TEST_SERVER";
/// The path of the `bellwether` command, if it is already built.
const COMMAND: &str = "BELLWETHER_TEST_COMMAND";

/// The `bellwether` command under test, if it is not the one that cargo built with the tests.
const BINARY: &str = "BELLWETHER_TEST_BINARY";

/// A server that implements ZooKeeper's protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Program {
    /// `bellwether keeper` as shipped: no JVM, starts in milliseconds.
    Keeper,
    /// Apache ZooKeeper, as in production.
    Apache,
}

impl Program {
    /// Returns the server of this test run, selected by the environment variable `BELLWETHER_TEST_SERVER`.
    ///
    /// # Panics
    /// If the variable has an unknown value: a run against the wrong server would not be noticed.
    pub fn chosen() -> Self {
        match env::var(SERVER).as_deref() {
            Err(env::VarError::NotPresent) | Ok("keeper") => Self::Keeper,
            Ok("zookeeper") => Self::Apache,
            Ok(_) | Err(env::VarError::NotUnicode(_)) => {
                panic!("{SERVER} is {:?}: give `keeper` or `zookeeper`", env::var_os(SERVER))
            }
        }
    }

    pub(super) fn find(self) -> Result<Found, StartError> {
        match self {
            Self::Keeper => Ok(Found::Keeper(command()?)),
            Self::Apache => Ok(Found::Apache(Installation::find()?)),
        }
    }
}

/// An executable server.
#[derive(Debug, Clone)]
pub(super) enum Found {
    Keeper(PathBuf),
    Apache(Installation),
}

/// Returns the `bellwether` command next to this test's binary. Builds it unless `BELLWETHER_TEST_COMMAND` names one:
/// cargo builds it only for the tests of its own package, and an existing one can be older than the sources.
///
/// # Errors
/// If the build fails.
pub fn command() -> io::Result<PathBuf> {
    static BUILT: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let built = BUILT.get_or_init(|| match env::var_os(COMMAND) {
        Some(command) => Ok(command.into()),
        None => build().map_err(|error| error.to_string()),
    });
    built.clone().map_err(io::Error::other)
}

/// Returns the `bellwether` command under test: the one named by `BELLWETHER_TEST_BINARY`, such as a shipped build, or
/// else `built`, which cargo built with the test.
pub fn binary_or(built: &str) -> PathBuf {
    env::var_os(BINARY).map_or_else(|| built.into(), PathBuf::from)
}

fn build() -> io::Result<PathBuf> {
    let here = env::current_exe()?;
    // target/debug/deps/test-0123, or target/debug/examples/name
    let profile =
        here.parent().and_then(Path::parent).ok_or_else(|| io::Error::other("no target directory"))?;
    let mut build = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    build.args(["build", "--package", "bellwether-server", "--bin", "bellwether"]);
    if profile.ends_with("release") {
        build.arg("--release");
    }
    build.current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    if let Some(target) = profile.parent() {
        build.arg("--target-dir").arg(target);
    }
    // Written to stderr directly, which the test harness does not capture: the build can take minutes, and the test
    // would seem to hang. Cargo's own output follows.
    let told =
        format!("building the bellwether command for the test servers; set {COMMAND} to use a built one\n");
    io::stderr().write_all(told.as_bytes())?;
    let status = build.status()?;
    if !status.success() {
        return Err(io::Error::other(format!("the build of the bellwether command failed: {status}")));
    }
    Ok(profile.join("bellwether"))
}
