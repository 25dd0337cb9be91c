//! A node as a process, at an address that stays when it is started again.

use std::fs::File;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use bellwether_testkit::{command, eventually, unused_address};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::SOON;

/// What a failed test shows of each node's log: its last lines.
const LOG_TAIL: usize = 15;

/// A node; killed when dropped.
pub(crate) struct Node {
    name: &'static str,
    roles: &'static str,
    to: String,
    pub(crate) metrics: SocketAddr,
    /// Where its gateway listens, if it has the role.
    pub(crate) http: SocketAddr,
    log: PathBuf,
    child: Option<Child>,
}

impl Node {
    /// Starts it, on its way to ZooKeeper when this returns.
    pub(crate) fn start(name: &'static str, roles: &'static str, to: &str, log: PathBuf) -> Self {
        let (metrics, http) = (unused_address().unwrap(), unused_address().unwrap());
        let mut node = Self { name, roles, to: to.to_owned(), metrics, http, log, child: None };
        node.again();
        node
    }

    pub(crate) fn name(&self) -> &'static str {
        self.name
    }

    /// Starts it again after its end.
    pub(crate) fn again(&mut self) {
        let log = File::options().create(true).append(true).open(&self.log).unwrap();
        let child = Command::new("setpriv")
            .args(["--pdeathsig", "KILL"])
            .arg(command().unwrap())
            .args(["node", "--zookeeper", &self.to, "--node-id", self.name, "--roles", self.roles])
            .args(["--session-timeout", "1500ms", "--drain-grace", "100ms", "--slots", "4"])
            .args(["--metrics-addr", &self.metrics.to_string(), "--http-addr", &self.http.to_string()])
            .env_remove("RUST_LOG")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn();
        self.child = Some(child.unwrap());
    }

    /// SIGKILL; the process is gone when this returns.
    pub(crate) fn kill(&mut self) {
        let mut child = self.child.take().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
    }

    /// SIGTERM; it has handed back what it ran when this returns.
    pub(crate) async fn drain(&mut self) {
        let mut child = self.child.take().unwrap();
        kill(Pid::from_raw(i32::try_from(child.id()).unwrap()), Signal::SIGTERM).unwrap();
        eventually("it has drained", SOON, async || child.try_wait().unwrap().is_some()).await;
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            // Both fail only for a process that has ended.
            drop(child.kill());
            drop(child.wait());
        }
        if std::thread::panicking() {
            let log = std::fs::read_to_string(&self.log).unwrap_or_default();
            let lines = log.lines().collect::<Vec<_>>();
            let tail = &lines[lines.len().saturating_sub(LOG_TAIL)..];
            eprintln!("--- {} said last:\n{}", self.name, tail.join("\n"));
        }
    }
}
