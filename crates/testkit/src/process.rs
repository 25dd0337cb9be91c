//! A process of the command that a test starts: signalled, heard out, and gone with its handle.
//!
//! What it says goes to a file and not into a pipe, which would stop it once it is full, and the end of that is shown when
//! the test fails.

use std::fs::{self, File};
use std::io;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use nix::sys::signal::{self, Signal};
use nix::unistd::Pid;
use tempfile::TempDir;

use crate::eventually_some;

/// What a failed test shows of each log: its last lines.
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
    /// Starts it, with a log of its own that goes with it. Its stdout is nobody's.
    ///
    /// # Errors
    /// When it cannot be started, or its log not be made.
    pub fn start(name: &str, command: &mut Command) -> io::Result<Self> {
        let home = tempfile::tempdir()?;
        let log = home.path().join("log");
        let mut process = Self::start_with_log(name, command, log)?;
        process._home = Some(home);
        Ok(process)
    }

    /// As [`start`](Self::start), and what it says is added to this file, which stays.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub fn start_with_log(name: &str, command: &mut Command, log: PathBuf) -> io::Result<Self> {
        let to = File::options().create(true).append(true).open(&log)?;
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(to).spawn()?;
        Ok(Self { name: name.to_owned(), child, log, _home: None })
    }

    /// What the test calls it.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// As the system calls it.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// SIGKILL; it is gone when this returns.
    pub fn kill(&mut self) {
        self.child.kill().expect("a child can be killed");
        self.child.wait().expect("a child can be waited for");
    }

    /// Sends a signal to one that has not been seen to end.
    pub fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(i32::try_from(self.id()).expect("Linux keeps pids below 2^22"));
        signal::kill(pid, signal).expect("a child is there until it is waited for");
    }

    /// Whether it has ended.
    pub fn has_ended(&mut self) -> bool {
        self.child.try_wait().expect("a child can be waited for").is_some()
    }

    /// Waits for its end.
    pub async fn ended(&mut self, within: Duration) -> ExitStatus {
        let what = format!("{} ends", self.name);
        eventually_some(&what, within, async || self.child.try_wait().expect("a child can be waited for"))
            .await
    }

    /// All that it has said so far.
    #[must_use]
    pub fn said(&self) -> String {
        fs::read_to_string(&self.log).expect("its log is there, and text")
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Both fail only for a process that has ended.
        drop(self.child.kill());
        drop(self.child.wait());
        if std::thread::panicking() {
            let log = fs::read_to_string(&self.log).unwrap_or_default();
            let lines = log.lines().collect::<Vec<_>>();
            let tail = &lines[lines.len().saturating_sub(TAIL)..];
            eprintln!("--- {} said last:\n{}", self.name, tail.join("\n"));
        }
    }
}
