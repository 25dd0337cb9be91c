//! A node as a child process.

use std::fmt;
use std::fs::File;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::Duration;

/// The program that the nodes' kind `exec` may run.
pub(super) const PROGRAM: &str = "expr";

/// Session timeout of the nodes: the larger part of a takeover.
pub(super) const SESSION: Duration = Duration::from_secs(2);

/// A running node; killed when dropped.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) name: String,
    metrics: SocketAddr,
    child: Child,
}

impl Node {
    pub(super) fn start(binary: &Path, namespace: &str, name: &str, log: &Path) -> io::Result<Self> {
        // The port is free now. If another process takes it before the node binds it, the node logs an error and ends.
        let metrics = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?;
        // The node has its own process group: Ctrl-C stops the demo, and the demo stops the nodes.
        let child = super::bound(binary)
            .args(["node", "--zookeeper", namespace, "--node-id", name, "--slots", "16"])
            .args(["--session-timeout", &format!("{}ms", SESSION.as_millis()), "--allow-exec", PROGRAM])
            .args(["--metrics-addr", &metrics.to_string()])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::options().create(true).append(true).open(log)?)
            .process_group(0)
            .spawn()?;
        Ok(Self { name: name.to_owned(), metrics, child })
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
        write!(f, "{}     process {}, metrics on http://{}/metrics", self.name, self.child.id(), self.metrics)
    }
}
