//! Sends requests generated from the gateway's OpenAPI document; the driver is in `crates/server/tests/http/fuzz`.

use std::ffi::OsString;
use std::process::Command;

use crate::cargo;
use crate::failure::Failure;
use crate::queue::Job;

const DRIVER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../crates/server/tests/http/fuzz/run.py");

/// Runs the driver with its arguments.
pub(crate) fn run(arguments: &[OsString]) -> Result<(), Failure> {
    cargo::run(&mut driver(arguments))
}

/// The same as a job.
pub(crate) fn job(arguments: &[OsString]) -> Job {
    Job { title: "cargo xtask fuzz-http".to_owned(), command: driver(arguments) }
}

fn driver(arguments: &[OsString]) -> Command {
    let mut driver = Command::new("python3");
    driver.arg(DRIVER).args(arguments);
    driver
}
