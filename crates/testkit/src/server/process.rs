//! The JVM as a guarded child.

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

/// Waits for a word before it becomes the JVM, so that the watchdog is on duty first. End of file ends it.
const LAUNCHER: &str = r#"read -r go && exec "$@" </dev/null"#;

/// A running JVM; dropping it kills it with SIGKILL and waits for its end.
#[derive(Debug)]
pub(super) struct Jvm {
    child: Child,
    watchdog: Option<Watchdog>,
}

impl Jvm {
    /// Launches `java` with `args`, its output appended to `log`, guarded by a watchdog that wipes `home`.
    pub(super) fn launch(java: &Path, args: &[String], log: File, home: &Path) -> io::Result<Self> {
        let mut watchdog = Watchdog::spawn(home)?;
        let mut child = Command::new("sh")
            .args(["-c", LAUNCHER, "launcher"])
            .arg(java)
            .args(args)
            .stdin(Stdio::piped())
            .stdout(log.try_clone()?)
            .stderr(log)
            .process_group(0)
            .spawn()?;
        watchdog.guard(child.id())?;
        child.stdin.take().expect("stdin was asked for as a pipe").write_all(b"go\n")?;
        Ok(Self { child, watchdog: Some(watchdog) })
    }

    /// The JVM's process id: the launcher became it.
    pub(super) fn id(&self) -> u32 {
        self.child.id()
    }

    /// SIGSTOP, and returns when all threads have stopped: the signal alone is only a request.
    pub(super) fn stop(&self) {
        self.signal(Signal::SIGSTOP);
        // An exit counts too, or a JVM that died would be waited for without end; it is left to be reaped.
        let stopped = WaitPidFlag::WSTOPPED | WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT;
        while wait::waitid(Id::Pid(self.pid()), stopped) == Err(Errno::EINTR) {}
    }

    /// SIGCONT.
    pub(super) fn go_on(&self) {
        self.signal(Signal::SIGCONT);
    }

    fn signal(&self, signal: Signal) {
        signal::kill(self.pid(), signal).expect("a child that was not reaped can be signalled");
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

impl Drop for Jvm {
    fn drop(&mut self) {
        // Failures are swallowed, as a panic in a drop during a panic aborts: a kill fails only for a child that
        // ended, a release only for a watchdog that somebody killed, and neither leaves anything running.
        drop(self.child.kill());
        drop(self.watchdog.take().map(Watchdog::release));
        drop(self.child.wait());
    }
}
