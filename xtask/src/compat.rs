//! Compares the keeper with a real ZooKeeper by means of independent clients; the driver is in `crates/keeper/compat`.

use std::ffi::OsString;
use std::process::Command;

use crate::cargo;
use crate::failure::Failure;
use crate::queue::Job;

const DRIVER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../crates/keeper/compat/run.py");

/// Runs the comparison with the arguments of the driver.
pub(crate) fn run(arguments: &[OsString]) -> Result<(), Failure> {
    cargo::run(&mut driver(arguments))
}

/// The same as a job.
pub(crate) fn job(arguments: &[OsString]) -> Job {
    Job { title: "cargo xtask compat".to_owned(), command: driver(arguments) }
}

fn driver(arguments: &[OsString]) -> Command {
    let mut driver = Command::new("python3");
    driver.arg(DRIVER).args(arguments);
    driver
}
