//! Failures as an exit code and lines on stderr.

use std::io;
use std::process::ExitCode;

use bellwether::access_lists::AccessListError;
use bellwether::client::{
    ChangeRetentionError, ChangeWorkerError, ConnectError, Error, GroupError, GroupWaitError, PurgeError,
    ScheduleError, SubmitError, WaitError,
};
use bellwether::error::ErrorClass;
pub(crate) use bellwether::error::chain;
use bellwether::node::{RunError, StartError};
use bellwether::{AccessError, InvalidConnection};
use bellwether_documents::Invalid;
use bellwether_gateway::GatewayError;
use bellwether_gateway::access::{JwtError, TokenError};
use bellwether_gateway::metrics::MetricsError;
use bellwether_gateway::tls::TlsError;
use bellwether_keeper::server::StopReason;
use bellwether_keeper::store::StoreError;

use super::logging::LogFormat;
use super::output::printable;

/// The kinds of failure, by priority: the exit code belongs to the first kind that occurred.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Unreachable,
    Failed,
    Usage,
    NotFound,
    TimedOut,
}

impl Kind {
    fn code(self) -> u8 {
        match self {
            Self::Failed => 1,
            Self::Usage => 2,
            Self::Unreachable => 3,
            Self::NotFound => 4,
            Self::TimedOut => 5,
        }
    }
}

/// Why a command did not succeed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Lines for stderr, each with its kind.
    Lines(Vec<(Kind, String)>),
    /// The reader of stdout closed it, as `head` does. This is not a failure.
    Pipe,
}

/// Limit of lines for one failure: of thousands of jobs, the first ones are enough.
const LINES: usize = 10;

impl Failure {
    pub(crate) fn new(kind: Kind, line: impl Into<String>) -> Self {
        Self::Lines(vec![(kind, line.into())])
    }

    pub(crate) fn failed(line: impl Into<String>) -> Self {
        Self::new(Kind::Failed, line)
    }

    pub(crate) fn usage(line: impl Into<String>) -> Self {
        Self::new(Kind::Usage, line)
    }

    /// Returns the failure of an error of a library with another line, for example one that names the options.
    pub(crate) fn of(error: &impl LibraryError, line: impl Into<String>) -> Self {
        Self::new(error.kind(), line)
    }

    /// Returns `Ok` if there are no lines.
    pub(crate) fn all(lines: Vec<(Kind, String)>) -> Result<(), Self> {
        if lines.is_empty() { Ok(()) } else { Err(Self::Lines(lines)) }
    }
}

/// Prints the failure and returns its exit code.
pub(crate) fn code(result: Result<(), Failure>, format: LogFormat) -> ExitCode {
    let lines = match result {
        Ok(()) | Err(Failure::Pipe) => return ExitCode::SUCCESS,
        Err(Failure::Lines(lines)) => lines,
    };
    let say = |line: &str| match format {
        LogFormat::Text => eprintln!("{}", shown(line)),
        LogFormat::Json => tracing::error!("{line}"),
    };
    lines.iter().take(LINES).for_each(|(_, line)| say(line));
    if let Some(more @ 1..) = lines.len().checked_sub(LINES) {
        say(&format!("and {more} more"));
    }
    ExitCode::from(lines.iter().map(|(kind, _)| *kind).min().map_or(1, Kind::code))
}

/// A line for a person. Errors contain texts of jobs, files and servers.
fn shown(line: &str) -> String {
    format!("bellwether: {}", printable(line))
}

impl From<Invalid> for Failure {
    fn from(Invalid(reason): Invalid) -> Self {
        Self::usage(reason)
    }
}

impl From<ErrorClass> for Kind {
    fn from(class: ErrorClass) -> Self {
        match class {
            ErrorClass::Invalid => Self::Usage,
            ErrorClass::NotFound => Self::NotFound,
            ErrorClass::Unavailable | ErrorClass::Closed => Self::Unreachable,
            ErrorClass::Unknown | ErrorClass::TimedOut => Self::TimedOut,
            ErrorClass::Conflict
            | ErrorClass::Contended
            | ErrorClass::Overloaded
            | ErrorClass::Refused
            | ErrorClass::Unreadable
            | ErrorClass::Failed => Self::Failed,
            // A class of a later version of the library.
            _ => Self::Failed,
        }
    }
}

/// Errors of the library, whose class determines the kind of failure.
pub(crate) trait LibraryError: std::error::Error + Sized {
    fn kind(&self) -> Kind;

    fn report(&self) -> (Kind, String) {
        (self.kind(), chain(self))
    }
}

macro_rules! library_errors {
    ($($error:ty),+ $(,)?) => {$(
        impl LibraryError for $error {
            fn kind(&self) -> Kind {
                self.class().into()
            }
        }
    )+};
}

library_errors!(
    Error,
    GroupError,
    GroupWaitError,
    PurgeError,
    RunError,
    ScheduleError,
    ChangeRetentionError,
    SubmitError,
    ChangeWorkerError,
    WaitError,
    GatewayError,
    JwtError,
    MetricsError,
    TlsError,
    TokenError,
);

macro_rules! keeper_errors {
    ($($error:ty),+ $(,)?) => {$(
        impl LibraryError for $error {
            fn kind(&self) -> Kind {
                match self.class() {
                    // The keeper has failed; no ZooKeeper was asked.
                    ErrorClass::Closed => Kind::Failed,
                    class => class.into(),
                }
            }
        }
    )+};
}

keeper_errors!(StopReason, StoreError, bellwether_keeper::server::StartError);

macro_rules! connection_errors {
    ($($error:ty),+ $(,)?) => {$(
        impl LibraryError for $error {
            fn kind(&self) -> Kind {
                self.class().into()
            }

            fn report(&self) -> (Kind, String) {
                let of = if let Self::Connection(error) = self { Some(error) } else { None };
                (self.kind(), with_flags(chain(self), of))
            }
        }
    )+};
}

connection_errors!(AccessListError, ConnectError, StartError);

/// Adds the flags of the command to an error of the library, which names only the setting.
fn with_flags(line: String, error: Option<&InvalidConnection>) -> String {
    match error {
        Some(InvalidConnection::Access(AccessError::ClearText { .. })) => {
            format!("{line} (--zookeeper-tls-ca, --zookeeper-scheme, --zookeeper-insecure)")
        }
        _ => line,
    }
}

impl<E: LibraryError> From<E> for Failure {
    fn from(error: E) -> Self {
        Self::Lines(vec![error.report()])
    }
}

/// Converts an error of stdout. There is no general conversion from `io::Error`, because a failure must name its
/// subject.
pub(crate) fn stdout(error: &io::Error) -> Failure {
    match error.kind() {
        io::ErrorKind::BrokenPipe => Failure::Pipe,
        _ => Failure::failed(format!("cannot write to stdout: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_cannot_control_the_terminal() {
        assert_eq!(
            shown("a is dead: \u{1b}]0;title\u{7}\u{9b}2J\u{202e}"),
            "bellwether: a is dead: \\u{1b}]0;title\\u{7}\\u{9b}2J\\u{202e}"
        );
    }
}
