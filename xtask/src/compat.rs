//! The keeper beside a real ZooKeeper, as clients see them that know neither; `crates/keeper/compat` does the work.

use std::ffi::OsString;
use std::process::Command;

use crate::cargo;
use crate::failure::Failure;

const DRIVER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../crates/keeper/compat/run.py");

/// Runs the comparison; its arguments are the driver's own.
pub(crate) fn run(arguments: &[OsString]) -> Result<(), Failure> {
    cargo::run(Command::new("python3").arg(DRIVER).args(arguments))
}
