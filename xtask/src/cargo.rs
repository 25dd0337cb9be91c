//! Cargo, and other commands, run as a shell would: their output is ours, and so is their failure.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use crate::failure::Failure;

/// What a shipped build does not have: the test kit, faults of actors and of the keeper, traces, and TLS to ZooKeeper. One set
/// for all that tests and lints build together, as each set builds all of it anew.
pub(crate) const TESTING: &str = "--features=bellwether/testing,bellwether-server/otel-testing,bellwether-server/zookeeper-tls,bellwether-keeper/testing,bellwether-keeper/tls";

/// The format, the lints and the documentation, warnings denied.
pub(crate) fn check() -> Result<(), Failure> {
    run(cargo().args(["fmt", "--all", "--check"]))?;
    run(cargo().args(["clippy", "--workspace", "--all-targets", TESTING, "--", "-D", "warnings"]))?;
    // As it is shipped, and as a service embeds it.
    run(cargo().args(["clippy", "--package", "bellwether-server", "--", "-D", "warnings"]))?;
    run(cargo().args([
        "clippy",
        "--package",
        "bellwether",
        "--package",
        "bellwether-host",
        "--",
        "-D",
        "warnings",
    ]))?;
    run(cargo().args(["doc", "--workspace", "--no-deps", TESTING]).env("RUSTDOCFLAGS", "-D warnings"))
}

/// What cargo built last in the profile of this program, by its path there.
pub(crate) fn built(path: impl AsRef<Path>) -> Result<PathBuf, Failure> {
    let here = std::env::current_exe();
    here.map(|here| here.with_file_name("").join(path))
        .map_err(|source| Failure::Launch { line: "cargo xtask".to_owned(), source })
}

/// Runs a command in the foreground: says which before, and how long it took afterwards.
pub(crate) fn run(command: &mut Command) -> Result<(), Failure> {
    let line = line(command);
    eprintln!("xtask: {line}");
    let begun = Instant::now();
    match command.status() {
        Ok(status) if status.success() => {
            eprintln!("xtask: took {:.0} s: {line}", begun.elapsed().as_secs_f64());
            Ok(())
        }
        Ok(status) => Err(Failure::Command { line, status }),
        Err(source) => Err(Failure::Launch { line, source }),
    }
}

/// The cargo that runs this task, from the toolchain that the caller chose.
pub(crate) fn cargo() -> Command {
    Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

fn line(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}
