//! Checks the Python package: format, lints, types, the wheel, and its tests on a real gateway.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::cargo;
use crate::failure::Failure;
use crate::install;

/// The virtual environment of its tools.
const ENVIRONMENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../target/python");
const PACKAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../python");
/// The command whose `dev` server the tests start.
const COMMAND: &str = "BELLWETHER_COMMAND";

/// Runs all checks with the server of this command.
pub(crate) fn run(command: &Path) -> Result<(), Failure> {
    install::python()?;
    cargo::run(Command::new("python3").args(["-m", "venv", ENVIRONMENT]))?;
    cargo::run(&mut python(&["pip", "install", "--quiet", "--disable-pip-version-check", "-e", ".[dev]"]))?;
    cargo::run(&mut python(&["ruff", "format", "--check", "."]))?;
    cargo::run(&mut python(&["ruff", "check", "."]))?;
    cargo::run(&mut python(&["mypy"]))?;
    let wheels = Path::new(ENVIRONMENT).join("wheels");
    cargo::run(python(&["build", "--wheel", "--no-isolation", "--outdir"]).arg(wheels))?;
    let command = fs::canonicalize(command)
        .map_err(|source| Failure::Launch { line: command.display().to_string(), source })?;
    cargo::run(python(&["pytest", "--quiet"]).env(COMMAND, command))
}

/// A module of the environment, run in the folder of the package.
fn python(words: &[&str]) -> Command {
    let mut module = Command::new(Path::new(ENVIRONMENT).join("bin/python"));
    module.current_dir(PACKAGE).arg("-m").args(words);
    module
}
