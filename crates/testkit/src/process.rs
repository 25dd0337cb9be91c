//! A process of the command under test: can be signalled, has its output recorded, and is killed with its handle.
//!
//! Its output goes to a file and not into a pipe, because a full pipe would block the process. The end of the output is
//! printed if the test fails.

use std::fs::{self, File};
use std::io;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use nix::sys::signal::{self, Signal};
use nix::unistd::Pid;
use tempfile::TempDir;

use crate::eventually_some;

/// Number of log lines printed for a failed test.
const TAIL: usize = 25;

/// A running process; killed when dropped.
#[derive(Debug)]
pub struct Process {
    name: String,
    child: Child,
    log: PathBuf,
    _home: Option<TempDir>,
}

impl Process {
    /// Starts the process with its own log file, which is deleted with the handle. Its stdout is discarded.
    ///
    /// # Errors
    /// If the process cannot be started or the log cannot be created.
    pub fn start(name: &str, command: &mut Command) -> io::Result<Self> {
        let home = tempfile::tempdir()?;
        let log = home.path().join("log");
        let mut process = Self::start_with_log(name, command, log)?;
        process._home = Some(home);
        Ok(process)
    }

    /// As [`start`](Self::start), but appends the output to `log`, which is kept.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub fn start_with_log(name: &str, command: &mut Command, log: PathBuf) -> io::Result<Self> {
        let to = File::options().create(true).append(true).open(&log)?;
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(to).spawn()?;
        Ok(Self { name: name.to_owned(), child, log, _home: None })
    }

    /// Returns the name given by the test.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the process id.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends SIGKILL and waits for the process to end.
    pub fn kill(&mut self) {
        self.child.kill().expect("a child can be killed");
        self.child.wait().expect("a child can be waited for");
    }

    /// Sends a signal to the process, which must not have been reaped.
    pub fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(i32::try_from(self.id()).expect("Linux keeps pids below 2^22"));
        signal::kill(pid, signal).expect("a child exists until it is reaped");
    }

    /// Returns whether the process has ended.
    pub fn has_ended(&mut self) -> bool {
        self.child.try_wait().expect("a child can be waited for").is_some()
    }

    /// Waits for the process to end.
    pub async fn ended(&mut self, within: Duration) -> ExitStatus {
        let what = format!("{} ends", self.name);
        eventually_some(&what, within, async || self.child.try_wait().expect("a child can be waited for"))
            .await
    }

    /// Returns the output so far.
    #[must_use]
    pub fn said(&self) -> String {
        fs::read_to_string(&self.log).expect("the log exists and is text")
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Both calls fail only for a process that has ended.
        drop(self.child.kill());
        drop(self.child.wait());
        if std::thread::panicking() {
            let log = fs::read_to_string(&self.log).unwrap_or_default();
            let lines = log.lines().collect::<Vec<_>>();
            let tail = &lines[lines.len().saturating_sub(TAIL)..];
            eprintln!("--- last output of {}:\n{}", self.name, tail.join("\n"));
        }
    }
}
