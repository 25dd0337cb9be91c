//! A node process: starts it, sends signals, reads its metrics, and kills it when the handle is dropped.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::ops::{Deref, DerefMut};
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use bellwether::metrics as metric;
use bellwether_testkit::{Process, Proxy, binary_or, unused_address};

use crate::stage::{SESSION, SOON};

/// The options of a node process.
pub(crate) struct Launch {
    name: String,
    to: String,
    log: PathBuf,
    roles: &'static str,
    session: Duration,
    slots: u32,
    grace: Duration,
    election: &'static str,
}

impl Launch {
    pub(crate) fn new(name: &str, to: &str, log: PathBuf) -> Self {
        let grace = Duration::from_secs(20);
        let (name, to) = (name.to_owned(), to.to_owned());
        Self {
            name,
            to,
            log,
            roles: "candidate,worker",
            session: SESSION,
            slots: 8,
            grace,
            election: "queue",
        }
    }

    pub(crate) fn candidate(self) -> Self {
        Self { roles: "candidate", ..self }
    }

    pub(crate) fn worker(self) -> Self {
        Self { roles: "worker", ..self }
    }

    pub(crate) fn election(self, election: &'static str) -> Self {
        Self { election, ..self }
    }

    pub(crate) fn behind(self, proxy: &Proxy) -> Self {
        Self { to: proxy.connect_string(), ..self }
    }

    pub(crate) fn session(self, session: Duration) -> Self {
        Self { session, ..self }
    }

    pub(crate) fn slots(self, slots: u32) -> Self {
        Self { slots, ..self }
    }

    pub(crate) fn grace(self, grace: Duration) -> Self {
        Self { grace, ..self }
    }

    /// Starts the process. Does not wait until it is connected to ZooKeeper.
    pub(crate) fn start(self) -> NodeProcess {
        // Not a port that the system gives to sockets: another test program could get it before the node binds it.
        let metrics = unused_address().unwrap();
        let millis = |duration: Duration| format!("{}ms", duration.as_millis());
        // The kernel kills the process if the thread that started it ends without doing so.
        let mut command = Command::new("setpriv");
        command
            .args(["--pdeathsig", "KILL"])
            .arg(binary_or(env!("CARGO_BIN_EXE_bellwether")))
            .arg("node")
            .args(["--zookeeper", &self.to, "--node-id", &self.name, "--roles", self.roles])
            .args(["--session-timeout", &millis(self.session), "--drain-grace", &millis(self.grace)])
            .args(["--election", self.election])
            .args(["--slots", &self.slots.to_string(), "--allow-exec", "/bin/sh"])
            .args(["--metrics-listen", &metrics.to_string()])
            .env_remove("RUST_LOG");
        let process = Process::start_with_log(&self.name, &mut command, self.log).unwrap();
        NodeProcess { process, metrics }
    }
}

/// A running node.
pub(crate) struct NodeProcess {
    process: Process,
    metrics: SocketAddr,
}

impl NodeProcess {
    /// The sum of a metric's series; `None` while the process does not answer.
    pub(crate) fn metric(&self, name: &str) -> Option<f64> {
        self.sum(name, "")
    }

    /// The number of attempts that this node closed with this outcome; `None` while the process does not answer.
    pub(crate) fn attempts(&self, outcome: &str) -> Option<f64> {
        self.sum(metric::JOB_ATTEMPTS, &format!("outcome=\"{outcome}\""))
    }

    /// The number of waiting jobs of a kind that this leader reports; `None` while the process does not answer.
    pub(crate) fn queued(&self, kind: &str) -> Option<f64> {
        self.sum(metric::QUEUE_DEPTH, &format!("kind=\"{kind}\""))
    }

    /// The sum of the series that have this label.
    fn sum(&self, name: &str, label: &str) -> Option<f64> {
        let mut stream = TcpStream::connect_timeout(&self.metrics, SOON).ok()?;
        stream.set_read_timeout(Some(SOON)).ok()?;
        stream.write_all(b"GET /metrics HTTP/1.0\r\n\r\n").ok()?;
        let mut text = String::new();
        stream.read_to_string(&mut text).ok()?;
        let series = text.lines().filter_map(|line| line.strip_prefix(name));
        let values = series.filter(|rest| rest.starts_with([' ', '{']) && rest.contains(label));
        Some(values.filter_map(|rest| rest.rsplit(' ').next()?.parse::<f64>().ok()).sum())
    }

    pub(crate) fn open_files(&self) -> usize {
        std::fs::read_dir(format!("/proc/{}/fd", self.id())).unwrap().count()
    }
}

impl Deref for NodeProcess {
    type Target = Process;

    fn deref(&self) -> &Process {
        &self.process
    }
}

impl DerefMut for NodeProcess {
    fn deref_mut(&mut self) -> &mut Process {
        &mut self.process
    }
}
