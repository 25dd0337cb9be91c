//! Backup of one commit, and restore.
//!
//! A backup is a valid keeper file: rows are read from a snapshot and written to a new file, so it is compact and every
//! row is verified. Backup and restore write to a temporary name, sync, rename, and sync the directory. After a power
//! loss the target is complete or absent.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use redb::{Builder, ReadTransaction, ReadableDatabase as _};

use super::directory::{self, Directory};
use super::tables::{Fault, Visitor, Writer};
use super::waiting::Sizes;
use super::{CACHE_BYTES, fault_told, open_checked, open_file, tables, told, waiting};
use crate::store::{Backup, NodeRow, Reader, SessionRow, Snapshot, StoreError};

/// A snapshot of a commit.
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
        write_backup(to, |copy| {
            tables::walk(&self.transaction, copy)
                .map_err(|fault| fault_told(&self.file, "copying the rows", fault))
        })
    }
}

/// Writes `snapshot` to the new file `to`.
pub(in crate::store) fn backup_snapshot(snapshot: &Snapshot, to: &Path) -> Result<Backup, StoreError> {
    write_backup(to, |copy| {
        let mut fill = || -> Result<(), Fault> {
            for (path, row, data) in &snapshot.nodes {
                copy.node(path, row.clone(), data.as_deref())?;
            }
            snapshot.sessions.iter().try_for_each(|(id, row)| copy.session(*id, row.clone()))
        };
        fill().map_err(|fault| fault_told(to, "copying the rows", fault))?;
        Ok(snapshot.zxid)
    })
}

fn write_backup(
    to: &Path,
    fill: impl FnOnce(&mut Copy<'_>) -> Result<i64, StoreError>,
) -> Result<Backup, StoreError> {
    if to.try_exists().map_err(|source| StoreError::io(to, "looking for the backup", source))? {
        return Err(StoreError::Exists { path: to.to_owned() });
    }
    let mut name = to.file_name().map_or_else(OsString::new, ToOwned::to_owned);
    name.push(format!(".{}.unfinished", std::process::id()));
    let unfinished = to.with_file_name(name);
    let written = write_new(&unfinished, fill).and_then(|backup| {
        directory::publish_new(&unfinished, to)?;
        Ok(backup)
    });
    if written.is_err() {
        discard(&unfinished);
    }
    written
}

fn discard(unfinished: &Path) {
    if let Err(error) = fs::remove_file(unfinished) {
        tracing::debug!(file = %unfinished.display(), %error, "the keeper could not remove an unfinished backup");
    }
}

/// Writes rows to a new file.
pub(super) struct Copy<'t> {
    writer: Writer<'t>,
    nodes: u64,
}

impl Visitor for Copy<'_> {
    fn node(&mut self, path: &str, row: NodeRow, data: Option<&[u8]>) -> Result<(), Fault> {
        self.nodes += 1;
        Ok(self.writer.node(path, &row, data)?)
    }

    fn session(&mut self, id: i64, row: SessionRow) -> Result<(), Fault> {
        Ok(self.writer.session(id, &row)?)
    }
}

/// Writes, syncs and closes a new file with the rows from `fill`, which returns the newest transaction.
pub(super) fn write_new(
    file: &Path,
    fill: impl FnOnce(&mut Copy<'_>) -> Result<i64, StoreError>,
) -> Result<Backup, StoreError> {
    let opened = new_file(file).map_err(|source| StoreError::io(file, "creating the file", source))?;
    let failed = |error: redb::Error| told(file, "writing the rows", error);
    let mut database = Builder::new()
        .set_cache_size(CACHE_BYTES)
        .create_file(opened)
        .map_err(|error| failed(error.into()))?;
    let transaction = database.begin_write().map_err(|error| failed(error.into()))?;
    // One transaction: pages beyond the cache are written early, so the size of the file costs no memory.
    let mut copy = Copy { writer: Writer::open(&transaction).map_err(failed)?, nodes: 0 };
    let zxid = fill(&mut copy)?;
    let nodes = copy.nodes;
    copy.writer.format().and_then(|()| copy.writer.zxid(zxid)).map_err(failed)?;
    drop(copy);
    transaction.commit().map_err(|error| failed(error.into()))?;
    database.compact().map_err(|error| failed(error.into()))?;
    drop(database);
    let bytes = synced(file).map_err(|source| StoreError::io(file, "syncing the file", source))?;
    Ok(Backup { zxid, nodes, bytes })
}

fn synced(file: &Path) -> io::Result<u64> {
    let file = File::open(file)?;
    file.sync_all()?;
    Ok(file.metadata()?.len())
}

fn new_file(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true);
    // The file contains session passwords.
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// Restores the backup `from` into `dir`, after verifying every row.
///
/// # Errors
/// If `dir` is not empty or in use, or if the backup is damaged; `dir` is still empty in that case.
pub fn restore(from: &Path, dir: &Path) -> Result<Backup, StoreError> {
    let mut source = File::open(from).map_err(|source| StoreError::io(from, "opening the backup", source))?;
    let directory = Directory::claim(dir)?;
    if !directory.is_empty()? {
        return Err(StoreError::Exists { path: dir.to_owned() });
    }
    let unfinished = directory.unfinished()?;
    let copied = copy_checked(&mut source, from, &unfinished);
    if copied.is_err() {
        discard(&unfinished);
    }
    let backup = copied?;
    directory::publish(&unfinished, &directory.file())?;
    Ok(backup)
}

/// Copies a backup and verifies the copy, because the copy is what the server will use. Errors name the file given by
/// the operator.
fn copy_checked(source: &mut File, from: &Path, unfinished: &Path) -> Result<Backup, StoreError> {
    let mut copy = || io::copy(source, &mut new_file(unfinished)?);
    copy().map_err(|source| StoreError::io(unfinished, "copying the backup", source))?;
    let database = open_checked(from, || open_file(unfinished))?;
    // The source may be the file of a keeper that was killed.
    waiting::fold(&database, Sizes::USUAL)
        .map_err(|fault| fault_told(from, "folding the waiting batches", fault))?;
    let mut rows = Count(0);
    let mut read = || -> Result<i64, Fault> { tables::walk(&database.begin_read()?, &mut rows) };
    let zxid = read().map_err(|fault| fault_told(from, "reading the rows", fault))?;
    drop(database);
    let bytes =
        synced(unfinished).map_err(|source| StoreError::io(unfinished, "syncing the file", source))?;
    Ok(Backup { zxid, nodes: rows.0, bytes })
}

/// Counts znodes while the rows are verified.
struct Count(u64);

impl Visitor for Count {
    fn node(&mut self, _path: &str, _row: NodeRow, _data: Option<&[u8]>) -> Result<(), Fault> {
        self.0 += 1;
        Ok(())
    }

    fn session(&mut self, _id: i64, _row: SessionRow) -> Result<(), Fault> {
        Ok(())
    }
}
