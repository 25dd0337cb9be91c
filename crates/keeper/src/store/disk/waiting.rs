//! Batches that wait to be folded into the rows' own tables.
//!
//! A batch changes rows all over the tree. Written to the rows' tables at once, each row costs its page and the pages
//! above it; written as one row of a table of batches, it costs what it is long. So batches are kept whole, and when
//! enough of them wait, the last word on each row goes into the tables, in the same transaction as the batch that
//! made them enough. A row that changed in a hundred batches is written once.
//!
//! This is no log beside the tables: it is a table of the same file, written by the same transactions. There is
//! nothing to truncate, no torn tail, and no moment in which one has what the other lacks. The tables are folded when
//! a store is opened and before they are read, so nobody but this module knows that batches wait.
//!
//! ```text
//!  batch    version │ zxid │ change, …
//!  change   1 node │ path │ row      2 data │ path │ bytes     3 no data │ path
//!           4 deleted │ path         5 session │ id │ row      6 session ended │ id
//! ```

use redb::{Database, Durability};

use super::row::{self, Input, ROW_VERSION, RowError};
use super::tables::{self, Fault, Writer};
use crate::store::{Change, Changes};

/// Bytes of batches that may wait. More of them fold better, but hold up the commit that folds them, and the next
/// start after a crash: 4 MiB are some 25,000 changed rows, and fold within some 100 ms.
pub(super) const FOLD_BYTES: usize = 4 << 20;
/// What a batch costs beside its bytes, so that many small ones count, too.
const BATCH_COST: usize = 64;

const NODE: u8 = 1;
const DATA: u8 = 2;
const NO_DATA: u8 = 3;
const DELETED: u8 = 4;
const SESSION: u8 = 5;
const SESSION_ENDED: u8 = 6;

/// How much waits.
#[derive(Debug)]
pub(super) struct Waiting {
    /// Batches so far; numbers are used again after they were folded.
    batches: u64,
    bytes: usize,
    fold_bytes: usize,
    /// The batch at hand.
    encoded: Vec<u8>,
}

impl Waiting {
    pub(super) fn none(fold_bytes: usize) -> Self {
        Self { batches: 0, bytes: 0, fold_bytes, encoded: Vec::new() }
    }

    /// Writes a batch, and returns when it is durable.
    pub(super) fn commit(&mut self, database: &Database, changes: &Changes) -> Result<(), Fault> {
        self.encoded.clear();
        encode(changes, &mut self.encoded);
        self.bytes += self.encoded.len() + BATCH_COST;
        if self.bytes > self.fold_bytes {
            return self.fold_with(database, true);
        }
        let mut transaction = database.begin_write()?;
        transaction.set_durability(Durability::Immediate)?;
        Writer::open(&transaction)?.wait(self.batches, &self.encoded)?;
        transaction.commit()?;
        self.batches += 1;
        Ok(())
    }

    /// Leaves nothing waiting.
    pub(super) fn fold(&mut self, database: &Database) -> Result<(), Fault> {
        match self.batches {
            0 => Ok(()),
            _ => self.fold_with(database, false),
        }
    }

    fn fold_with(&mut self, database: &Database, and_the_batch_at_hand: bool) -> Result<(), Fault> {
        fold_and(database, and_the_batch_at_hand.then_some(&*self.encoded))?;
        (self.batches, self.bytes) = (0, 0);
        Ok(())
    }
}

/// Folds what waits in a file.
pub(super) fn fold(database: &Database) -> Result<(), Fault> {
    fold_and(database, None)
}

fn fold_and(database: &Database, batch: Option<&[u8]>) -> Result<(), Fault> {
    let mut transaction = database.begin_write()?;
    transaction.set_durability(Durability::Immediate)?;
    let waiting = tables::take_waiting(&transaction)?;
    if waiting.is_empty() && batch.is_none() {
        return Ok(transaction.abort()?);
    }
    let mut folded = Folded::default();
    for batch in waiting.iter().map(Vec::as_slice).chain(batch) {
        folded.add(batch).map_err(|error| Fault::Row("a waiting batch".to_owned(), error))?;
    }
    Writer::open(&transaction)?.fold(folded)?;
    Ok(transaction.commit()?)
}

fn encode(changes: &Changes, to: &mut Vec<u8>) {
    let mut row = Vec::new();
    to.push(ROW_VERSION);
    row::number(changes.zxid, to);
    for change in &changes.rows {
        row.clear();
        match change {
            Change::PutNode(path, node) => {
                row::encode_node(node, &mut row);
                to.push(NODE);
                row::bytes(path.as_bytes(), to);
                row::bytes(&row, to);
            }
            Change::PutData(path, Some(data)) => {
                to.push(DATA);
                row::bytes(path.as_bytes(), to);
                row::bytes(data, to);
            }
            Change::PutData(path, None) => {
                to.push(NO_DATA);
                row::bytes(path.as_bytes(), to);
            }
            Change::DeleteNode(path) => {
                to.push(DELETED);
                row::bytes(path.as_bytes(), to);
            }
            Change::PutSession(id, session) => {
                row::encode_session(session, &mut row);
                to.push(SESSION);
                row::number(*id, to);
                row::bytes(&row, to);
            }
            Change::DeleteSession(id) => {
                to.push(SESSION_ENDED);
                row::number(*id, to);
            }
        }
    }
}

/// What some batches say of each row, in their order; `None` is gone.
#[derive(Debug, Default)]
pub(super) struct Folded<'a> {
    zxid: Option<i64>,
    nodes: Vec<(&'a [u8], Word<'a>)>,
    data: Vec<(&'a [u8], Word<'a>)>,
    sessions: Vec<(i64, Word<'a>)>,
}

/// A row, or that there is none.
pub(super) type Word<'a> = Option<&'a [u8]>;

impl<'a> Folded<'a> {
    /// Adds a later batch. Its rows are checked when they are read from their tables.
    pub(super) fn add(&mut self, batch: &'a [u8]) -> Result<(), RowError> {
        let mut from = Input::versioned(batch)?;
        self.zxid = Some(from.number("zxid")?);
        while let Some(change) = from.byte() {
            match change {
                NODE => self.nodes.push((from.bytes("path")?, Some(from.bytes("row")?))),
                DATA => self.data.push((from.bytes("path")?, Some(from.bytes("data")?))),
                NO_DATA => self.data.push((from.bytes("path")?, None)),
                DELETED => {
                    let path = from.bytes("path")?;
                    self.nodes.push((path, None));
                    self.data.push((path, None));
                }
                SESSION => self.sessions.push((from.number("session")?, Some(from.bytes("row")?))),
                SESSION_ENDED => self.sessions.push((from.number("session")?, None)),
                unknown => return Err(RowError::Change(unknown)),
            }
        }
        Ok(())
    }

    /// The newest transaction of the batches.
    pub(super) fn zxid(&self) -> Option<i64> {
        self.zxid
    }

    pub(super) fn nodes(&mut self) -> impl Iterator<Item = (&'a [u8], Word<'a>)> {
        last_words(&mut self.nodes)
    }

    pub(super) fn data(&mut self) -> impl Iterator<Item = (&'a [u8], Word<'a>)> {
        last_words(&mut self.data)
    }

    pub(super) fn sessions(&mut self) -> impl Iterator<Item = (i64, Word<'a>)> {
        last_words(&mut self.sessions)
    }
}

/// The last word on each key, sorted: neighbours share pages. Batches come sorted, which the sort makes use of.
fn last_words<'a, K: Ord + Copy>(words: &mut [(K, Word<'a>)]) -> impl Iterator<Item = (K, Word<'a>)> {
    words.sort_by_key(|(key, _)| *key);
    let words = &*words;
    (0..words.len())
        .filter(|&at| words.get(at + 1).is_none_or(|(next, _)| *next != words[at].0))
        .map(|at| words[at])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::SessionRow;

    fn encoded(rows: Vec<Change>) -> Vec<u8> {
        let mut bytes = Vec::new();
        encode(&Changes { zxid: 7, rows }, &mut bytes);
        bytes
    }

    fn data(bytes: &[u8]) -> Change {
        Change::PutData("/a".to_owned(), Some(bytes.into()))
    }

    #[test]
    fn the_last_word_on_a_row_wins_within_and_across_batches() {
        let first = encoded(vec![data(b"1"), data(b"2")]);
        let second = encoded(vec![data(b"3")]);
        let mut folded = Folded::default();
        folded.add(&first).unwrap();
        assert_eq!(folded.data().collect::<Vec<_>>(), [(b"/a".as_slice(), Some(b"2".as_slice()))]);
        folded.add(&second).unwrap();
        assert_eq!(folded.data().collect::<Vec<_>>(), [(b"/a".as_slice(), Some(b"3".as_slice()))]);
        assert_eq!(folded.zxid(), Some(7));
    }

    #[test]
    fn a_deleted_znode_takes_its_data_along_and_a_session_ends() {
        let session = SessionRow { timeout_ms: 4_000, password: vec![1; 16] };
        let batch = encoded(vec![
            data(b"old"),
            Change::DeleteNode("/a".to_owned()),
            Change::PutSession(7, session),
            Change::DeleteSession(7),
        ]);
        let mut folded = Folded::default();
        folded.add(&batch).unwrap();
        assert_eq!(folded.nodes().collect::<Vec<_>>(), [(b"/a".as_slice(), None)]);
        assert_eq!(folded.data().collect::<Vec<_>>(), [(b"/a".as_slice(), None)]);
        assert_eq!(folded.sessions().collect::<Vec<_>>(), [(7, None)]);
    }

    #[test]
    fn a_batch_that_cannot_be_read_is_an_error() {
        let whole = encoded(vec![data(b"1")]);
        let add = |batch: &[u8]| Folded::default().add(batch);
        assert_eq!(add(&[]), Err(RowError::Short("version")));
        assert_eq!(add(&whole[..whole.len() - 1]), Err(RowError::Short("data")));
        assert_eq!(add(&[&whole[..], &[99]].concat()), Err(RowError::Change(99)));
        assert_eq!(add(&[9]), Err(RowError::Version(9)));
    }
}
