//! Compares the keeper with a real ZooKeeper by means of independent clients; the driver is in `crates/keeper/compat`.

use std::ffi::OsString;
use std::process::Command;

use crate::cargo;
use crate::failure::Failure;

const DRIVER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../crates/keeper/compat/run.py");

/// Runs the comparison with the arguments of the driver.
pub(crate) fn run(arguments: &[OsString]) -> Result<(), Failure> {
    cargo::run(Command::new("python3").arg(DRIVER).args(arguments))
}
