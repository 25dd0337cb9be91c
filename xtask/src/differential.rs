//! Compares the keeper with ZooKeeper by random requests, with the installed release and with 3.9.3; the test is
//! `crates/keeper/tests/differential`.

use std::path::PathBuf;
use std::process::Command;

use crate::cargo::{self, TESTING, cargo};
use crate::failure::Failure;
use crate::queue::{self, Job};

/// Fetches the jars of 3.9.3.
const FETCH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../crates/keeper/compat/newer.py");
/// Selects the jars for the test.
const JARS: &str = "KEEPER_DIFF_ZOOKEEPER";
/// The number of requests, with new seeds.
const REQUESTS: &str = "KEEPER_DIFF_REQUESTS";

/// The test on 3.9.3 as a job. The suite of the keeper compares with the installed release.
pub(crate) fn newer() -> Result<Job, Failure> {
    queue::task(&["differential", "--newer"])
}

/// Runs the test on both releases, or on 3.9.3 alone, with this number of requests per release, or with the seeds of CI.
pub(crate) fn run(requests: Option<u64>, newer_alone: bool) -> Result<(), Failure> {
    if !newer_alone {
        cargo::run(&mut test(requests))?;
    }
    let jars = jars()?;
    cargo::run(Command::new("python3").arg(FETCH).arg(&jars))?;
    cargo::run(test(requests).env(JARS, jars))
}

fn test(requests: Option<u64>) -> Command {
    let mut test = cargo();
    test.args(["test", "--workspace", TESTING, "--test", "differential", "--", "--nocapture", "give"]);
    test.env_remove(JARS);
    if let Some(requests) = requests {
        test.env(REQUESTS, requests.to_string());
    }
    test
}

/// The directory of the jars, below `target`.
fn jars() -> Result<PathBuf, Failure> {
    cargo::built("../zookeeper-3.9.3")
}
