//! Processes of the command, as built with OpenTelemetry.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

use bellwether_testkit::eventually_some;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tempfile::TempDir;

pub(crate) const SOON: Duration = Duration::from_secs(60);

/// The command with OpenTelemetry, which cargo built with this test. A copy: the test kit builds the command as it is shipped,
/// for the server that it starts, and puts it in the same place. So it is to be called before a namespace is made.
pub(crate) fn built() -> &'static Path {
    static COPY: OnceLock<(TempDir, PathBuf)> = OnceLock::new();
    let (_, copy) = COPY.get_or_init(|| {
        let dir = tempfile::tempdir().unwrap();
        let copy = dir.path().join("bellwether");
        std::fs::copy(env!("CARGO_BIN_EXE_bellwether"), &copy).unwrap();
        (dir, copy)
    });
    copy
}

/// A namespace of the test's own.
pub(crate) fn namespace(name: &str) -> String {
    built();
    bellwether_testkit::namespace(name)
}

/// The command in a namespace, which hears of no collector but this one.
pub(crate) fn command(to: &str, endpoint: &str, words: &[&str]) -> Command {
    let mut command = Command::new(built());
    for foreign in [
        "RUST_LOG",
        "TRACEPARENT",
        "OTEL_SDK_DISABLED",
        "OTEL_TRACES_SAMPLER",
        "OTEL_SERVICE_NAME",
        "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
    ] {
        command.env_remove(foreign);
    }
    command.args(words).env("BELLWETHER_ZOOKEEPER", to).env("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint);
    // Of spans that have ended: not to be waited for.
    command.env("OTEL_BSP_SCHEDULE_DELAY", "100").stdin(Stdio::null());
    command
}

/// Runs it to its end, which must be a good one.
pub(crate) fn run(command: &mut Command) {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
}

/// A running node; killed when dropped.
pub(crate) struct Node(Child);

impl Node {
    pub(crate) fn start(to: &str, endpoint: &str, name: &str, roles: &str) -> Self {
        let words = ["node", "--session-timeout", "4s", "--node-id", name, "--roles", roles];
        let mut command = command(to, endpoint, &words);
        Self(command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap())
    }

    /// SIGKILL; it is gone when this returns.
    pub(crate) fn kill(mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }

    /// SIGTERM; its exit code and what it said.
    pub(crate) async fn end(mut self) -> (Option<i32>, String) {
        kill(Pid::from_raw(i32::try_from(self.0.id()).unwrap()), Signal::SIGTERM).unwrap();
        let status = eventually_some("it ends", SOON, async || self.0.try_wait().unwrap()).await;
        let mut said = String::new();
        self.0.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        (status.code(), said)
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        // Both fail only for a process that has ended.
        drop(self.0.kill());
        drop(self.0.wait());
    }
}
