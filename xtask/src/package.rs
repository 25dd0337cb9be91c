//! Builds the command with the features of a shipped one, packages it, and measures a release build.

use std::fs;
use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use bellwether_testkit::unused_address;

use crate::cargo::{self, DEV_FEATURES, cargo};
use crate::deb;
use crate::failure::Failure;

/// Selects the command.
const COMMAND: [&str; 2] = ["--package", "bellwether-server"];

/// How often the command is started: the median is reported.
const STARTS: usize = 21;
/// The time limit until a node is ready.
const READY_WITHIN: Duration = Duration::from_secs(30);

/// Builds the command with the features of a shipped one, and its Debian package. Prints the size and the start-up times of a
/// release build.
pub(crate) fn package(profile: &str) -> Result<(), Failure> {
    let mut build = cargo();
    build.args(["build", "--locked", "--bin", "bellwether", "--profile", profile]).args(COMMAND);
    if profile == "dev" {
        // The tests, which are built next, use the same crates.
        build.args(["--package", DEV_FEATURES]);
    }
    cargo::run(&mut build)?;
    let binary = built(profile)?;
    if profile == "release" {
        let measured = measure(&binary);
        let told =
            measured.map_err(|source| Failure::Launch { line: binary.display().to_string(), source })?;
        eprintln!("xtask: {told}");
    }
    deb::build(&binary).map(drop)
}

/// Copies the command that was built with this profile, before a build with other features replaces it.
pub(crate) fn keep(profile: &str) -> Result<PathBuf, Failure> {
    let (binary, kept) = (built(profile)?, cargo::built("../tmp/shipped-bellwether")?);
    let copied = fs::create_dir_all(kept.with_file_name("")).and_then(|()| fs::copy(&binary, &kept));
    copied.map_err(|source| Failure::Launch { line: format!("copying {}", binary.display()), source })?;
    Ok(kept)
}

fn built(profile: &str) -> Result<PathBuf, Failure> {
    // The folder of the profile `dev` has another name.
    let folder = if profile == "dev" { "debug" } else { profile };
    cargo::built(format!("../{folder}/bellwether"))
}

fn measure(binary: &Path) -> io::Result<String> {
    let bytes = fs::metadata(binary)?.len();
    let mut starts = (0..STARTS).map(|_| version(binary)).collect::<io::Result<Vec<_>>>()?;
    starts.sort();
    let ready = ready(binary)?;
    Ok(format!(
        "the release build has {:.1} MB, `bellwether --version` takes {:.1} ms, and `bellwether dev` is ready after {} ms",
        bytes as f64 / 1e6,
        starts[STARTS / 2].as_secs_f64() * 1e3,
        ready.as_millis(),
    ))
}

fn version(binary: &Path) -> io::Result<Duration> {
    let begun = Instant::now();
    let status = Command::new(binary).arg("--version").stdout(Stdio::null()).status()?;
    if !status.success() {
        return Err(io::Error::other(format!("--version: {status}")));
    }
    Ok(begun.elapsed())
}

/// The time until a keeper and a node in one process have a leader, a worker and a gateway.
fn ready(binary: &Path) -> io::Result<Duration> {
    let http = unused_address()?;
    let begun = Instant::now();
    let _dev = Killed(
        Command::new(binary)
            .args(["-q", "dev", "--roles", "candidate,worker,gateway"])
            .args(["--listen", "127.0.0.1:0", "--http-listen", &http.to_string()])
            .stdin(Stdio::null())
            .spawn()?,
    );
    while begun.elapsed() < READY_WITHIN {
        if is_ready(http).unwrap_or(false) {
            return Ok(begun.elapsed());
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    Err(io::Error::other(format!("`bellwether dev` was not ready within {} s", READY_WITHIN.as_secs())))
}

fn is_ready(http: SocketAddr) -> io::Result<bool> {
    let mut stream = TcpStream::connect(http)?;
    stream.set_read_timeout(Some(READY_WITHIN))?;
    stream.write_all(b"GET /readyz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    Ok(answer.starts_with(b"HTTP/1.1 200"))
}

struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        // Both fail only if the process has ended.
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cargo::{TESTING, crates};

    #[test]
    fn the_tests_use_the_third_party_crates_of_the_command() {
        let tests = crates(&["--workspace", TESTING, "--edges", "normal,build,dev"]);
        let command =
            crates(&[&COMMAND[..], &["--package", DEV_FEATURES, "--edges", "normal,build"]].concat());
        let again = command.difference(&tests).collect::<Vec<_>>();
        assert!(
            again.is_empty(),
            "CI compiles them twice: add what enables their features to xtask/features: {again:#?}"
        );
    }
}
