//! Which server the suites run against, and where its program is.

use std::env;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use super::{Installation, StartError};

/// Chooses the server of a whole test run: `keeper` (default) or `zookeeper`.
const SERVER: &str = "BELLWETHER_TEST_SERVER";
/// The `bellwether` command, when whoever runs the tests has built it already.
const COMMAND: &str = "BELLWETHER_TEST_COMMAND";

/// The `bellwether` command that tests of processes are about, when it is not what cargo built with them.
const BINARY: &str = "BELLWETHER_TEST_BINARY";

/// A server that speaks ZooKeeper's protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Program {
    /// `bellwether keeper`, as it is shipped: no JVM, up in milliseconds.
    Keeper,
    /// Apache ZooKeeper, which is what production runs.
    Apache,
}

impl Program {
    /// The server that this test run is about, by the environment variable `BELLWETHER_TEST_SERVER`.
    ///
    /// # Panics
    /// When the variable names no server: a run against the wrong one would look like a run against the right one.
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

/// A program that can be started.
#[derive(Debug, Clone)]
pub(super) enum Found {
    Keeper(PathBuf),
    Apache(Installation),
}

/// The `bellwether` command beside this test's own binary, built when nobody vouches for it: cargo builds it for the
/// tests of its own package only, and what lies there may be older than the sources.
///
/// # Errors
/// When it does not build.
pub fn command() -> io::Result<PathBuf> {
    static BUILT: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let built = BUILT.get_or_init(|| match env::var_os(COMMAND) {
        Some(command) => Ok(command.into()),
        None => build().map_err(|error| error.to_string()),
    });
    built.clone().map_err(io::Error::other)
}

/// The `bellwether` command that a test of processes is about: the one that whoever runs the tests gives, a shipped build
/// for instance, or else this, which cargo built with the test.
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
    // Past what the test harness captures: it may take minutes, and looks as if the test hung. Cargo's own lines follow.
    let told =
        format!("building the bellwether command for the tests' servers: {COMMAND} may name a built one\n");
    io::stderr().write_all(told.as_bytes())?;
    let status = build.status()?;
    if !status.success() {
        return Err(io::Error::other(format!("the bellwether command does not build: {status}")));
    }
    Ok(profile.join("bellwether"))
}
