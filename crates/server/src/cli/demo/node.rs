//! A node as a child process.

use std::fmt;
use std::fs::File;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::Duration;

/// The program that the nodes' kind `exec` may run.
pub(super) const PROGRAM: &str = "/usr/bin/expr";

/// Session timeout of the nodes: the larger part of a takeover.
pub(super) const SESSION: Duration = Duration::from_secs(2);

/// A running node; killed when dropped.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) name: String,
    log: PathBuf,
    child: Child,
}

impl Node {
    pub(super) fn start(binary: &Path, namespace: &str, name: &str, log: &Path) -> io::Result<Self> {
        // The node has its own process group: Ctrl-C stops the demo, and the demo stops the nodes.
        let child = super::bound(binary)
            .args(["node", "--zookeeper", namespace, "--node-id", name, "--slots", "16"])
            .args(["--session-timeout", &format!("{}ms", SESSION.as_millis()), "--allow-exec", PROGRAM])
            .args(["--metrics-listen", "127.0.0.1:0"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::options().create(true).append(true).open(log)?)
            .process_group(0)
            .spawn()?;
        Ok(Self { name: name.to_owned(), log: log.to_owned(), child })
    }

    /// Returns the address of its metrics, which it logs when it starts.
    fn metrics(&self) -> Option<String> {
        let log = std::fs::read_to_string(&self.log).ok()?;
        let (_, rest) = log.rsplit_once("the node serves metrics address=")?;
        Some(rest.lines().next()?.trim().to_owned())
    }

    /// Sends SIGKILL and waits for the end of the process.
    pub(super) fn kill(mut self) -> io::Result<()> {
        self.child.kill()?;
        self.child.wait().map(drop)
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        // Both fail only for a process that has ended.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}     process {}", self.name, self.child.id())?;
        self.metrics().map_or(Ok(()), |address| write!(f, ", metrics on http://{address}/metrics"))
    }
}
