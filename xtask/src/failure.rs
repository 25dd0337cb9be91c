//! Why a task failed, and its exit code.

use std::fmt;
use std::io;
use std::process::{ExitCode, ExitStatus};

use bellwether_testkit::{Missing, StartError};

use crate::mutate::Trouble;

/// Why a task failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// A command failed and has printed the reason.
    Command { line: String, status: ExitStatus },
    /// A command could not be run.
    Launch { line: String, source: io::Error },
    /// An option of xtask was given among the arguments for cargo.
    Misplaced(String),
    /// ZooKeeper is not installed, and this task may not or could not install it.
    Missing(Missing),
    /// ZooKeeper is installed but does not start.
    Start(StartError),
    /// Types of the public API violate its rules.
    Api(Vec<String>),
    /// Links of the documentation lead nowhere.
    Links(Vec<String>),
    /// A mutation survived, or could not be run.
    Mutate(Box<Trouble>),
    /// A data directory was given for an ensemble.
    DataDir,
    /// ZooKeeper ran in the foreground and ended.
    Ended(io::Result<Option<ExitStatus>>),
}

impl Failure {
    /// The exit code of the failed command, so that the caller sees that of the test runner.
    pub(crate) fn exit_code(&self) -> ExitCode {
        match self {
            Self::Command { status, .. } => {
                let code = status.code().and_then(|code| u8::try_from(code).ok());
                code.map_or(ExitCode::FAILURE, ExitCode::from)
            }
            Self::Launch { .. }
            | Self::Misplaced(_)
            | Self::Missing(_)
            | Self::Start(_)
            | Self::Api(_)
            | Self::Links(_)
            | Self::Mutate(_)
            | Self::DataDir
            | Self::Ended(_) => ExitCode::FAILURE,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Command { line, status } => write!(f, "`{line}`: {status}"),
            Self::Launch { line, source } => write!(f, "`{line}` could not be run: {source}"),
            Self::Misplaced(word) => {
                write!(f, "{word} would be passed to cargo: put it before the arguments for cargo")
            }
            Self::Missing(missing) => write!(f, "{missing}"),
            Self::Start(error @ StartError::Io(source)) => write!(f, "{error}: {source}"),
            Self::Start(StartError::Missing(missing)) => write!(f, "{missing}"),
            Self::Start(error @ (StartError::Exited { .. } | StartError::NotReady { .. })) => {
                write!(f, "{error}")
            }
            Self::Api(leaks) => {
                write!(f, "the public API violates its rules:\n  {}", leaks.join("\n  "))
            }
            Self::Links(links) => write!(f, "broken links:\n  {}", links.join("\n  ")),
            Self::Mutate(trouble) => write!(f, "{trouble}"),
            Self::DataDir => f.write_str(
                "--data-dir is for one member: each member of an ensemble has its own temporary directory",
            ),
            Self::Ended(Ok(Some(status))) => write!(f, "zookeeper ended: {status}"),
            Self::Ended(Ok(None)) => write!(f, "zookeeper was killed"),
            Self::Ended(Err(error)) => write!(f, "waiting for zookeeper failed: {error}"),
        }
    }
}

impl std::error::Error for Failure {}
