//! Runs the command and captures its output.

use std::fmt;
use std::io::Write;
use std::process::{Command, Stdio};

use bellwether_testkit::binary_or;
use serde_json::Value;

/// The result of a run of the command.
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ran {
    /// Parses stdout as one JSON document.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// Asserts the exit code; the panic message contains the output.
    #[track_caller]
    pub(crate) fn exits(self, code: i32) -> Self {
        assert_eq!(self.code, code, "{self:?}");
        self
    }

    /// Asserts that stderr contains a text.
    #[track_caller]
    pub(crate) fn says(self, text: &str) -> Self {
        assert!(self.stderr.contains(text), "{text:?} is not in {self:?}");
        self
    }
}

impl fmt::Debug for Ran {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "exit {}\n--- stdout\n{}--- stderr\n{}", self.code, self.stdout, self.stderr)
    }
}

pub(crate) fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(binary_or(env!("CARGO_BIN_EXE_bellwether")));
    command
        .args(arguments)
        .env_remove("BELLWETHER_ZOOKEEPER")
        .env_remove("RUST_LOG")
        .env_remove("TRACEPARENT");
    command
}

pub(crate) fn run(arguments: &[&str]) -> Ran {
    ran(&mut command(arguments))
}

/// Runs the command in a namespace.
pub(crate) fn run_in(to: &str, arguments: &[&str]) -> Ran {
    ran(command(arguments).env("BELLWETHER_ZOOKEEPER", to))
}

pub(crate) fn run_with_stdin(to: &str, arguments: &[&str], stdin: &[u8]) -> Ran {
    let mut child = command(arguments)
        .env("BELLWETHER_ZOOKEEPER", to)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(stdin).unwrap();
    told(child.wait_with_output().unwrap())
}

pub(crate) fn ran(command: &mut Command) -> Ran {
    told(command.stdin(Stdio::null()).output().unwrap())
}

fn told(output: std::process::Output) -> Ran {
    Ran {
        code: output.status.code().expect("the command was not killed by a signal"),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}
