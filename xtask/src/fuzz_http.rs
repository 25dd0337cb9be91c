//! Sends requests generated from the gateway's OpenAPI document; the driver is in `crates/server/tests/http/fuzz`.

use std::ffi::OsString;
use std::process::Command;

use crate::cargo;
use crate::failure::Failure;

const DRIVER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../crates/server/tests/http/fuzz/run.py");

/// Runs the driver with its arguments.
pub(crate) fn run(arguments: &[OsString]) -> Result<(), Failure> {
    cargo::run(Command::new("python3").arg(DRIVER).args(arguments))
}
