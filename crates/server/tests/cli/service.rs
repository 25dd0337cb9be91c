//! A command that serves until it is stopped.

use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use bellwether_testkit::eventually_some;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use crate::run::command;

pub(crate) const SOON: Duration = Duration::from_secs(20);

/// A running service; killed when dropped.
pub(crate) struct Service {
    child: Child,
    /// The document that it printed when it was ready.
    pub(crate) told: Value,
}

impl Service {
    /// Returns when the command is ready, which it reports by a document on stdout.
    pub(crate) fn start(arguments: &[&str]) -> Self {
        Self::spawn(&mut command(&[&["--output", "json"], arguments].concat()))
    }

    /// Starts a command that prints JSON.
    pub(crate) fn spawn(command: &mut Command) -> Self {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let stdout = child.stdout.take().unwrap();
        let told = serde_json::Deserializer::from_reader(stdout).into_iter().next();
        match told {
            Some(Ok(told)) => Self { child, told },
            told @ (Some(Err(_)) | None) => {
                child.kill().unwrap();
                let mut said = String::new();
                child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
                panic!("{command:?} printed {told:?} and logged {said}");
            }
        }
    }

    /// Its connect string.
    pub(crate) fn zookeeper(&self) -> &str {
        self.told["zookeeper"].as_str().unwrap()
    }

    /// Sends SIGKILL and waits for the end of the process.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Sends SIGTERM. Returns its exit code and its log output.
    pub(crate) async fn end(mut self) -> (Option<i32>, String) {
        kill(Pid::from_raw(i32::try_from(self.child.id()).unwrap()), Signal::SIGTERM).unwrap();
        let status = eventually_some("the command ends", SOON, async || self.child.try_wait().unwrap()).await;
        let mut said = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        (status.code(), said)
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        // Both fail only for a process that has ended.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
