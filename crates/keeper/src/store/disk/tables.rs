//! The tables of a file, and how a snapshot is read from them and a batch written to them.
//!
//! Keys and values are plain bytes: the database's own text type panics on what is not UTF-8.

use redb::{
    ReadTransaction, ReadableTable as _, ReadableTableMetadata as _, TableDefinition, TableError,
    WriteTransaction,
};

use super::row::{self, AclPool, RowError};
use crate::store::reduce::Reduced;
use crate::store::{Changes, Snapshot, StoredNode};

type Bytes = &'static [u8];

/// The format version and the newest transaction.
const META: TableDefinition<'_, Bytes, Bytes> = TableDefinition::new("keeper.meta");
/// Path → stat and ACL.
const NODES: TableDefinition<'_, Bytes, Bytes> = TableDefinition::new("keeper.nodes");
/// Path → data. Apart, so that a parent of 100,000 children does not rewrite its data for each; no row is the null
/// buffer.
const DATA: TableDefinition<'_, Bytes, Bytes> = TableDefinition::new("keeper.data");
/// Session → timeout and password.
const SESSIONS: TableDefinition<'_, i64, Bytes> = TableDefinition::new("keeper.sessions");

const FORMAT_KEY: &[u8] = b"format";
const ZXID_KEY: &[u8] = b"zxid";

/// The layout of the tables. Rows have a version of their own.
pub(super) const FORMAT: u32 = 1;

/// Why a file's tables cannot be read.
#[derive(Debug)]
pub(super) enum Fault {
    /// It has no format version.
    Foreign,
    /// It is of a later program.
    Newer(u32),
    /// A row.
    Row(String, RowError),
    /// The database.
    Database(redb::Error),
}

impl<E: Into<redb::Error>> From<E> for Fault {
    fn from(error: E) -> Self {
        Self::Database(error.into())
    }
}

/// Makes the tables of a new file.
pub(super) fn create(transaction: &WriteTransaction) -> Result<(), redb::Error> {
    transaction.open_table(META)?.insert(FORMAT_KEY, FORMAT.to_le_bytes().as_slice())?;
    write(transaction, &Changes::default())
}

/// Writes a batch.
pub(super) fn write(transaction: &WriteTransaction, changes: &Changes) -> Result<(), redb::Error> {
    let reduced = Reduced::of(&changes.rows);
    let mut encoded = Vec::new();
    transaction.open_table(META)?.insert(ZXID_KEY, changes.zxid.to_le_bytes().as_slice())?;
    let mut nodes = transaction.open_table(NODES)?;
    for (path, row) in reduced.nodes {
        match row {
            Some(row) => {
                encoded.clear();
                row::encode_node(row, &mut encoded);
                nodes.insert(path.as_bytes(), encoded.as_slice())?;
            }
            None => drop(nodes.remove(path.as_bytes())?),
        }
    }
    let mut data = transaction.open_table(DATA)?;
    for (path, bytes) in reduced.data {
        match bytes {
            Some(bytes) => drop(data.insert(path.as_bytes(), &**bytes)?),
            None => drop(data.remove(path.as_bytes())?),
        }
    }
    let mut sessions = transaction.open_table(SESSIONS)?;
    for (id, row) in reduced.sessions {
        match row {
            Some(row) => {
                encoded.clear();
                row::encode_session(row, &mut encoded);
                sessions.insert(id, encoded.as_slice())?;
            }
            None => drop(sessions.remove(id)?),
        }
    }
    Ok(())
}

/// Checks that the file is a keeper's, and one that this program reads.
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
        Ok(1..=FORMAT) => Ok(()),
        Ok(0) | Err(_) => Err(Fault::Foreign),
        Ok(newer) => Err(Fault::Newer(newer)),
    }
}

/// Reads everything.
pub(super) fn read(transaction: &ReadTransaction) -> Result<Snapshot, Fault> {
    check_format(transaction)?;
    let zxid = {
        let meta = transaction.open_table(META)?;
        let row = meta.get(ZXID_KEY)?.ok_or_else(|| Fault::Row("meta zxid".to_owned(), RowError::Missing))?;
        let bytes = row.value().try_into();
        i64::from_le_bytes(bytes.map_err(|_| Fault::Row("meta zxid".to_owned(), RowError::Range("zxid")))?)
    };
    Ok(Snapshot { zxid, nodes: read_nodes(transaction)?, sessions: read_sessions(transaction)? })
}

/// Both tables are sorted by path, so their rows are joined in one walk.
fn read_nodes(transaction: &ReadTransaction) -> Result<Vec<StoredNode>, Fault> {
    let nodes = transaction.open_table(NODES)?;
    let data = transaction.open_table(DATA)?;
    let mut acls = AclPool::default();
    // An estimate only: a file that lies about its length is not to cost memory.
    let mut read = Vec::with_capacity(usize::try_from(nodes.len()?).unwrap_or(0).min(MOST_ROWS_AT_ONCE));
    let mut data = data.iter()?;
    let mut next = data.next().transpose()?;
    for entry in nodes.iter()? {
        let (key, value) = entry?;
        let at = |error| Fault::Row(format!("node {:?}", String::from_utf8_lossy(key.value())), error);
        let path = std::str::from_utf8(key.value()).map_err(|_| at(RowError::NotUtf8("path")))?;
        if !path.starts_with('/') {
            return Err(at(RowError::Key));
        }
        let row = row::decode_node(value.value(), &mut acls).map_err(at)?;
        let bytes = match &next {
            Some((of, bytes)) if of.value() == key.value() => {
                let bytes = bytes.value().into();
                next = data.next().transpose()?;
                Some(bytes)
            }
            Some((of, _)) if of.value() < key.value() => return Err(orphan(of.value())),
            Some(_) | None => None,
        };
        read.push((path.to_owned(), row, bytes));
    }
    match next {
        Some((of, _)) => Err(orphan(of.value())),
        None => Ok(read),
    }
}

/// Rows for which memory is reserved before they are seen.
const MOST_ROWS_AT_ONCE: usize = 1 << 20;

fn orphan(path: &[u8]) -> Fault {
    Fault::Row(format!("data {:?}", String::from_utf8_lossy(path)), RowError::Orphan)
}

fn read_sessions(transaction: &ReadTransaction) -> Result<Vec<(i64, crate::store::SessionRow)>, Fault> {
    let mut sessions = Vec::new();
    for entry in transaction.open_table(SESSIONS)?.iter()? {
        let (id, value) = entry?;
        let row = row::decode_session(value.value())
            .map_err(|error| Fault::Row(format!("session {:#x}", id.value()), error))?;
        sessions.push((id.value(), row));
    }
    Ok(sessions)
}
