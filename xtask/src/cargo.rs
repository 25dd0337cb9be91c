//! Cargo, and other commands, run as a shell would: their output is ours, and so is their failure.

use std::process::Command;

use crate::failure::Failure;

/// The format, the lints and the documentation, warnings denied.
pub(crate) fn check() -> Result<(), Failure> {
    run(cargo().args(["fmt", "--all", "--check"]))?;
    run(cargo().args(["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]))?;
    run(cargo().args(["doc", "--workspace", "--no-deps"]).env("RUSTDOCFLAGS", "-D warnings"))
}

/// The whole suite, or what of it the arguments select. Cargo would ignore a package beside `--workspace`.
pub(crate) fn test(cargo_arguments: &[String], binary_arguments: &[String]) -> Result<(), Failure> {
    let mut test = cargo();
    test.arg("test");
    if !cargo_arguments.iter().any(|word| word.starts_with("-p") || word.starts_with("--package")) {
        test.arg("--workspace");
    }
    test.args(cargo_arguments);
    if !binary_arguments.is_empty() {
        test.arg("--").args(binary_arguments);
    }
    run(&mut test)
}

/// Runs a command in the foreground, after saying which.
pub(crate) fn run(command: &mut Command) -> Result<(), Failure> {
    let line = line(command);
    eprintln!("xtask: {line}");
    match command.status() {
        Ok(status) if status.success() => Ok(()),
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
