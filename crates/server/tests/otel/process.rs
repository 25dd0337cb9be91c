//! Processes of the command, built with OpenTelemetry.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

use bellwether_testkit::Process;
use nix::sys::signal::Signal;
use tempfile::TempDir;

pub(crate) const SOON: Duration = Duration::from_secs(60);

/// Returns a copy of the command with OpenTelemetry, which cargo built with this test. The test kit builds the
/// command without it, for the server that it starts, and replaces the original. So call this before a namespace is
/// created.
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

/// Returns a namespace for the test.
pub(crate) fn namespace(name: &str) -> String {
    built();
    bellwether_testkit::namespace(name)
}

/// Returns the command in a namespace, with this collector only.
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
    // Spans that have ended are sent soon.
    command.env("OTEL_BSP_SCHEDULE_DELAY", "100").stdin(Stdio::null());
    command
}

/// Runs the command to its end. It must succeed.
pub(crate) fn run(command: &mut Command) {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
}

pub(crate) fn node(to: &str, endpoint: &str, name: &str, roles: &str) -> Process {
    let words = ["node", "--session-timeout", "4s", "--node-id", name, "--roles", roles];
    Process::start(name, &mut command(to, endpoint, &words)).unwrap()
}

/// Sends SIGTERM. Returns the exit code and the output.
pub(crate) async fn end(mut node: Process) -> (Option<i32>, String) {
    node.signal(Signal::SIGTERM);
    (node.ended(SOON).await.code(), node.said())
}
