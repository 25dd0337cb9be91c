//! Kills a server if the test process can no longer do so.
//!
//! A shell reads a pipe whose only writer is this process (the descriptor is close-on-exec, so no sibling inherits it).
//! End of file without the line `released` means that this process has ended by panic, abort, SIGKILL, or an exit that
//! does not drop statics. The server starts only after the watchdog knows its pid, so it is never unguarded.

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
    /// Starts a watchdog that deletes `home` if it has to act. It has its own process group, because Ctrl-C must end
    /// the tests but not the cleanup.
    pub(super) fn spawn(home: &Path) -> io::Result<Self> {
        let mut shell = Command::new("sh")
            .args(["-c", SCRIPT, "watchdog"])
            .arg(home)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()?;
        let pipe = shell.stdin.take().expect("stdin is piped");
        Ok(Self { shell, pipe })
    }

    /// Sets the process to guard.
    pub(super) fn guard(&mut self, pid: u32) -> io::Result<()> {
        writeln!(self.pipe, "{pid}")
    }

    /// Ends the watchdog. Call it before the guarded process is reaped: afterwards its pid can belong to another
    /// process.
    pub(super) fn release(mut self) -> io::Result<()> {
        self.pipe.write_all(b"released\n")?;
        drop(self.pipe);
        self.shell.wait().map(drop)
    }
}
