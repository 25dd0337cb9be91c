//! A copy of one commit, and back.
//!
//! A backup is a keeper's file of its own: rows are read from a view and written anew, so it is compact and checked
//! row by row. Backup and restore both write under another name, sync, rename, and sync the directory: whenever the
//! power goes, there is a whole file of that name or none.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use redb::{Builder, ReadTransaction};

use super::directory::{self, Directory};
use super::{CACHE_BYTES, Disk, commit, fault_told, open_checked, tables, told};
use crate::store::{Backup, Change, Changes, Reader, Snapshot, Store as _, StoreError};

/// A commit that stays readable.
pub(super) struct View {
    file: PathBuf,
    transaction: ReadTransaction,
}

impl View {
    pub(super) fn new(file: PathBuf, transaction: ReadTransaction) -> Self {
        Self { file, transaction }
    }
}

impl Reader for View {
    fn backup(self: Box<Self>, to: &Path) -> Result<Backup, StoreError> {
        let snapshot = tables::read(&self.transaction)
            .map_err(|fault| fault_told(&self.file, "reading the rows", fault))?;
        // Pages that only this view needs can be used again while the copy is written.
        drop(self.transaction);
        backup_snapshot(&snapshot, to)
    }
}

/// Writes `snapshot` to the new file `to`.
pub(in crate::store) fn backup_snapshot(snapshot: &Snapshot, to: &Path) -> Result<Backup, StoreError> {
    if to.try_exists().map_err(|source| StoreError::io(to, "looking for the backup", source))? {
        return Err(StoreError::Exists { path: to.to_owned() });
    }
    let mut name = to.file_name().map_or_else(OsString::new, ToOwned::to_owned);
    name.push(format!(".{}.unfinished", std::process::id()));
    let unfinished = to.with_file_name(name);
    let written = write_new(&unfinished, snapshot).and_then(|bytes| {
        directory::publish_new(&unfinished, to)?;
        Ok(Backup { zxid: snapshot.zxid, nodes: snapshot.nodes.len() as u64, bytes })
    });
    if written.is_err()
        && let Err(error) = fs::remove_file(&unfinished)
    {
        tracing::debug!(file = %unfinished.display(), %error, "an unfinished backup stays behind");
    }
    written
}

/// Writes a whole, closed, synced file of `snapshot` and answers its length.
pub(super) fn write_new(file: &Path, snapshot: &Snapshot) -> Result<u64, StoreError> {
    let opened = new_file(file).map_err(|source| StoreError::io(file, "making the file", source))?;
    let write = || -> Result<(), redb::Error> {
        let mut database = Builder::new().set_cache_size(CACHE_BYTES).create_file(opened)?;
        let transaction = database.begin_write()?;
        tables::create(&transaction)?;
        transaction.commit()?;
        for changes in chunks(snapshot) {
            commit(&database, &changes)?;
        }
        database.compact()?;
        Ok(())
    };
    write().map_err(|error| told(file, "writing the rows", error))?;
    let sync = || -> io::Result<u64> {
        let file = File::open(file)?;
        file.sync_all()?;
        Ok(file.metadata()?.len())
    };
    sync().map_err(|source| StoreError::io(file, "syncing the file", source))
}

/// Rows per transaction: bounds the memory of a copy.
const CHUNK: usize = 10_000;

/// A snapshot as batches; together they are the snapshot, and nobody sees the file before the last.
fn chunks(snapshot: &Snapshot) -> impl Iterator<Item = Changes> {
    let nodes = snapshot.nodes.chunks(CHUNK).map(|chunk| {
        chunk
            .iter()
            .flat_map(|(path, row, data)| {
                let data = data.as_ref().map(|data| Change::PutData(path.clone(), Some(data.clone())));
                std::iter::once(Change::PutNode(path.clone(), row.clone())).chain(data)
            })
            .collect()
    });
    let sessions = snapshot
        .sessions
        .chunks(CHUNK)
        .map(|chunk| chunk.iter().map(|(id, row)| Change::PutSession(*id, row.clone())).collect());
    // The number alone, for a snapshot without rows.
    let number = std::iter::once(Vec::new());
    nodes.chain(sessions).chain(number).map(|rows| Changes { zxid: snapshot.zxid, rows })
}

fn new_file(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true);
    // Session passwords are in it.
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// Makes `dir` hold what the backup `from` holds, after reading all of it.
///
/// # Errors
/// When `dir` is not empty or in use, or when the backup fails its checks; `dir` is still empty then.
pub fn restore(from: &Path, dir: &Path) -> Result<Backup, StoreError> {
    let mut source = File::open(from).map_err(|source| StoreError::io(from, "opening the backup", source))?;
    let directory = Directory::claim(dir)?;
    if !directory.is_empty()? {
        return Err(StoreError::Exists { path: dir.to_owned() });
    }
    let unfinished = directory.unfinished()?;
    let copied = new_file(&unfinished).and_then(|mut copy| {
        let bytes = io::copy(&mut source, &mut copy)?;
        copy.sync_all()?;
        Ok(bytes)
    });
    let bytes = copied.map_err(|source| StoreError::io(&unfinished, "copying the backup", source))?;
    // The copy is what will be served, so the copy is what is checked. Errors name the file that the operator gave.
    let database = open_checked(from, |builder| builder.open(&unfinished))?;
    let snapshot = Disk::of(database, from).load()?;
    File::open(&unfinished)
        .and_then(|file| file.sync_all())
        .map_err(|source| StoreError::io(&unfinished, "syncing the file", source))?;
    directory::publish(&unfinished, &directory.file())?;
    Ok(Backup { zxid: snapshot.zxid, nodes: snapshot.nodes.len() as u64, bytes })
}
