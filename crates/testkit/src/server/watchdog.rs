//! Ends a server when the test process is no longer there to do so.
//!
//! A shell reads a pipe whose only writer is this process (the descriptor is close-on-exec, so no sibling inherits
//! it). End of file without the word `released` means that this process died: panic, abort, SIGKILL, or an exit
//! that drops no statics. The server starts only after the watchdog knows its pid, so there is no moment in which it
//! is unguarded.

use std::io::{self, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};

const SCRIPT: &str = r#"
read -r pid || exit 0
read -r released || { kill -KILL "$pid"; rm -rf -- "$1"; }
"#;

#[derive(Debug)]
pub(super) struct Watchdog {
    shell: Child,
    pipe: ChildStdin,
}

impl Watchdog {
    /// Starts a watchdog that will wipe `home` if it has to act. It lives in a process group of its own, as Ctrl-C
    /// must end the tests and not the one who cleans up after them.
    pub(super) fn spawn(home: &Path) -> io::Result<Self> {
        let mut shell = Command::new("sh")
            .args(["-c", SCRIPT, "watchdog"])
            .arg(home)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()?;
        let pipe = shell.stdin.take().expect("stdin was asked for as a pipe");
        Ok(Self { shell, pipe })
    }

    /// Names the process to guard.
    pub(super) fn guard(&mut self, pid: u32) -> io::Result<()> {
        writeln!(self.pipe, "{pid}")
    }

    /// Sends the watchdog home. Call it before the guarded process is reaped: afterwards its pid may be another's.
    pub(super) fn release(mut self) -> io::Result<()> {
        self.pipe.write_all(b"released\n")?;
        drop(self.pipe);
        self.shell.wait().map(drop)
    }
}
