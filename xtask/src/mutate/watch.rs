//! Runs a command and stops it as soon as its verdict is known: a test failed, or its time limit was exceeded.

use std::fs::{self, File};
use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use super::Trouble;

/// The poll interval.
const LOOK: Duration = Duration::from_millis(200);

/// The result of a command.
#[derive(Debug)]
pub(super) struct Ran {
    /// `None` if it was stopped.
    pub(super) ended: Option<ExitStatus>,
    pub(super) took: Duration,
    /// Its output.
    pub(super) said: String,
}

/// Runs a command in a separate process group, with its output in a file, until it ends, a test fails, or its time
/// limit is exceeded.
pub(super) fn watched(command: &mut Command, log: &Path, bound: Duration) -> Result<Ran, Trouble> {
    let at = |source| Trouble::File { path: log.to_owned(), source };
    let output = File::create(log).map_err(at)?;
    let errors = output.try_clone().map_err(at)?;
    let since = Instant::now();
    let mut child = command
        .stdin(Stdio::null())
        .stdout(output)
        .stderr(errors)
        .process_group(0)
        .spawn()
        .map_err(Trouble::Cargo)?;
    let ended = loop {
        if let Some(status) = child.try_wait().map_err(Trouble::Cargo)? {
            break Some(status);
        }
        if since.elapsed() > bound || read(log)?.lines().any(|line| failed_test(line).is_some()) {
            kill(&mut child).map_err(Trouble::Cargo)?;
            break None;
        }
        thread::sleep(LOOK);
    };
    Ok(Ran { ended, took: since.elapsed(), said: read(log)? })
}

/// Parses `a::b` from `test a::b ... FAILED`.
pub(super) fn failed_test(line: &str) -> Option<&str> {
    line.strip_prefix("test ")?.strip_suffix(" ... FAILED")
}

fn read(path: &Path) -> Result<String, Trouble> {
    let said = fs::read(path).map_err(|source| Trouble::File { path: path.to_owned(), source })?;
    Ok(String::from_utf8_lossy(&said).into_owned())
}

fn kill(child: &mut Child) -> io::Result<()> {
    let group = i32::try_from(child.id()).expect("a process id is positive");
    killpg(Pid::from_raw(group), Signal::SIGKILL)?;
    child.wait().map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    fn shell(script: &str, bound: Duration) -> Ran {
        let dir = tempfile::tempdir().unwrap();
        watched(Command::new("sh").args(["-c", script]), &dir.path().join("log"), bound).unwrap()
    }

    #[test]
    fn a_command_that_ends_in_time_is_not_stopped() {
        let ran = shell("echo out; echo err >&2; exit 3", LONG);
        assert_eq!(ran.ended.and_then(|status| status.code()), Some(3));
        assert_eq!(ran.said, "out\nerr\n");
    }

    #[test]
    fn a_command_is_stopped_at_its_time_limit() {
        let bound = Duration::from_millis(300);
        let ran = shell("sleep 60 & wait", bound);
        assert_eq!(ran.ended, None);
        assert!(ran.took >= bound && ran.took < LONG, "{:?}", ran.took);
    }

    #[test]
    fn a_command_is_stopped_when_a_test_failed() {
        let ran = shell("echo 'test a::b ... ok'; echo 'test a::c ... FAILED'; sleep 60", LONG);
        assert_eq!(ran.ended, None);
        assert!(ran.took < LONG);
        assert_eq!(ran.said.lines().filter_map(failed_test).collect::<Vec<_>>(), ["a::c"]);
    }
}
