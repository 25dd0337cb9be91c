//! Installs ZooKeeper, Prometheus and Python if this is possible: as root on a machine with apt.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use bellwether_testkit::Installation;

use crate::cargo;
use crate::failure::Failure;

/// Installs Debian's ZooKeeper and Java unless they are installed. If that is not possible, the error names the
/// command.
pub(crate) fn zookeeper() -> Result<(), Failure> {
    let Err(missing) = Installation::find() else {
        return Ok(());
    };
    if !may_install() {
        return Err(Failure::Missing(missing));
    }
    apt("zookeeper")?;
    Installation::find().map(drop).map_err(Failure::Missing)
}

/// Installs Debian's Prometheus, for the tests of the dashboards, unless it is installed. If that is not possible, only
/// the tests that need it fail, and name the command.
pub(crate) fn prometheus() -> Result<(), Failure> {
    if !has("promtool") && may_install() {
        apt("prometheus")?;
    }
    Ok(())
}

/// The folder of npm's packages for tests.
const NPM: &str = "target/tools";

/// Installs Chromium with its driver and its headless shell, and axe-core, for the tests of the console, unless they are installed.
/// If that is not possible, only these tests fail, and name the command.
pub(crate) fn browser() -> Result<(), Failure> {
    for (program, package) in [
        ("chromium", "chromium"),
        ("chromedriver", "chromium-driver"),
        ("chromium-headless-shell", "chromium-headless-shell"),
    ] {
        if !has(program) && may_install() {
            apt(package)?;
        }
    }
    if Path::new(NPM).join("node_modules/axe-core").exists() {
        return Ok(());
    }
    if !has("npm") && may_install() {
        apt("npm")?;
    }
    if has("npm") {
        fs::create_dir_all(NPM).map_err(|source| Failure::Launch { line: format!("mkdir {NPM}"), source })?;
        cargo::run(Command::new("npm").args([
            "install",
            "--no-audit",
            "--no-fund",
            "--prefix",
            NPM,
            "axe-core@4",
        ]))?;
    }
    Ok(())
}

/// Installs the package for Python's virtual environments unless it is installed. If that is not possible, the tasks in
/// Python name the command.
pub(crate) fn python() -> Result<(), Failure> {
    let has = Command::new("python3").args(["-c", "import ensurepip"]).stderr(Stdio::null()).status();
    if !has.is_ok_and(|status| status.success()) && may_install() {
        apt("python3-venv")?;
    }
    Ok(())
}

/// Installs the tools that make a Debian package, unless they are installed.
pub(crate) fn dpkg_dev() -> Result<(), Failure> {
    if !has("dpkg-shlibdeps") && may_install() {
        apt("dpkg-dev")?;
    }
    Ok(())
}

fn apt(package: &str) -> Result<(), Failure> {
    cargo::run(Command::new("apt-get").arg("update"))?;
    cargo::run(
        Command::new("apt-get")
            .args(["install", "--yes", "--no-install-recommends", package])
            .env("DEBIAN_FRONTEND", "noninteractive"),
    )
}

fn may_install() -> bool {
    nix::unistd::geteuid().is_root() && has("apt-get")
}

pub(crate) fn has(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|dir| dir.join(program).is_file())
}
