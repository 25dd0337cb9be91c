//! Checks the Kubernetes manifests; the driver is in `packaging/kubernetes/check`.

use std::process::Command;

use crate::cargo;
use crate::failure::Failure;

const DRIVER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../packaging/kubernetes/check/run.py");

/// Runs the driver.
pub(crate) fn run() -> Result<(), Failure> {
    cargo::run(Command::new("python3").arg(DRIVER))
}
