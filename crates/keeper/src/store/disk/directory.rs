//! The data directory: created, verified, and locked by one process.
//!
//! ```text
//!  keeper.lock       locked while a process uses the directory; contains its process id, for operators
//!  keeper.redb       all data
//!  keeper.redb.new   an unfinished start or restore; removed by the next one
//! ```
//!
//! The lock is a kernel lock (`flock`) on a file that is never removed. The kernel releases it when the process ends
//! for any reason. If the file were removed, two processes could lock two files of the same name.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};

use crate::store::StoreError;

const FILE: &str = "keeper.redb";
const UNFINISHED: &str = "keeper.redb.new";
const LOCK: &str = "keeper.lock";
/// A directory that exists in the data directory of ZooKeeper.
const ZOOKEEPERS: &str = "version-2";
/// Longer than any process id; the rest of the lock file is not read.
const MOST_PID_BYTES: u64 = 16;

/// A data directory locked by this process until the value is dropped.
#[derive(Debug)]
pub(super) struct Directory {
    path: PathBuf,
    _lock: File,
}

impl Directory {
    /// Creates the directory if it does not exist, and locks it.
    pub(super) fn claim(path: &Path) -> Result<Self, StoreError> {
        make(path).map_err(|source| StoreError::io(path, "creating the data directory", source))?;
        if path.join(ZOOKEEPERS).exists() {
            let found =
                format!("it contains {ZOOKEEPERS}, the data of a ZooKeeper, which cannot be imported");
            return Err(StoreError::Foreign { path: path.to_owned(), found });
        }
        let lock = lock(path)?;
        Ok(Self { path: path.to_owned(), _lock: lock })
    }

    /// Returns the path of the data file.
    pub(super) fn file(&self) -> PathBuf {
        self.path.join(FILE)
    }

    /// Returns the path for an unfinished file; removes the file of an earlier attempt.
    pub(super) fn unfinished(&self) -> Result<PathBuf, StoreError> {
        let path = self.path.join(UNFINISHED);
        match fs::remove_file(&path) {
            Ok(()) => Ok(path),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(path),
            Err(source) => Err(StoreError::io(path, "removing an unfinished file", source)),
        }
    }

    /// Returns whether the directory contains no files except those of this module.
    pub(super) fn is_empty(&self) -> Result<bool, StoreError> {
        let list = || -> io::Result<bool> {
            for entry in fs::read_dir(&self.path)? {
                let name = entry?.file_name();
                if name != LOCK && name != UNFINISHED {
                    return Ok(false);
                }
            }
            Ok(true)
        };
        list().map_err(|source| StoreError::io(&self.path, "listing the data directory", source))
    }
}

/// Creates `path` with permissions for this user only, and syncs the parent of each created directory.
///
/// An existing directory may have been created before a power loss and before its parent was synced, so the parent is
/// synced at every start.
fn make(path: &Path) -> io::Result<()> {
    let made = missing(path);
    if made.is_empty() {
        return match sync_parent(&path.canonicalize()?) {
            // This user may not be allowed to read the parent. Then the creator of the directory must have synced it.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(()),
            synced => synced,
        };
    }
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)?;
    made.into_iter().try_for_each(sync_parent)
}

/// Returns the directories that must be created for `path`, starting with itself.
fn missing(path: &Path) -> Vec<&Path> {
    path.ancestors().take_while(|level| !level.as_os_str().is_empty() && !level.is_dir()).collect()
}

fn lock(dir: &Path) -> Result<File, StoreError> {
    let path = dir.join(LOCK);
    let mut file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(&path)
        .map_err(|source| StoreError::io(&path, "opening the lock", source))?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let mut text = String::new();
            // The holder's id is optional information: it is omitted if the text cannot be read.
            let holder = match file.take(MOST_PID_BYTES).read_to_string(&mut text) {
                Ok(_) => text.trim().parse().ok(),
                Err(_) => None,
            };
            return Err(StoreError::Locked { dir: dir.to_owned(), holder });
        }
        Err(TryLockError::Error(source)) => {
            return Err(StoreError::io(path, "locking the data directory", source));
        }
    }
    let sign = |file: &mut File| -> io::Result<()> {
        file.set_len(0)?;
        file.rewind()?;
        writeln!(file, "{}", std::process::id())
    };
    match sign(&mut file) {
        Ok(()) => Ok(file),
        Err(source) => Err(StoreError::io(path, "signing the lock", source)),
    }
}

/// Renames a complete, synced file; the name survives a power loss. An existing file is replaced.
pub(super) fn publish(unfinished: &Path, file: &Path) -> Result<(), StoreError> {
    fs::rename(unfinished, file)
        .and_then(|()| sync_parent(file))
        .map_err(|source| StoreError::io(file, "naming the finished file", source))
}

/// As [`publish`], but an existing file is kept: a hard link fails where a rename replaces.
pub(super) fn publish_new(unfinished: &Path, file: &Path) -> Result<(), StoreError> {
    match fs::hard_link(unfinished, file) {
        Ok(()) => fs::remove_file(unfinished)
            .and_then(|()| sync_parent(file))
            .map_err(|source| StoreError::io(file, "naming the finished file", source)),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            Err(StoreError::Exists { path: file.to_owned() })
        }
        // Some file systems do not support links; the name was free when the copy started.
        Err(_) => publish(unfinished, file),
    }
}

fn sync_parent(path: &Path) -> io::Result<()> {
    let parent = match path.parent() {
        Some(parent) if parent.as_os_str().is_empty() => Path::new("."),
        Some(parent) => parent,
        None => return Ok(()),
    };
    File::open(parent)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_created_directory_is_listed_for_its_sync() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a/b/c");
        let levels = ["a/b/c", "a/b", "a"].map(|level| dir.path().join(level));
        assert_eq!(missing(&path), levels);
        make(&path).unwrap();
        assert_eq!(missing(&path), [] as [&Path; 0]);
        make(&path).unwrap();
        assert_eq!(missing(Path::new("not-there/at-all")), ["not-there/at-all", "not-there"].map(Path::new));
    }
}
