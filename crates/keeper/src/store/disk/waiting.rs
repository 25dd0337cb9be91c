//! Batches that wait to be folded into the rows' own tables.
//!
//! A batch changes rows all over the tree. Written to the rows' tables at once, each row costs its page and the pages
//! above it; written to a table of batches, it costs what it is long. So batches are kept whole, and the oldest of them
//! are folded a slice at a time: the last word on each row goes into the tables, in one transaction with the removal of
//! the slice. That happens when nobody waits for a commit; under a load that does not pause, in the transaction of a batch
//! that made the waiting ones too many. A row that changed in a hundred batches of a slice is written once.
//!
//! This is no log beside the tables: it is a table of the same file, written by the same transactions. There is
//! nothing to truncate, no torn tail, and no moment in which one has what the other lacks. The tables are folded when
//! a store is opened and before they are read, so nobody but this module knows that batches wait.
//!
//! ```text
//!  batch    version │ zxid │ change, …
//!  change   1 node │ path │ row      2 data of its own row │ path │ bytes      3 deleted │ path
//!           4 session │ id │ row     5 session ended │ id
//! ```

use std::collections::VecDeque;

use redb::{Database, Durability};

use super::row::{self, Input, ROW_VERSION, RowData, RowError};
use super::tables::{self, Fault, Writer};
use crate::store::{Change, Changes};

/// Bytes of batches that may wait before commits have to fold: a burst of 200,000 changed rows. The start after a crash
/// folds them: 16 MiB took some 200 ms.
pub(super) const FOLD_BYTES: usize = 32 << 20;
/// As much of that is folded at once. Larger slices fold better, but hold up who comes meanwhile: 8 MiB are some 50,000
/// changed rows. Slices of 2 MiB folded within some 30 ms; what these take was not measured, four times that is to be
/// expected. In slices of 2 MiB nearly every row of a large tree dirties a page of its own: with 100,000 jobs waiting, jobs
/// took a third longer than with 1,000.
const SLICES: usize = 4;
/// What a batch costs beside its bytes, so that many small ones count, too.
const BATCH_COST: usize = 64;
/// A batch is cut into rows of this length: the database gives a long row a power of two of pages, which this fills, with
/// its key and the page's header.
const PART_BYTES: usize = (32 << 10) - 64;
/// A row's key: the batch's number, and the part's below it.
const PART_BITS: u32 = 20;

const NODE: u8 = 1;
const DATA: u8 = 2;
const DELETED: u8 = 3;
const SESSION: u8 = 4;
const SESSION_ENDED: u8 = 5;

/// What waits.
#[derive(Debug)]
pub(super) struct Waiting {
    /// The number of the next batch; they are used again after all were folded.
    next: u64,
    /// The cost of each batch, oldest first.
    batches: VecDeque<usize>,
    bytes: usize,
    fold_bytes: usize,
    /// The batch at hand.
    encoded: Vec<u8>,
}

impl Waiting {
    pub(super) fn none(fold_bytes: usize) -> Self {
        Self { next: 0, batches: VecDeque::new(), bytes: 0, fold_bytes, encoded: Vec::new() }
    }

    /// Writes a batch, and returns when it is durable.
    pub(super) fn commit(&mut self, database: &Database, changes: &Changes) -> Result<(), Fault> {
        self.encoded.clear();
        encode(changes, &mut self.encoded);
        let cost = self.encoded.len() + BATCH_COST;
        if cost > self.fold_bytes {
            fold_all(database, Some(&self.encoded))?;
            self.forget_all();
            self.encoded = Vec::new();
            return Ok(());
        }
        let mut transaction = database.begin_write()?;
        transaction.set_durability(Durability::Immediate)?;
        let mut writer = Writer::open(&transaction)?;
        for (part, bytes) in (0..).zip(self.encoded.chunks(PART_BYTES)) {
            writer.wait(self.next << PART_BITS | part, bytes)?;
        }
        self.next += 1;
        self.batches.push_back(cost);
        self.bytes += cost;
        if self.bytes > self.fold_bytes {
            self.fold_slice(&mut writer)?;
        }
        drop(writer);
        Ok(transaction.commit()?)
    }

    /// Folds a slice, if anything waits; answers whether something still does.
    pub(super) fn tidy(&mut self, database: &Database) -> Result<bool, Fault> {
        if self.batches.is_empty() {
            return Ok(false);
        }
        let mut transaction = database.begin_write()?;
        transaction.set_durability(Durability::Immediate)?;
        let mut writer = Writer::open(&transaction)?;
        self.fold_slice(&mut writer)?;
        drop(writer);
        transaction.commit()?;
        Ok(!self.batches.is_empty())
    }

    /// Leaves nothing waiting.
    pub(super) fn fold(&mut self, database: &Database) -> Result<(), Fault> {
        if !self.batches.is_empty() {
            fold_all(database, None)?;
            self.forget_all();
        }
        Ok(())
    }

    /// Folds the oldest batches. If the transaction does not become durable, the store has failed, and this is not
    /// used again.
    fn fold_slice(&mut self, writer: &mut Writer<'_>) -> Result<(), Fault> {
        let first = self.next - self.batches.len() as u64;
        let (mut end, mut bytes) = (first, 0);
        while (bytes <= self.fold_bytes / SLICES || self.bytes - bytes > self.fold_bytes)
            && let Some(cost) = self.batches.pop_front()
        {
            bytes += cost;
            end += 1;
        }
        self.bytes -= bytes;
        let parts = writer.take_waiting(first << PART_BITS..end << PART_BITS)?;
        fold_batches(writer, &whole(parts), None)
    }

    fn forget_all(&mut self) {
        self.batches.clear();
        (self.next, self.bytes) = (0, 0);
    }
}

/// Folds what waits in a file.
pub(super) fn fold(database: &Database) -> Result<(), Fault> {
    fold_all(database, None)
}

/// Folds all that waits, and a batch behind it.
fn fold_all(database: &Database, batch: Option<&[u8]>) -> Result<(), Fault> {
    let mut transaction = database.begin_write()?;
    transaction.set_durability(Durability::Immediate)?;
    let parts = tables::take_all_waiting(&transaction)?;
    if parts.is_empty() && batch.is_none() {
        return Ok(transaction.abort()?);
    }
    let mut writer = Writer::open(&transaction)?;
    fold_batches(&mut writer, &whole(parts), batch)?;
    drop(writer);
    Ok(transaction.commit()?)
}

fn fold_batches(writer: &mut Writer<'_>, batches: &[Vec<u8>], batch: Option<&[u8]>) -> Result<(), Fault> {
    let mut folded = Folded::default();
    for batch in batches.iter().map(Vec::as_slice).chain(batch) {
        folded.add(batch).map_err(|error| Fault::Row("a waiting batch".to_owned(), error))?;
    }
    writer.fold(&folded.finish())
}

/// Puts batches together again; their parts come in order.
fn whole(parts: Vec<(u64, Vec<u8>)>) -> Vec<Vec<u8>> {
    let mut batches: Vec<(u64, Vec<u8>)> = Vec::new();
    for (key, part) in parts {
        match batches.last_mut() {
            Some((number, batch)) if *number == key >> PART_BITS => batch.extend(part),
            Some(_) | None => batches.push((key >> PART_BITS, part)),
        }
    }
    batches.into_iter().map(|(_number, batch)| batch).collect()
}

fn encode(changes: &Changes, to: &mut Vec<u8>) {
    let mut row = Vec::new();
    to.push(ROW_VERSION);
    row::number(changes.zxid, to);
    for change in &changes.rows {
        row.clear();
        match change {
            Change::PutNode { path, row: node, data, data_changed } => {
                let kept = RowData::of(data.as_deref());
                row::encode_node(node, kept, &mut row);
                to.push(NODE);
                row::bytes(path.as_bytes(), to);
                row::bytes(&row, to);
                if let (RowData::Apart, true, Some(data)) = (kept, data_changed, data) {
                    to.push(DATA);
                    row::bytes(path.as_bytes(), to);
                    row::bytes(data, to);
                }
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
    data: Vec<(&'a [u8], &'a [u8])>,
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
                DATA => self.data.push((from.bytes("path")?, from.bytes("data")?)),
                DELETED => self.nodes.push((from.bytes("path")?, None)),
                SESSION => self.sessions.push((from.number("session")?, Some(from.bytes("row")?))),
                SESSION_ENDED => self.sessions.push((from.number("session")?, None)),
                unknown => return Err(RowError::Change(unknown)),
            }
        }
        Ok(())
    }

    /// The last words on all rows, each sorted by its key.
    pub(super) fn finish(mut self) -> LastWords<'a> {
        keep_last(&mut self.nodes);
        keep_last(&mut self.data);
        keep_last(&mut self.sessions);
        LastWords { zxid: self.zxid, nodes: self.nodes, data: self.data, sessions: self.sessions }
    }
}

/// What is to be written, sorted by key: neighbours share pages.
#[derive(Debug)]
pub(super) struct LastWords<'a> {
    /// The newest transaction of the batches.
    pub(super) zxid: Option<i64>,
    /// Path → row.
    pub(super) nodes: Vec<(&'a [u8], Word<'a>)>,
    /// Path → data of its own row, the last that any batch had. It counts only if the znode's row still tells of it.
    pub(super) data: Vec<(&'a [u8], &'a [u8])>,
    /// Session → row.
    pub(super) sessions: Vec<(i64, Word<'a>)>,
}

impl<'a> LastWords<'a> {
    /// Whether these batches leave this znode with data in a row of its own; `None` when they do not touch it.
    pub(super) fn is_apart(&self, path: &[u8]) -> Option<Result<bool, RowError>> {
        let at = self.nodes.binary_search_by_key(&path, |(path, _)| path).ok()?;
        Some(self.nodes[at].1.map_or(Ok(false), row::is_apart))
    }
}

/// Batches come nearly sorted, which the sort makes use of.
fn keep_last<K: Ord + Copy, T: Copy>(words: &mut Vec<(K, T)>) {
    words.sort_by_key(|(key, _)| *key);
    words.dedup_by(|later, kept| {
        let same = later.0 == kept.0;
        if same {
            *kept = *later;
        }
        same
    });
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

    const LARGE: usize = row::INLINE_BYTES + 1;

    fn put(data: &[u8]) -> Change {
        let row = crate::store::NodeRow {
            czxid: 1,
            mzxid: 1,
            pzxid: 1,
            ctime: 0,
            mtime: 0,
            version: 0,
            creates: 0,
            aversion: 0,
            ephemeral_owner: 0,
            acl: [].into(),
        };
        Change::PutNode { path: "/a".into(), row, data: Some(data.into()), data_changed: true }
    }

    fn folded<'a>(batches: &[&'a [u8]]) -> LastWords<'a> {
        let mut folded = Folded::default();
        batches.iter().for_each(|batch| folded.add(batch).expect("it was encoded"));
        folded.finish()
    }

    /// The data of the one znode, as its row has it.
    fn inline<'a>(words: &LastWords<'a>) -> RowData<'a> {
        let [(b"/a", Some(row))] = words.nodes[..] else { panic!("{words:?}") };
        row::decode_node(row, &mut row::AclPool::default()).expect("it was encoded").1
    }

    #[test]
    fn the_last_word_on_a_row_wins_within_and_across_batches() {
        let first = encoded(vec![put(b"1"), put(b"2")]);
        let second = encoded(vec![put(b"3")]);
        assert_eq!(inline(&folded(&[&first])), RowData::Inline(b"2"));
        let words = folded(&[&first, &second]);
        assert_eq!(inline(&words), RowData::Inline(b"3"));
        assert_eq!((words.zxid, words.data.len()), (Some(7), 0));
    }

    #[test]
    fn only_long_data_has_a_row_of_its_own_and_only_while_it_is_long() {
        let long = encoded(vec![put(&[1; LARGE]), put(&[2; LARGE])]);
        let short = encoded(vec![put(b"3")]);
        let words = folded(&[&short, &long]);
        assert_eq!(inline(&words), RowData::Apart);
        assert_eq!(words.data, [(b"/a".as_slice(), [2; LARGE].as_slice())]);
        assert_eq!(words.is_apart(b"/a"), Some(Ok(true)));
        assert_eq!(words.is_apart(b"/b"), None);
        assert_eq!(folded(&[&long, &short]).is_apart(b"/a"), Some(Ok(false)));
    }

    #[test]
    fn a_deleted_znode_takes_its_data_along_and_a_session_ends() {
        let session = SessionRow { timeout_ms: 4_000, password: vec![1; 16] };
        let batch = encoded(vec![
            put(&[1; LARGE]),
            Change::DeleteNode("/a".into()),
            Change::PutSession(7, session),
            Change::DeleteSession(7),
        ]);
        let words = folded(&[&batch]);
        assert_eq!(words.nodes, [(b"/a".as_slice(), None)]);
        assert_eq!(words.is_apart(b"/a"), Some(Ok(false)));
        assert_eq!(words.sessions, [(7, None)]);
    }

    #[test]
    fn a_batch_that_cannot_be_read_is_an_error() {
        let whole = encoded(vec![put(&[1; LARGE])]);
        let add = |batch: &[u8]| Folded::default().add(batch);
        assert_eq!(add(&[]), Err(RowError::Short("version")));
        assert_eq!(add(&whole[..whole.len() - 1]), Err(RowError::Short("data")));
        assert_eq!(add(&[&whole[..], &[99]].concat()), Err(RowError::Change(99)));
        assert_eq!(add(&[9]), Err(RowError::Version(9)));
    }
}
