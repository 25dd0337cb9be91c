//! Rows in one file that survives kills and power losses.
//!
//! ```text
//!  commit ──► one redb transaction: the batch in a row of `waiting` ──► fdatasync ──► Ok
//!                │                                                    └── any failure ──► Failed, for good
//!                └── when many wait: some of their last entries for rows, into the rows' own tables
//!  tidy ────► more of these, when nobody waits for a commit
//! ```
//!
//! * **Recovery:** redb is copy-on-write. A commit writes new pages and a checksummed root beside the old one, and
//!   syncs once. After a crash, a root whose pages do not all carry their checksums is one whose sync had not
//!   returned, and the root before it counts. So nothing is half there. What waited is folded before it is read.
//! * **Start:** a file that was closed in order is checked against its checksums; one that was not is repaired, which
//!   checks them too. Then every row is decoded and matched.
//! * **Limits:** the file does not shrink below what it needed at its largest. A restart reads all of it.
//!
//! docs/adr/0011-keeper-store.md says why the log is a table of this file.

mod backup;
mod checkpoint;
mod directory;
mod entries;
mod length;
mod row;
mod tables;
#[cfg(test)]
mod tests;
mod waiting;

use std::cell::Cell;
use std::fs::OpenOptions;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use redb::backends::FileBackend;
use redb::{Builder, Database, ReadableDatabase as _, StorageBackend};

use self::directory::Directory;
use self::length::SyncedGrowth;
use self::tables::Fault;
use self::waiting::{Sizes, UnfoldedBatches};
use super::{Changes, Reader, Snapshot, Status, Store, StoreError};

pub(super) use self::backup::backup_snapshot;
pub use self::backup::restore;
pub use self::row::RowError;

/// The model has the tree in memory and the kernel has the file's pages: this holds the inner pages of the trees and
/// the pages that a checkpoint is at.
const CACHE_BYTES: usize = 32 << 20;

/// A store in a data directory, which it holds alone.
#[derive(Debug)]
pub struct Disk {
    file: PathBuf,
    state: State,
    commits: u64,
    waiting: UnfoldedBatches,
    // Behind the state: the file is closed before another process may have the directory.
    _directory: Option<Directory>,
}

#[derive(Debug)]
enum State {
    Open(Database),
    /// A commit failed: what the file holds is known when it is opened again.
    Failed,
}

impl Disk {
    /// Opens the store in `dir`; makes both if they are not there.
    ///
    /// # Errors
    /// When another process has the directory, when it or the file is not a keeper's, when another version wrote it,
    /// or when it fails its checks.
    pub fn open(dir: &Path) -> Result<Self, StoreError> {
        let directory = Directory::claim(dir)?;
        let file = directory.file();
        let unfinished = directory.unfinished()?;
        if !file.try_exists().map_err(|source| StoreError::io(&file, "looking for the file", source))? {
            backup::write_new(&unfinished, |_| Ok(0))?;
            directory::publish(&unfinished, &file)?;
        }
        let database = open_checked(&file, || open_file(&file))?;
        Self::of(file, database, Sizes::USUAL, Some(directory))
    }

    /// A store on a disk that a test made.
    #[cfg(test)]
    fn on(backend: impl StorageBackend + Clone, sizes: Sizes) -> Result<Self, StoreError> {
        let file = PathBuf::from("simulated");
        let fresh =
            backend.len().map_err(|source| StoreError::io(&file, "asking for the length", source))? == 0;
        if fresh {
            let database = Builder::new().create_with_backend(backend.clone());
            tables::create(&database.expect("no test disturbs the first start"))
                .expect("no test disturbs the first start");
        }
        let database = open_checked(&file, || Ok(backend))?;
        Self::of(file, database, sizes, None)
    }

    /// Folds what waits, so that the rows' tables are all there is to read.
    fn of(
        file: PathBuf,
        database: Database,
        sizes: Sizes,
        directory: Option<Directory>,
    ) -> Result<Self, StoreError> {
        waiting::fold(&database, sizes)
            .map_err(|fault| fault_told(&file, "folding the waiting batches", fault))?;
        let waiting = UnfoldedBatches::none(sizes);
        Ok(Self { file, state: State::Open(database), commits: 0, waiting, _directory: directory })
    }

    /// Runs a write transaction. Whatever fails in it, the store has failed.
    fn write(
        &mut self,
        doing: &'static str,
        write: impl FnOnce(&Database, &mut UnfoldedBatches) -> Result<(), Fault>,
    ) -> Result<(), StoreError> {
        let State::Open(database) = &self.state else {
            return Err(StoreError::Failed { file: self.file.clone() });
        };
        write(database, &mut self.waiting).map_err(|fault| {
            self.state = State::Failed;
            fault_told(&self.file, doing, fault)
        })
    }

    fn fold(&mut self) -> Result<(), StoreError> {
        self.write("folding the waiting batches", |database, waiting| waiting.fold(database))
    }

    fn database(&self) -> Result<&Database, StoreError> {
        match &self.state {
            State::Open(database) => Ok(database),
            State::Failed => Err(StoreError::Failed { file: self.file.clone() }),
        }
    }
}

impl Store for Disk {
    fn load(&mut self) -> Result<Snapshot, StoreError> {
        self.fold()?;
        let database = self.database()?;
        let read = || -> Result<Snapshot, Fault> {
            let mut snapshot = Snapshot::default();
            snapshot.zxid = tables::walk(&database.begin_read()?, &mut snapshot)?;
            Ok(snapshot)
        };
        read().map_err(|fault| fault_told(&self.file, "reading the rows", fault))
    }

    fn commit(&mut self, changes: &Changes) -> Result<(), StoreError> {
        self.write("committing a batch", |database, waiting| waiting.commit(database, changes))?;
        self.commits += 1;
        Ok(())
    }

    fn tidy(&mut self) -> Result<bool, StoreError> {
        let mut more = false;
        self.write("folding waiting batches", |database, waiting| {
            more = waiting.tidy(database)?;
            Ok(())
        })?;
        Ok(more)
    }

    fn reader(&mut self) -> Result<Box<dyn Reader>, StoreError> {
        self.fold()?;
        let transaction = self.database()?.begin_read();
        let transaction = transaction.map_err(|error| told(&self.file, "opening a view", error.into()))?;
        Ok(Box::new(backup::View::new(self.file.clone(), transaction)))
    }

    fn status(&self) -> Status {
        // A length that the system does not tell is shown as none: the next commit will say why.
        let bytes = std::fs::metadata(&self.file).map_or(0, |metadata| metadata.len());
        Status { file: Some(self.file.clone()), bytes, commits: self.commits }
    }
}

fn open_file(file: &Path) -> Result<FileBackend, redb::DatabaseError> {
    let opened = OpenOptions::new().read(true).write(true).open(file)?;
    if opened.metadata()?.len() == 0 {
        // redb would take it for a new one.
        return Err(io::Error::from(io::ErrorKind::InvalidData).into());
    }
    FileBackend::new(opened)
}

/// Opens a file and verifies the checksums of all its pages, once.
///
/// redb follows some pages before it has checked them, so a damaged one may end it in a panic: that is an answer, too,
/// and must not take down a server that could tell which file it was.
fn open_checked<B: StorageBackend>(
    file: &Path,
    open: impl FnOnce() -> Result<B, redb::DatabaseError>,
) -> Result<Database, StoreError> {
    let backend = open().map_err(|error| told(file, "opening the file", error.into()))?;
    // Nothing of a failed attempt is used again, so nothing of it can be seen half done.
    match catch_unwind(AssertUnwindSafe(|| open_trusting(file, SyncedGrowth(backend)))) {
        Ok(opened) => opened,
        Err(_) => Err(corrupt(file, "a page of the database", "the database stopped over it".into())),
    }
}

fn open_trusting(file: &Path, backend: impl StorageBackend) -> Result<Database, StoreError> {
    let repaired = Rc::new(Cell::new(false));
    let mut builder = Builder::new();
    builder.set_cache_size(CACHE_BYTES);
    builder.set_repair_callback({
        let repaired = Rc::clone(&repaired);
        move |_| repaired.set(true)
    });
    let opened = builder.create_with_backend(backend);
    let mut database = opened.map_err(|error| told(file, "opening the file", error.into()))?;
    if !repaired.get() {
        // A page without its checksum is an error, for an orderly close synced everything. What it answers is whether
        // the free pages had to be counted anew, which is no loss.
        if let Err(error) = database.check_integrity() {
            // Closing a file that failed its check panics in redb. The process is about to end anyway.
            std::mem::forget(database);
            return Err(told(file, "checking the file", error.into()));
        }
    }
    let format = || tables::check_format(&database.begin_read()?);
    format().map_err(|fault| fault_told(file, "reading the format", fault))?;
    Ok(database)
}

fn fault_told(file: &Path, doing: &'static str, fault: Fault) -> StoreError {
    match fault {
        Fault::Foreign => StoreError::Foreign {
            path: file.to_owned(),
            found: "a redb file without a keeper's tables".to_owned(),
        },
        Fault::Format(found) => StoreError::Format { file: file.to_owned(), found, known: tables::FORMAT },
        Fault::Row(row, error) => corrupt(file, &row, error.into()),
        Fault::Database(error) => told(file, doing, error),
    }
}

fn corrupt(file: &Path, row: &str, source: Box<dyn std::error::Error + Send + Sync>) -> StoreError {
    StoreError::Corrupt { file: file.to_owned(), row: row.to_owned(), source }
}

/// Sorts the database's failures into ours.
fn told(file: &Path, doing: &'static str, error: redb::Error) -> StoreError {
    match error {
        // redb's word for a file that does not begin as its own do.
        redb::Error::Io(source) if source.kind() == io::ErrorKind::InvalidData => {
            StoreError::Foreign { path: file.to_owned(), found: "not a redb file".to_owned() }
        }
        redb::Error::Io(source) if source.kind() == io::ErrorKind::UnexpectedEof => {
            corrupt(file, "a page of the database", "it is said to be behind the end of the file".into())
        }
        redb::Error::Io(source) => StoreError::io(file, doing, source),
        redb::Error::Corrupted(why) => corrupt(file, "a page of the database", why.into()),
        redb::Error::UpgradeRequired(version) => StoreError::Foreign {
            path: file.to_owned(),
            found: format!("a redb file of the old format {version}"),
        },
        redb::Error::DatabaseAlreadyOpen => {
            let dir = file.parent().unwrap_or(file).to_owned();
            StoreError::Locked { dir, holder: None }
        }
        // Its other failures are misuse of its interface, told as it words them; more may be added.
        other => StoreError::Database { file: file.to_owned(), doing, source: other.to_string().into() },
    }
}
