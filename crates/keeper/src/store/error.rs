//! Errors of a store: the file, the failed step, and the action to take.

use std::io;
use std::path::PathBuf;

use bellwether_remedy::{ErrorClass, impl_remedy};

/// An error of a store.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// Another process uses this directory.
    #[error("the data directory {} is locked by another process{}", dir.display(), holder.map_or_else(String::new, |pid| format!(" (pid {pid})")))]
    Locked {
        /// The directory.
        dir: PathBuf,
        /// The process id from the lock file, if it can be read.
        holder: Option<u32>,
    },
    /// The file or directory was not created by a keeper.
    #[error("{} was not created by a keeper: {found}", path.display())]
    Foreign {
        /// The file or directory.
        path: PathBuf,
        /// What was found instead.
        found: String,
    },
    /// Another version of this program wrote the file.
    #[error("{} has format version {found}; this program reads version {known}", file.display())]
    Format {
        /// The file.
        file: PathBuf,
        /// Its format version.
        found: u32,
        /// The version that this program reads.
        known: u32,
    },
    /// A row or the structure of the file is damaged.
    #[error("{} is corrupt at {row}", file.display())]
    Corrupt {
        /// The file.
        file: PathBuf,
        /// The table and the key.
        row: String,
        /// The cause.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// No space is left.
    #[error("no space left for {} while {doing}", file.display())]
    Full {
        /// The file.
        file: PathBuf,
        /// The step that failed.
        doing: &'static str,
        /// The error of the operating system.
        source: io::Error,
    },
    /// An operation of the operating system failed.
    #[error("{doing} failed for {}", path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// The step that failed.
        doing: &'static str,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The database returned an error.
    #[error("{doing} failed for {}", file.display())]
    Database {
        /// The file.
        file: PathBuf,
        /// The step that failed.
        doing: &'static str,
        /// The error of the database.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The target exists and must not be overwritten.
    #[error("{} exists and is not empty: it is not overwritten", path.display())]
    Exists {
        /// The file or directory.
        path: PathBuf,
    },
    /// An earlier commit failed, so the content of the file is unknown until it is opened again.
    #[error("an earlier commit to {} failed: restart the process to read its content", file.display())]
    Failed {
        /// The file.
        file: PathBuf,
    },
}

impl StoreError {
    /// Returns the class of the error.
    #[must_use]
    pub fn class(&self) -> ErrorClass {
        match self {
            // The previous process may still be stopping.
            Self::Locked { .. } => ErrorClass::Contended,
            Self::Full { .. } | Self::Exists { .. } => ErrorClass::Conflict,
            Self::Foreign { .. } => ErrorClass::Invalid,
            Self::Format { .. } | Self::Corrupt { .. } => ErrorClass::Unreadable,
            Self::Failed { .. } => ErrorClass::Closed,
            Self::Io { .. } | Self::Database { .. } => ErrorClass::Failed,
        }
    }

    /// Converts an I/O error; a full disk has its own variant, because an operator can fix it by freeing space.
    #[cfg(feature = "server")]
    pub(crate) fn io(path: impl Into<PathBuf>, doing: &'static str, source: io::Error) -> Self {
        let path = path.into();
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
                Self::Full { file: path, doing, source }
            }
            // All other kinds are reported with the text of the operating system.
            _ => Self::Io { path, doing, source },
        }
    }
}

impl_remedy!(StoreError);
