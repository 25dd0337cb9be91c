//! The tables of a file: reads snapshots and writes rows.
//!
//! Keys and values are plain bytes, because redb's text type panics on invalid UTF-8.

use std::ops::Range;

use redb::{ReadTransaction, ReadableTable as _, Table, TableDefinition, TableError, WriteTransaction};

use super::row::{self, AclPool, RowData, RowError};
use crate::store::{NodeRow, SessionRow, Snapshot};

type Bytes = &'static [u8];

/// The format version and the newest transaction.
const META: TableDefinition<'_, Bytes, Bytes> = TableDefinition::new("keeper.meta");
/// [Key](row::key) → stat, ACL, and short data.
const NODES: TableDefinition<'_, Bytes, Bytes> = TableDefinition::new("keeper.nodes");
/// Key → long data of znodes with separate data: a parent of 100,000 children does not rewrite it for each of them.
const DATA: TableDefinition<'_, Bytes, Bytes> = TableDefinition::new("keeper.data");
/// Session → timeout and password.
const SESSIONS: TableDefinition<'_, i64, Bytes> = TableDefinition::new("keeper.sessions");

/// Number → part of a batch that is not folded yet; see [`waiting`](super::waiting).
const WAITING: TableDefinition<'_, u64, Bytes> = TableDefinition::new("keeper.waiting");

const FORMAT_KEY: &[u8] = b"format";
const ZXID_KEY: &[u8] = b"zxid";

/// The layout of the tables. Rows have their own version.
pub(super) const FORMAT: u32 = 3;

/// The reason why the tables of a file cannot be read.
#[derive(Debug)]
pub(super) enum Fault {
    /// The file has no format version.
    Foreign,
    /// Another version of this program wrote the file.
    Format(u32),
    /// A row is invalid.
    Row(String, RowError),
    /// The database returned an error.
    Database(redb::Error),
}

impl<E: Into<redb::Error>> From<E> for Fault {
    fn from(error: E) -> Self {
        Self::Database(error.into())
    }
}

/// The tables of a file, opened in one transaction.
pub(super) struct Writer<'t> {
    meta: Table<'t, Bytes, Bytes>,
    nodes: Table<'t, Bytes, Bytes>,
    data: Table<'t, Bytes, Bytes>,
    sessions: Table<'t, i64, Bytes>,
    waiting: Table<'t, u64, Bytes>,
    /// The current row, encoded.
    encoded: Vec<u8>,
}

impl<'t> Writer<'t> {
    /// Opens the tables; creates missing ones.
    pub(super) fn open(transaction: &'t WriteTransaction) -> Result<Self, redb::Error> {
        Ok(Self {
            meta: transaction.open_table(META)?,
            nodes: transaction.open_table(NODES)?,
            data: transaction.open_table(DATA)?,
            sessions: transaction.open_table(SESSIONS)?,
            waiting: transaction.open_table(WAITING)?,
            encoded: Vec::new(),
        })
    }

    /// Writes the format version to a new file.
    pub(super) fn format(&mut self) -> Result<(), redb::Error> {
        self.meta.insert(FORMAT_KEY, FORMAT.to_le_bytes().as_slice())?;
        Ok(())
    }

    /// Adds a part of a waiting batch.
    pub(super) fn wait(&mut self, key: u64, part: &[u8]) -> Result<(), redb::Error> {
        self.waiting.insert(key, part)?;
        Ok(())
    }

    /// Removes a batch whose entries are all in the tables of the rows.
    pub(super) fn remove_waiting(&mut self, parts: Range<u64>) -> Result<(), redb::Error> {
        for part in parts {
            self.waiting.remove(part)?;
        }
        Ok(())
    }

    /// Writes or removes the row of a znode. Separate data is written if `data` is given and the row refers to it, and
    /// removed if the new row no longer refers to it.
    pub(super) fn put_or_remove(
        &mut self,
        key: &[u8],
        row: Option<&[u8]>,
        data: Option<&[u8]>,
    ) -> Result<(), Fault> {
        let old = match row {
            Some(row) => self.nodes.insert(key, row)?,
            None => self.nodes.remove(key)?,
        };
        // Separate data exists only if the znode's row refers to it.
        let had = old.is_some_and(|old| row::is_apart(old.value()) == Ok(true));
        let has = row.map_or(Ok(false), row::is_apart);
        let has = has.map_err(|error| Fault::Row("a waiting batch".to_owned(), error))?;
        match data {
            Some(data) if has => drop(self.data.insert(key, data)?),
            _ if had && !has => drop(self.data.remove(key)?),
            _ => {}
        }
        Ok(())
    }

    /// Writes or removes the row of a session.
    pub(super) fn put_or_remove_session(&mut self, id: i64, row: Option<&[u8]>) -> Result<(), redb::Error> {
        match row {
            Some(row) => drop(self.sessions.insert(id, row)?),
            None => drop(self.sessions.remove(id)?),
        }
        Ok(())
    }

    pub(super) fn zxid(&mut self, zxid: i64) -> Result<(), redb::Error> {
        self.meta.insert(ZXID_KEY, zxid.to_le_bytes().as_slice())?;
        Ok(())
    }

    pub(super) fn node(&mut self, path: &str, row: &NodeRow, data: Option<&[u8]>) -> Result<(), redb::Error> {
        let kept = RowData::of(data);
        let key = row::key(row.czxid, path);
        self.encoded.clear();
        row::encode_node(row, kept, &mut self.encoded);
        self.nodes.insert(key.as_slice(), self.encoded.as_slice())?;
        if let (RowData::Apart, Some(data)) = (kept, data) {
            self.data.insert(key.as_slice(), data)?;
        }
        Ok(())
    }

    pub(super) fn session(&mut self, id: i64, row: &SessionRow) -> Result<(), redb::Error> {
        self.encoded.clear();
        row::encode_session(row, &mut self.encoded);
        self.sessions.insert(id, self.encoded.as_slice())?;
        Ok(())
    }
}

/// Removes all parts of waiting batches and passes them to `take`, in order.
pub(super) fn take_all_waiting(
    transaction: &WriteTransaction,
    mut take: impl FnMut(u64, &[u8]) -> Result<(), Fault>,
) -> Result<(), Fault> {
    let waiting = transaction.open_table(WAITING)?;
    for entry in waiting.iter()? {
        let (key, part) = entry?;
        take(key.value(), part.value())?;
    }
    drop(waiting);
    // The whole table is deleted: removing the rows one by one would rewrite the pages in between.
    transaction.delete_table(WAITING)?;
    Ok(())
}

/// Creates the tables of a new file.
#[cfg(test)]
pub(super) fn create(database: &redb::Database) -> Result<(), redb::Error> {
    let transaction = database.begin_write()?;
    let mut writer = Writer::open(&transaction)?;
    writer.format()?;
    writer.zxid(0)?;
    drop(writer);
    Ok(transaction.commit()?)
}

/// Checks that a keeper wrote the file, in a format that this program can read.
pub(super) fn check_format(transaction: &ReadTransaction) -> Result<(), Fault> {
    let meta = match transaction.open_table(META) {
        Ok(meta) => meta,
        Err(
            TableError::TableDoesNotExist(_)
            | TableError::TableTypeMismatch { .. }
            | TableError::TableIsMultimap(_)
            | TableError::TypeDefinitionChanged { .. },
        ) => return Err(Fault::Foreign),
        Err(error) => return Err(error.into()),
    };
    let version = meta.get(FORMAT_KEY)?.ok_or(Fault::Foreign)?;
    match <[u8; 4]>::try_from(version.value()).map(u32::from_le_bytes) {
        Ok(FORMAT) => Ok(()),
        Ok(0) | Err(_) => Err(Fault::Foreign),
        Ok(other) => Err(Fault::Format(other)),
    }
}

/// Receives rows as they are read.
pub(super) trait Visitor {
    fn node(&mut self, path: &str, row: NodeRow, data: Option<&[u8]>) -> Result<(), Fault>;
    fn session(&mut self, id: i64, row: SessionRow) -> Result<(), Fault>;
}

/// Reads and verifies every row; returns the newest transaction.
pub(super) fn walk(transaction: &ReadTransaction, visitor: &mut dyn Visitor) -> Result<i64, Fault> {
    check_format(transaction)?;
    walk_nodes(transaction, visitor)?;
    for entry in transaction.open_table(SESSIONS)?.iter()? {
        let (id, value) = entry?;
        let row = row::decode_session(value.value())
            .map_err(|error| Fault::Row(format!("session {:#x}", id.value()), error))?;
        visitor.session(id.value(), row)?;
    }
    let at = |error| Fault::Row("meta zxid".to_owned(), error);
    let meta = transaction.open_table(META)?;
    let zxid = meta.get(ZXID_KEY)?.ok_or_else(|| at(RowError::Missing))?;
    let bytes = zxid.value().try_into().map_err(|_| at(RowError::Range("zxid")))?;
    Ok(i64::from_le_bytes(bytes))
}

/// Reads the znodes. Both tables are sorted by key, so the separate data of a znode is always the next row.
fn walk_nodes(transaction: &ReadTransaction, visitor: &mut dyn Visitor) -> Result<(), Fault> {
    let nodes = transaction.open_table(NODES)?;
    let data = transaction.open_table(DATA)?;
    let mut acls = AclPool::default();
    let mut data = data.iter()?;
    let mut next = data.next().transpose()?;
    for entry in nodes.iter()? {
        let (key, value) = entry?;
        let at = |error| Fault::Row(named("node", key.value()), error);
        let (czxid, path) = row::parse_key(key.value()).map_err(at)?;
        let (row, kept) = row::decode_node(value.value(), &mut acls).map_err(at)?;
        if row.czxid != czxid {
            return Err(at(RowError::Key));
        }
        match kept {
            RowData::Null => visitor.node(path, row, None)?,
            RowData::Inline(data) => visitor.node(path, row, Some(data))?,
            RowData::Apart => match &next {
                Some((of, bytes)) if of.value() == key.value() => {
                    visitor.node(path, row, Some(bytes.value()))?;
                    next = data.next().transpose()?;
                }
                Some((of, _)) if of.value() < key.value() => return Err(orphan(of.value())),
                Some(_) | None => return Err(at(RowError::NoData)),
            },
        }
    }
    next.map_or(Ok(()), |(of, _)| Err(orphan(of.value())))
}

fn orphan(key: &[u8]) -> Fault {
    Fault::Row(named("data", key), RowError::Orphan)
}

/// Names the row of a key: by its path, as far as there is one.
fn named(what: &str, key: &[u8]) -> String {
    let path = key.split_first_chunk::<8>().map_or(key, |(_, path)| path);
    format!("{what} {:?}", String::from_utf8_lossy(path))
}

impl Visitor for Snapshot {
    fn node(&mut self, path: &str, row: NodeRow, data: Option<&[u8]>) -> Result<(), Fault> {
        self.nodes.push((path.to_owned(), row, data.map(Into::into)));
        Ok(())
    }

    fn session(&mut self, id: i64, row: SessionRow) -> Result<(), Fault> {
        self.sessions.push((id, row));
        Ok(())
    }
}
