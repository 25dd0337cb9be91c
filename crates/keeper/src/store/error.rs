//! Why a store could not do it: which file, while doing what, and what to do about it.

use std::io;
use std::path::PathBuf;

/// What a store's failure was.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// Another process serves this directory.
    #[error("the data directory {} is locked by another process{}", dir.display(), holder.map_or_else(String::new, |pid| format!(" (pid {pid})")))]
    Locked {
        /// The directory.
        dir: PathBuf,
        /// Who, as far as its lock file tells.
        holder: Option<u32>,
    },
    /// The file or directory is somebody else's.
    #[error("{} is not a keeper's: {found}", path.display())]
    Foreign {
        /// The file or directory.
        path: PathBuf,
        /// What it is instead.
        found: String,
    },
    /// The file was written by another version of this program.
    #[error("{} has format version {found}; this program reads version {known}", file.display())]
    Format {
        /// The file.
        file: PathBuf,
        /// Its version.
        found: u32,
        /// The version that this program reads.
        known: u32,
    },
    /// A row, or the file around it, is not what was written.
    #[error("{} is corrupt at {row}", file.display())]
    Corrupt {
        /// The file.
        file: PathBuf,
        /// The table and the key.
        row: String,
        /// What is wrong with it.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// No space is left.
    #[error("no space left for {} while {doing}", file.display())]
    Full {
        /// The file.
        file: PathBuf,
        /// The step that failed.
        doing: &'static str,
        /// The system's words.
        source: io::Error,
    },
    /// The system refused.
    #[error("{doing} failed for {}", path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// The step that failed.
        doing: &'static str,
        /// The system's words.
        source: io::Error,
    },
    /// The database refused.
    #[error("{doing} failed for {}", file.display())]
    Database {
        /// The file.
        file: PathBuf,
        /// The step that failed.
        doing: &'static str,
        /// The database's words.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// It must not be overwritten.
    #[error("{} exists and is not empty: it is not overwritten", path.display())]
    Exists {
        /// The file or directory.
        path: PathBuf,
    },
    /// An earlier commit failed, so nobody knows what the file holds until it is opened again.
    #[error("an earlier commit to {} failed: restart to read what it holds", file.display())]
    Failed {
        /// The file.
        file: PathBuf,
    },
}

impl StoreError {
    /// Sorts out the failure that an operator can mend by deleting files.
    #[cfg(feature = "server")]
    pub(crate) fn io(path: impl Into<PathBuf>, doing: &'static str, source: io::Error) -> Self {
        let path = path.into();
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
                Self::Full { file: path, doing, source }
            }
            // Kinds are many and grow; every other one is told as the system words it.
            _ => Self::Io { path, doing, source },
        }
    }
}
