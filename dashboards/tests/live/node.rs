//! A node process whose addresses stay the same after a restart.

use std::fs::File;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use bellwether_testkit::{command, eventually, unused_address};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::SOON;

/// The number of lines of each node's log that a failed test prints.
const LOG_TAIL: usize = 15;

/// A node process, killed when dropped.
pub(crate) struct Node {
    name: &'static str,
    roles: &'static str,
    to: String,
    pub(crate) metrics: SocketAddr,
    /// The address of its gateway, if it has the role.
    pub(crate) http: SocketAddr,
    log: PathBuf,
    child: Option<Child>,
}

impl Node {
    /// Starts the process. Does not wait until it is connected to ZooKeeper.
    pub(crate) fn start(name: &'static str, roles: &'static str, to: &str, log: PathBuf) -> Self {
        let (metrics, http) = (unused_address().unwrap(), unused_address().unwrap());
        let mut node = Self { name, roles, to: to.to_owned(), metrics, http, log, child: None };
        node.again();
        node
    }

    pub(crate) fn name(&self) -> &'static str {
        self.name
    }

    /// Restarts the process after its end.
    pub(crate) fn again(&mut self) {
        let log = File::options().create(true).append(true).open(&self.log).unwrap();
        let child = Command::new("setpriv")
            .args(["--pdeathsig", "KILL"])
            .arg(command().unwrap())
            .args(["node", "--zookeeper", &self.to, "--node-id", self.name, "--roles", self.roles])
            .args(["--session-timeout", "1500ms", "--drain-grace", "100ms", "--slots", "4"])
            .args(["--metrics-listen", &self.metrics.to_string(), "--http-listen", &self.http.to_string()])
            .env_remove("RUST_LOG")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn();
        self.child = Some(child.unwrap());
    }

    /// Kills the process with SIGKILL and waits for its end.
    pub(crate) fn kill(&mut self) {
        let mut child = self.child.take().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
    }

    /// Stops the process with SIGTERM and waits until it has drained.
    pub(crate) async fn drain(&mut self) {
        let mut child = self.child.take().unwrap();
        kill(Pid::from_raw(i32::try_from(child.id()).unwrap()), Signal::SIGTERM).unwrap();
        eventually("the node has drained", SOON, async || child.try_wait().unwrap().is_some()).await;
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            // Both calls fail only if the process has ended.
            drop(child.kill());
            drop(child.wait());
        }
        if std::thread::panicking() {
            let log = std::fs::read_to_string(&self.log).unwrap_or_default();
            let lines = log.lines().collect::<Vec<_>>();
            let tail = &lines[lines.len().saturating_sub(LOG_TAIL)..];
            eprintln!("--- last log lines of {}:\n{}", self.name, tail.join("\n"));
        }
    }
}
