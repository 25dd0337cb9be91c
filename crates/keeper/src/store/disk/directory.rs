//! The data directory: made, recognized, and held by one process.
//!
//! ```text
//!  keeper.lock       held while a process serves; its text is that process's id, for people
//!  keeper.redb       everything
//!  keeper.redb.new   an unfinished start or restore: removed by the next one
//! ```
//!
//! The lock is the kernel's (`flock`), on a file that is never removed: it goes with the process however that ends,
//! and removing it would let two processes lock two files of one name.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};

use crate::store::StoreError;

const FILE: &str = "keeper.redb";
const UNFINISHED: &str = "keeper.redb.new";
const LOCK: &str = "keeper.lock";
/// What a ZooKeeper's own data directory holds.
const ZOOKEEPERS: &str = "version-2";
/// Longer than any process id: what else the lock file may hold is not read.
const MOST_PID_BYTES: u64 = 16;

/// A data directory that no other process has, until this is dropped.
#[derive(Debug)]
pub(super) struct Directory {
    path: PathBuf,
    _lock: File,
}

impl Directory {
    /// Makes the directory if there is none, and locks it.
    pub(super) fn claim(path: &Path) -> Result<Self, StoreError> {
        make(path).map_err(|source| StoreError::io(path, "making the data directory", source))?;
        if path.join(ZOOKEEPERS).exists() {
            let found = format!("it holds {ZOOKEEPERS}, the data of a ZooKeeper, which cannot be taken over");
            return Err(StoreError::Foreign { path: path.to_owned(), found });
        }
        let lock = lock(path)?;
        Ok(Self { path: path.to_owned(), _lock: lock })
    }

    /// The file that holds everything.
    pub(super) fn file(&self) -> PathBuf {
        self.path.join(FILE)
    }

    /// Where a file is written before it is whole; whatever an earlier attempt left there is removed.
    pub(super) fn unfinished(&self) -> Result<PathBuf, StoreError> {
        let path = self.path.join(UNFINISHED);
        match fs::remove_file(&path) {
            Ok(()) => Ok(path),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(path),
            Err(source) => Err(StoreError::io(path, "removing an unfinished file", source)),
        }
    }

    /// Whether nothing but this module's lock is in it.
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

/// Makes `path` for this user alone, and has every directory remember the one that was made in it.
///
/// A directory that is there may be one whose maker lost its power before its parent was synced, so that is done
/// at every start.
fn make(path: &Path) -> io::Result<()> {
    let made = missing(path);
    if made.is_empty() {
        return match sync_parent(&path.canonicalize()?) {
            // One may serve in a directory whose parent one may not read: whoever made it answers for its name.
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

/// The directories that have to be made for `path`, itself first.
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
            // The holder's id is a courtesy: a text that cannot be read leaves it out.
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

/// Gives a whole, synced file its name; the name survives a power loss, too. An existing file is replaced.
pub(super) fn publish(unfinished: &Path, file: &Path) -> Result<(), StoreError> {
    fs::rename(unfinished, file)
        .and_then(|()| sync_parent(file))
        .map_err(|source| StoreError::io(file, "naming the finished file", source))
}

/// As [`publish`], but an existing file stays: a link fails where a rename replaces.
pub(super) fn publish_new(unfinished: &Path, file: &Path) -> Result<(), StoreError> {
    match fs::hard_link(unfinished, file) {
        Ok(()) => fs::remove_file(unfinished)
            .and_then(|()| sync_parent(file))
            .map_err(|source| StoreError::io(file, "naming the finished file", source)),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            Err(StoreError::Exists { path: file.to_owned() })
        }
        // Some file systems have no links; the name was free when the copy began.
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
    fn every_level_that_is_made_is_known_to_the_one_that_syncs_it() {
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
