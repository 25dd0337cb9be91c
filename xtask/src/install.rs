//! Installs what the tests need if this is possible: as root on a machine with apt.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use bellwether_testkit::Installation;

use crate::cargo;
use crate::failure::Failure;

/// For the tests of the dashboards: the program and its Debian package.
const PROMETHEUS: (&str, &str) = ("promtool", "prometheus");
/// For the tests of the console.
const BROWSER: [(&str, &str); 3] = [
    ("chromium", "chromium"),
    ("chromedriver", "chromium-driver"),
    ("chromium-headless-shell", "chromium-headless-shell"),
];
/// The folder of npm's packages for tests.
const NPM: &str = "target/tools";

/// Fails if ZooKeeper is missing and [`tools`] cannot install it. The error names the command.
pub(crate) fn check() -> Result<(), Failure> {
    match Installation::find() {
        Err(missing) if !may_install() => Err(Failure::Missing(missing)),
        _ => Ok(()),
    }
}

/// Installs what all tests need, unless it is installed: ZooKeeper with Java, Prometheus, Chromium with its driver and its headless
/// shell, axe-core, and the package for Python's virtual environments. Without ZooKeeper it fails. If something else is missing, only
/// the tests that need it fail, and name the command.
pub(crate) fn tools() -> Result<(), Failure> {
    let programs = std::iter::once(PROMETHEUS).chain(BROWSER).chain((!has_axe()).then_some(("npm", "npm")));
    let mut packages = missing(programs);
    packages.extend(Installation::find().is_err().then_some("zookeeper"));
    packages.extend((!has_venv()).then_some("python3-venv"));
    apt(&packages)?;
    Installation::find().map_err(Failure::Missing)?;
    axe()
}

/// Installs Debian's ZooKeeper and Java unless they are installed. If that is not possible, the error names the
/// command.
pub(crate) fn zookeeper() -> Result<(), Failure> {
    if Installation::find().is_err() {
        apt(&["zookeeper"])?;
    }
    Installation::find().map(drop).map_err(Failure::Missing)
}

/// Installs Chromium with its driver and its headless shell, unless they are installed.
pub(crate) fn browser() -> Result<(), Failure> {
    apt(&missing(BROWSER))
}

/// Installs the package for Python's virtual environments unless it is installed. If that is not possible, the tasks in
/// Python name the command.
pub(crate) fn python() -> Result<(), Failure> {
    if has_venv() { Ok(()) } else { apt(&["python3-venv"]) }
}

/// Installs the tools that make a Debian package, unless they are installed.
pub(crate) fn dpkg_dev() -> Result<(), Failure> {
    apt(&missing([("dpkg-shlibdeps", "dpkg-dev")]))
}

/// Installs axe-core, which checks the accessibility of the console, if npm is there.
fn axe() -> Result<(), Failure> {
    if has_axe() || !has("npm") {
        return Ok(());
    }
    fs::create_dir_all(NPM).map_err(|source| Failure::Launch { line: format!("mkdir {NPM}"), source })?;
    let install = ["install", "--no-audit", "--no-fund", "--prefix", NPM, "axe-core@4"];
    cargo::run(Command::new("npm").args(install))
}

fn has_axe() -> bool {
    Path::new(NPM).join("node_modules/axe-core").exists()
}

fn has_venv() -> bool {
    let has = Command::new("python3").args(["-c", "import ensurepip"]).stderr(Stdio::null()).status();
    has.is_ok_and(|status| status.success())
}

/// The packages of the programs that are not installed.
fn missing(programs: impl IntoIterator<Item = (&'static str, &'static str)>) -> Vec<&'static str> {
    let programs = programs.into_iter().filter(|(program, _)| !has(program));
    programs.map(|(_, package)| package).collect()
}

/// Installs these packages, if this process may.
fn apt(packages: &[&str]) -> Result<(), Failure> {
    if packages.is_empty() || !may_install() {
        return Ok(());
    }
    cargo::run(Command::new("apt-get").arg("update"))?;
    cargo::run(
        Command::new("apt-get")
            .args(["install", "--yes", "--no-install-recommends"])
            .args(packages)
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
