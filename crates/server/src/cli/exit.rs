//! Failures as an exit code and lines on stderr.

use std::io;
use std::process::ExitCode;

use bellwether::client::{
    ConnectError, Error, GroupError, GroupWaitError, ScheduleError, SetRetentionError, SubmitError, WaitError,
};

use super::logging::LogFormat;

/// The kinds of failure, by priority: the exit code is that of the first kind that occurred.
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
    Told(Vec<(Kind, String)>),
    /// The reader of stdout closed it, as `head` does. This is not a failure.
    Pipe,
}

/// Limit of lines for one failure: of thousands of jobs, the first ones are enough.
const LINES: usize = 10;

impl Failure {
    pub(crate) fn new(kind: Kind, line: impl Into<String>) -> Self {
        Self::Told(vec![(kind, line.into())])
    }

    pub(crate) fn failed(line: impl Into<String>) -> Self {
        Self::new(Kind::Failed, line)
    }

    pub(crate) fn usage(line: impl Into<String>) -> Self {
        Self::new(Kind::Usage, line)
    }

    /// Returns `Ok` if there are no lines.
    pub(crate) fn all(lines: Vec<(Kind, String)>) -> Result<(), Self> {
        if lines.is_empty() { Ok(()) } else { Err(Self::Told(lines)) }
    }
}

/// Prints the failure and returns its exit code.
pub(crate) fn code(result: Result<(), Failure>, format: LogFormat) -> ExitCode {
    let lines = match result {
        Ok(()) | Err(Failure::Pipe) => return ExitCode::SUCCESS,
        Err(Failure::Told(lines)) => lines,
    };
    let say = |line: &str| match format {
        LogFormat::Text => eprintln!("bellwether: {line}"),
        LogFormat::Json => tracing::error!("{line}"),
    };
    lines.iter().take(LINES).for_each(|(_, line)| say(line));
    if let Some(more @ 1..) = lines.len().checked_sub(LINES) {
        say(&format!("and {more} more"));
    }
    ExitCode::from(lines.iter().map(|(kind, _)| *kind).min().map_or(1, Kind::code))
}

/// Formats an error and its sources as one line.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut line = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        line = format!("{line}: {error}");
        source = error.source();
    }
    line
}

/// Errors that map to a kind of failure.
pub(crate) trait Told: std::error::Error + Sized {
    fn kind(&self) -> Kind;

    fn told(&self) -> (Kind, String) {
        (self.kind(), chain(self))
    }
}

impl Told for Error {
    fn kind(&self) -> Kind {
        match self {
            Self::Unavailable(_) => Kind::Unreachable,
            Self::NotFound(_) => Kind::NotFound,
            Self::Invalid { .. } => Kind::Usage,
            Self::Group(error) => error.kind(),
            Self::Refused(_)
            | Self::Unreadable { .. }
            | Self::WorkerUnreadable { .. }
            | Self::Settings { .. }
            | Self::Busy { .. }
            | Self::Contended { .. }
            | Self::PauseContended(_)
            | Self::GroupUnreadable { .. }
            | Self::GroupContended { .. } => Kind::Failed,
        }
    }
}

impl Told for SetRetentionError {
    fn kind(&self) -> Kind {
        match self {
            Self::Invalid(_) => Kind::Usage,
            Self::Client(error) => error.kind(),
        }
    }
}

impl Told for GroupError {
    fn kind(&self) -> Kind {
        match self {
            Self::Absent { .. } => Kind::NotFound,
            Self::Word(_)
            | Self::Name { .. }
            | Self::Total { .. }
            | Self::Number { .. }
            | Self::Kind { .. }
            | Self::OwnId { .. }
            | Self::Again { .. } => Kind::Usage,
            Self::Sealed { .. }
            | Self::Below { .. }
            | Self::Closed { .. }
            | Self::Other { .. }
            | Self::Spawned { .. }
            | Self::AttemptOver { .. }
            | Self::OwnParent { .. }
            | Self::Depth { .. } => Kind::Failed,
        }
    }
}

impl Told for GroupWaitError {
    fn kind(&self) -> Kind {
        match self {
            Self::TimedOut { .. } => Kind::TimedOut,
            Self::Client(error) => error.kind(),
        }
    }
}

impl Told for WaitError {
    fn kind(&self) -> Kind {
        match self {
            Self::TimedOut { .. } => Kind::TimedOut,
            Self::Client(error) => error.kind(),
        }
    }
}

impl Told for SubmitError {
    fn kind(&self) -> Kind {
        match self {
            Self::Invalid(_) => Kind::Usage,
            Self::Group(error) => error.kind(),
            Self::Client(error) => error.kind(),
            Self::NotSent { .. } => Kind::Unreachable,
            Self::Unknown { .. } => Kind::TimedOut,
            Self::Conflict { .. }
            | Self::Overloaded { .. }
            | Self::MinuteFull { .. }
            | Self::TooManyMinutes { .. }
            | Self::Refused { .. }
            | Self::Unreadable { .. } => Kind::Failed,
        }
    }
}

impl Told for ScheduleError {
    fn kind(&self) -> Kind {
        match self {
            Self::Name(_) | Self::Invalid(_) | Self::Job(_) | Self::JobOwns { .. } | Self::Past { .. } => {
                Kind::Usage
            }
            Self::NotFound(_) => Kind::NotFound,
            Self::Unknown { .. } => Kind::TimedOut,
            Self::Conflict { .. }
            | Self::Overloaded { .. }
            | Self::Unreadable { .. }
            | Self::Contended { .. } => Kind::Failed,
            Self::Client(error) => error.kind(),
        }
    }
}

impl Told for ConnectError {
    fn kind(&self) -> Kind {
        match self {
            Self::ConnectString(_) | Self::SessionTimeout(_) => Kind::Usage,
            Self::Unavailable(_) => Kind::Unreachable,
        }
    }
}

impl<E: Told> From<E> for Failure {
    fn from(error: E) -> Self {
        Self::Told(vec![error.told()])
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
