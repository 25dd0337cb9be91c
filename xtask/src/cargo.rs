//! Runs cargo and other commands with inherited output.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use crate::failure::Failure;

/// The features of tests: the test kit, faults of actors and of the keeper, and traces, which a shipped build does not
/// have, and TLS. Tests and lints use the same set, because each set of features needs a full build. The
/// library and the server enable the features of the keeper.
pub(crate) const TESTING: &str =
    "--features=bellwether/testing,bellwether-server/otel-testing,bellwether-server/zookeeper-tls";

/// This package has no code. A command that selects it beside others builds third-party crates with the features that all tests need, so
/// cargo compiles them once.
pub(crate) const DEV_FEATURES: &str = "bellwether-dev-features";

/// Checks the format, the lints and the documentation; warnings are errors.
pub(crate) fn check() -> Result<(), Failure> {
    run(cargo().args(["fmt", "--all", "--check"]))?;
    run(cargo().args(["clippy", "--workspace", "--all-targets", TESTING, "--", "-D", "warnings"]))?;
    // With the fewest features of the command, and with those of a service that embeds the library.
    for packages in [
        &["--package", "bellwether-server", "--no-default-features"][..],
        &["--package", "bellwether", "--package", "bellwether-host"],
    ] {
        run(cargo().arg("clippy").args(packages).args(["--", "-D", "warnings"]))?;
    }
    run(cargo().args(["doc", "--workspace", "--no-deps", TESTING]).env("RUSTDOCFLAGS", "-D warnings"))
}

/// The path of an artifact that cargo built last, relative to the profile directory of this program.
pub(crate) fn built(path: impl AsRef<Path>) -> Result<PathBuf, Failure> {
    let here = std::env::current_exe();
    here.map(|here| here.with_file_name("").join(path))
        .map_err(|source| Failure::Launch { line: "cargo xtask".to_owned(), source })
}

/// Runs a command in the foreground. Prints the command before and its duration afterwards.
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

/// As [`run`], and returns the standard output instead of printing it.
pub(crate) fn output(command: &mut Command) -> Result<String, Failure> {
    let line = line(command);
    eprintln!("xtask: {line}");
    let begun = Instant::now();
    match command.stderr(Stdio::inherit()).output() {
        Ok(output) if output.status.success() => {
            eprintln!("xtask: took {:.0} s: {line}", begun.elapsed().as_secs_f64());
            Ok(String::from_utf8_lossy(&output.stdout).into_owned())
        }
        Ok(output) => Err(Failure::Command { line, status: output.status }),
        Err(source) => Err(Failure::Launch { line, source }),
    }
}

/// The cargo that runs this task, so that the caller's toolchain is used.
pub(crate) fn cargo() -> Command {
    Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

fn line(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}

/// The third-party crates of a build, each with its features, as `cargo tree` lists them for these arguments.
#[cfg(test)]
pub(crate) fn crates(words: &[&str]) -> std::collections::BTreeSet<String> {
    let mut tree = cargo();
    tree.args(["tree", "--offline", "--prefix", "none", "--format", "{p} [{f}]"]).args(words);
    let output = tree.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let lines = String::from_utf8(output.stdout).unwrap();
    // A crate of the workspace has its path behind its version.
    let lines = lines.lines().map(|line| line.trim_end_matches(" (*)"));
    lines.filter(|line| !line.is_empty() && !line.contains(" (/")).map(str::to_owned).collect()
}
