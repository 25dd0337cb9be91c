//! Requests that are made from the gateway's OpenAPI document; `crates/server/tests/http/fuzz` does the work.

use std::ffi::OsString;
use std::process::Command;

use crate::cargo;
use crate::failure::Failure;

const DRIVER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../crates/server/tests/http/fuzz/run.py");

/// Makes them; its arguments are the driver's own.
pub(crate) fn run(arguments: &[OsString]) -> Result<(), Failure> {
    cargo::run(Command::new("python3").arg(DRIVER).args(arguments))
}
