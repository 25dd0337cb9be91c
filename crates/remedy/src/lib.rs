//! The classes of errors, and what the caller of a failed call can do.
//!
//! The classes are defined in one place, so that a library call, the exit code of a command and the status of an HTTP
//! answer agree. The crate has no dependencies, so that the keeper, which knows nothing of jobs, has the same classes.
#![forbid(unsafe_code)]

use std::io;

/// What the caller of a failed call can do.
///
/// Callers match on it, and every error has one of these answers: so it stays exhaustive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Remedy {
    /// Make the same call again later. Nothing has to be changed, and repeating the call is safe even if its first
    /// copy was or will be applied.
    Retry,
    /// Read the state, and then decide: the outcome is unknown, and repeating the call may do the same thing twice.
    ReadBack,
    /// Change the arguments, or the state that they conflict with. The same call fails again until then.
    FixInput,
    /// Stop: the caller can do nothing that makes the call succeed. A human may have to act.
    GiveUp,
}

impl Remedy {
    /// Returns its name: `retry`, `read_back`, `fix_input` or `give_up`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Retry => "retry",
            Self::ReadBack => "read_back",
            Self::FixInput => "fix_input",
            Self::GiveUp => "give_up",
        }
    }
}

/// The class of an error: what went wrong, without the details.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorClass {
    /// An argument is malformed or out of bounds. Nothing was sent.
    Invalid,
    /// The job, group or schedule does not exist.
    NotFound,
    /// The stored state does not allow the call, e.g. a job with this id is another job, a leader's term has ended, or a job has no
    /// sub-jobs. Nothing was changed. For a server: its disk is full, the target of a backup or of a restore exists, or the process has
    /// another recorder of metrics.
    Conflict,
    /// Other clients changed the same record repeatedly during the call. For a server: another process, for example the previous one,
    /// which is still stopping, holds its address or its data directory.
    Contended,
    /// The namespace has no room for the job at the moment: the end of jobs or the retention frees some. Nothing was changed.
    Overloaded,
    /// ZooKeeper, or the store of a payload codec, did not serve the request in time or not at the moment.
    Unavailable,
    /// The client was closed, the server has stopped, or the namespace cannot be used: another client, server or namespace is needed.
    Closed,
    /// ZooKeeper refused the request.
    Refused,
    /// A stored record cannot be read: it is corrupt, or another build wrote it; or a payload codec cannot decode its bytes.
    Unreadable,
    /// A change was sent and no reply came in time: it may or may not have been applied.
    Unknown,
    /// The state that the caller waited for was not reached in time.
    TimedOut,
    /// The job, the attempt, the node or the server has ended without success, or a call of the operating system failed.
    Failed,
}

impl ErrorClass {
    /// Returns what the caller of such a call can usually do. An error may know better: ask the error.
    #[must_use]
    pub const fn remedy(self) -> Remedy {
        match self {
            Self::Contended | Self::Overloaded | Self::Unavailable | Self::Unknown | Self::TimedOut => {
                Remedy::Retry
            }
            Self::Invalid | Self::NotFound | Self::Conflict => Remedy::FixInput,
            Self::Closed | Self::Refused | Self::Unreadable | Self::Failed => Remedy::GiveUp,
        }
    }
}

/// Returns the class of an error of a server that cannot listen on its address.
#[must_use]
pub fn class_of_listen(error: &io::Error) -> ErrorClass {
    match error.kind() {
        // The previous process may still be stopping.
        io::ErrorKind::AddrInUse => ErrorClass::Contended,
        io::ErrorKind::AddrNotAvailable | io::ErrorKind::PermissionDenied => ErrorClass::Invalid,
        // For example too many open files.
        _ => ErrorClass::Failed,
    }
}

/// Defines `remedy` and `is_retryable` of error types that have a method `class`.
///
/// With `@retryable` it defines only `is_retryable`, for a type with its own `remedy`; with `@invalid` it defines all
/// three for errors of arguments.
#[doc(hidden)]
#[macro_export]
macro_rules! impl_remedy {
    (@retryable $($error:ty),+ $(,)?) => {$(
        impl $error {
            /// Whether the same call may succeed later, and repeating it is safe. Nothing has to be changed.
            #[must_use]
            pub fn is_retryable(&self) -> bool {
                self.remedy() == $crate::Remedy::Retry
            }
        }
    )+};
    (@invalid $($error:ty),+ $(,)?) => {
        $(
            impl $error {
                /// Returns the class of all errors of arguments: `Invalid`.
                #[must_use]
                pub fn class(&self) -> $crate::ErrorClass {
                    $crate::ErrorClass::Invalid
                }
            }
        )+
        $crate::impl_remedy!($($error),+);
    };
    ($($error:ty),+ $(,)?) => {
        $(
            impl $error {
                /// Returns what the caller can do.
                #[must_use]
                pub fn remedy(&self) -> $crate::Remedy {
                    self.class().remedy()
                }
            }
        )+
        $crate::impl_remedy!(@retryable $($error),+);
    };
}
