//! Processes of the command, as built with OpenTelemetry.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

use bellwether_testkit::Process;
use nix::sys::signal::Signal;
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

pub(crate) fn node(to: &str, endpoint: &str, name: &str, roles: &str) -> Process {
    let words = ["node", "--session-timeout", "4s", "--node-id", name, "--roles", roles];
    Process::start(name, &mut command(to, endpoint, &words)).unwrap()
}

/// SIGTERM; its exit code and what it said.
pub(crate) async fn end(mut node: Process) -> (Option<i32>, String) {
    node.signal(Signal::SIGTERM);
    (node.ended(SOON).await.code(), node.said())
}
