//! Storage in one file that survives process kills and power losses.
//!
//! ```text
//!  commit ──► one redb transaction: the batch in a row of `waiting` ──► fdatasync ──► Ok
//!                │                                                    └── any failure ──► Failed, permanently
//!                └── above a limit of unfolded bytes: part of a checkpoint, into the tables of the rows
//!  tidy ────► further parts of a checkpoint, when no commit is waiting
//! ```
//!
//! * **Recovery:** redb is copy-on-write. A commit writes new pages and a checksummed root next to the old one, and
//!   syncs once. After a crash, a root with a page that does not match its checksum belongs to a commit whose sync had
//!   not returned; then the previous root is used. So no commit is visible in part. Unfolded batches are folded before
//!   the tables are read.
//! * **Start:** after an orderly close, the checksums of the file are verified; otherwise the file is repaired, which
//!   verifies them too. Then every row is decoded and cross-checked.
//! * **Limits:** the file never shrinks below its largest size. A restart reads the whole file.
//!
//! docs/adr/0011-keeper-store.md gives the reason why the log is a table of this file.

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

/// The model has the tree in memory and the kernel caches the pages of the file. This cache holds the inner pages of
/// the tables and the pages that a checkpoint is writing.
const CACHE_BYTES: usize = 32 << 20;

/// A store in a data directory, to which it has exclusive access.
#[derive(Debug)]
pub struct Disk {
    file: PathBuf,
    state: State,
    commits: u64,
    waiting: UnfoldedBatches,
    // Dropped after `state`: the file is closed before the directory is unlocked.
    _directory: Option<Directory>,
}

#[derive(Debug)]
enum State {
    Open(Database),
    /// A commit failed: the content of the file is unknown until it is opened again.
    Failed,
}

impl Disk {
    /// Opens the store in `dir`; creates the directory and the file if they do not exist.
    ///
    /// # Errors
    /// If another process uses the directory, if the directory or the file was not created by a keeper, if another
    /// version wrote the file, or if the file is damaged.
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

    /// Opens a store on a simulated disk.
    #[cfg(test)]
    fn on(backend: impl StorageBackend + Clone, sizes: Sizes) -> Result<Self, StoreError> {
        let file = PathBuf::from("simulated");
        let fresh =
            backend.len().map_err(|source| StoreError::io(&file, "asking for the length", source))? == 0;
        if fresh {
            let database = Builder::new().create_with_backend(backend.clone());
            tables::create(&database.expect("the first start has no faults"))
                .expect("the first start has no faults");
        }
        let database = open_checked(&file, || Ok(backend))?;
        Self::of(file, database, sizes, None)
    }

    /// Folds the waiting batches, so that the tables of the rows are complete.
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

    /// Runs a write transaction. Any error makes the store fail permanently.
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
        // If the length cannot be read, 0 is reported; the next commit returns the error.
        let bytes = std::fs::metadata(&self.file).map_or(0, |metadata| metadata.len());
        Status { file: Some(self.file.clone()), bytes, commits: self.commits }
    }
}

fn open_file(file: &Path) -> Result<FileBackend, redb::DatabaseError> {
    let opened = OpenOptions::new().read(true).write(true).open(file)?;
    if opened.metadata()?.len() == 0 {
        // redb would treat an empty file as a new database.
        return Err(io::Error::from(io::ErrorKind::InvalidData).into());
    }
    FileBackend::new(opened)
}

/// Opens a file and verifies the checksums of all its pages.
///
/// redb follows some pages before it verifies them, so a damaged page can make it panic. The panic is converted to an
/// error that names the file and does not end the server.
fn open_checked<B: StorageBackend>(
    file: &Path,
    open: impl FnOnce() -> Result<B, redb::DatabaseError>,
) -> Result<Database, StoreError> {
    let backend = open().map_err(|error| told(file, "opening the file", error.into()))?;
    // No state of a failed attempt is used after the panic.
    match catch_unwind(AssertUnwindSafe(|| open_trusting(file, SyncedGrowth(backend)))) {
        Ok(opened) => opened,
        Err(_) => Err(corrupt(file, "a page of the database", "the database panicked on it".into())),
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
        // A page that does not match its checksum is an error, because an orderly close has synced everything. The
        // returned value only says whether the list of free pages had to be rebuilt, which is harmless.
        if let Err(error) = database.check_integrity() {
            // redb panics when it closes a file that failed its check. The process is about to end anyway.
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

/// Converts errors of the database.
fn told(file: &Path, doing: &'static str, error: redb::Error) -> StoreError {
    match error {
        // redb's error for a file without its header.
        redb::Error::Io(source) if source.kind() == io::ErrorKind::InvalidData => {
            StoreError::Foreign { path: file.to_owned(), found: "not a redb file".to_owned() }
        }
        redb::Error::Io(source) if source.kind() == io::ErrorKind::UnexpectedEof => {
            corrupt(file, "a page of the database", "it lies beyond the end of the file".into())
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
        // Other errors are misuse of redb's API and are reported with their text; later versions may add more.
        other => StoreError::Database { file: file.to_owned(), doing, source: other.to_string().into() },
    }
}
