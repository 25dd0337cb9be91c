//! The server as a child process guarded by a watchdog.

use std::fs::File;
use std::io::{self, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};

use nix::errno::Errno;
use nix::sys::signal::{self, Signal};
use nix::sys::wait::{self, Id, WaitPidFlag};
use nix::unistd::Pid;

use super::watchdog::Watchdog;

/// Waits for a line before it executes the server, so that the watchdog is active first. End of file ends it.
const LAUNCHER: &str = r#"read -r go && exec "$@" </dev/null"#;

/// A running server; dropping it kills it with SIGKILL and waits for its end.
#[derive(Debug)]
pub(super) struct Guarded {
    child: Child,
    watchdog: Option<Watchdog>,
}

impl Guarded {
    /// Launches `program` with `args`, appends its output to `log`, and starts a watchdog that deletes `home`.
    pub(super) fn launch(program: &Path, args: &[String], log: File, home: &Path) -> io::Result<Self> {
        let mut watchdog = Watchdog::spawn(home)?;
        let mut child = Command::new("sh")
            .args(["-c", LAUNCHER, "launcher"])
            .arg(program)
            .args(args)
            .stdin(Stdio::piped())
            .stdout(log.try_clone()?)
            .stderr(log)
            .process_group(0)
            .spawn()?;
        watchdog.guard(child.id())?;
        child.stdin.take().expect("stdin is piped").write_all(b"go\n")?;
        Ok(Self { child, watchdog: Some(watchdog) })
    }

    /// Returns the process id of the server: the launcher has replaced itself with the server.
    pub(super) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends SIGSTOP and waits until all threads have stopped, because the signal is asynchronous.
    pub(super) fn stop(&self) {
        self.signal(Signal::SIGSTOP);
        // Also returns for an exited server, which would never stop; the exit status is not consumed.
        let stopped = WaitPidFlag::WSTOPPED | WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT;
        while wait::waitid(Id::Pid(self.pid()), stopped) == Err(Errno::EINTR) {}
    }

    /// SIGCONT.
    pub(super) fn go_on(&self) {
        self.signal(Signal::SIGCONT);
    }

    fn signal(&self, signal: Signal) {
        signal::kill(self.pid(), signal).expect("a child can be signalled until it is reaped");
    }

    fn pid(&self) -> Pid {
        Pid::from_raw(i32::try_from(self.child.id()).expect("Linux pids fit an i32"))
    }

    pub(super) fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        self.child.try_wait()
    }

    pub(super) fn wait(&mut self) -> io::Result<ExitStatus> {
        self.child.wait()
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        // Errors are ignored, because a panic in a drop during a panic aborts the process. A kill fails only for a
        // child that has ended, and a release only for a watchdog that was killed; in both cases no process is left
        // running.
        drop(self.child.kill());
        drop(self.watchdog.take().map(Watchdog::release));
        drop(self.child.wait());
    }
}
