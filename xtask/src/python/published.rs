//! What would be published: it is built, its metadata is checked, and the wheel is installed without the source.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::interpreters::Interpreter;
use super::{FOLDER, PACKAGE, module, run_jobs};
use crate::cargo;
use crate::environment::Environment;
use crate::failure::Failure;
use crate::queue::Job;

/// A program that uses the package, below its folder. It is type-checked and run.
const PROGRAM: &str = "tests/installed.py";
/// What the tests of [`SHORT`](super::SHORT) need besides the package.
const FOR_TESTS: [&str; 2] = ["pytest>=8", "pytest-timeout>=2.3"];

/// Builds the source distribution, and the wheel from it. Returns the wheel.
pub(super) fn build(tools: &Environment) -> Result<PathBuf, Failure> {
    let folder = Path::new(FOLDER).join("dist");
    let failed = |source| Failure::Launch { line: folder.display().to_string(), source };
    // A file of an earlier version would be checked and installed, too.
    if folder.exists() {
        fs::remove_dir_all(&folder).map_err(failed)?;
    }
    cargo::run(module(tools, &["build", "--no-isolation", "--outdir"]).arg(&folder))?;
    let mut files = Vec::new();
    for entry in fs::read_dir(&folder).map_err(failed)? {
        files.push(entry.map_err(failed)?.path());
    }
    cargo::run(module(tools, &["twine", "check", "--strict"]).args(&files))?;
    let wheel = files.into_iter().find(|file| file.extension().is_some_and(|extension| extension == "whl"));
    wheel.ok_or_else(|| failed(std::io::Error::other("build has made no wheel")))
}

/// Runs and type-checks a program in an environment that has only the wheel and its dependencies.
pub(super) fn install_alone(tools: &Environment, wheel: &Path) -> Result<(), Failure> {
    let alone = Environment::of(FOLDER, "alone");
    cargo::run(&mut alone.create(Path::new("python3")))?;
    cargo::run(alone.install().arg(wheel))?;
    // Another folder than that of the source, from which Python would import it.
    cargo::run(Command::new(alone.python()).current_dir(&alone.folder).arg(program()))?;
    // Without a cache and the configuration of the package, which names the source. mypy refuses a package without `py.typed`.
    let mut types = module(tools, &["mypy", "--strict", "--config-file", "", "--cache-dir", "/dev/null"]);
    types.current_dir(&alone.folder).arg("--python-executable").arg(alone.python()).arg(program());
    cargo::run(&mut types)
}

/// Installs the wheel and what the tests need, for each of these interpreters.
pub(super) fn install_for_tests(
    interpreters: &[Interpreter],
    environments: &[Environment],
    wheel: &Path,
) -> Result<(), Failure> {
    let each = || interpreters.iter().zip(environments);
    let create = each().map(|(interpreter, environment)| Job {
        title: format!("an environment with {}", interpreter.name()),
        command: environment.create(&interpreter.path),
    });
    run_jobs(create.collect())?;
    let install = each().map(|(interpreter, environment)| {
        let mut command = environment.install();
        command.arg(wheel).args(FOR_TESTS);
        Job { title: format!("installing the wheel for {}", interpreter.name()), command }
    });
    run_jobs(install.collect())
}

fn program() -> PathBuf {
    Path::new(PACKAGE).join(PROGRAM)
}
