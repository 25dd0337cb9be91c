//! Why a task failed, and with which exit code.

use std::fmt;
use std::io;
use std::process::{ExitCode, ExitStatus};

use bellwether_testkit::{Missing, StartError};

use crate::mutate::Trouble;

/// Why a task failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// A command ran and failed; it has said why itself.
    Command { line: String, status: ExitStatus },
    /// A command could not be run.
    Launch { line: String, source: io::Error },
    /// An option of ours that stands among those for cargo.
    Misplaced(String),
    /// ZooKeeper is missing, and this task may not or could not install it.
    Missing(Missing),
    /// ZooKeeper is there and does not start.
    Start(StartError),
    /// Links of the documentation lead nowhere.
    Links(Vec<String>),
    /// A mutation survived, or could not be run.
    Mutate(Box<Trouble>),
    /// ZooKeeper ran in the foreground and ended by itself.
    Ended(io::Result<Option<ExitStatus>>),
}

impl Failure {
    /// The failed command's own exit code, so that a caller sees what the test runner said.
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
            | Self::Links(_)
            | Self::Mutate(_)
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
                write!(f, "{word} would go to cargo: give it before all that is for cargo")
            }
            Self::Missing(missing) => write!(f, "{missing}"),
            Self::Start(error @ StartError::Io(source)) => write!(f, "{error}: {source}"),
            Self::Start(StartError::Missing(missing)) => write!(f, "{missing}"),
            Self::Start(error @ (StartError::Exited { .. } | StartError::NotReady { .. })) => {
                write!(f, "{error}")
            }
            Self::Links(links) => write!(f, "broken links:\n  {}", links.join("\n  ")),
            Self::Mutate(trouble) => write!(f, "{trouble}"),
            Self::Ended(Ok(Some(status))) => write!(f, "zookeeper ended: {status}"),
            Self::Ended(Ok(None)) => write!(f, "zookeeper was killed"),
            Self::Ended(Err(error)) => write!(f, "zookeeper could not be waited for: {error}"),
        }
    }
}

impl std::error::Error for Failure {}
