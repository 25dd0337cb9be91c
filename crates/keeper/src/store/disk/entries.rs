//! The encoding of batches, and an index of the last entry per row.
//!
//! ```text
//!  batch    version │ zxid │ change, …
//!  change   1 node │ key │ row       2 separate data, after its znode │ key │ bytes
//!           3 deleted │ key          4 session │ id │ row         5 session ended │ id
//! ```
//!
//! A key is that of the row in its table ([`row::key`]). Entries refer to the bytes of their batches. They are sorted in [`Run`]s: small enough for the processor's cache,
//! and fast enough that no commit waits long. A [`Checkpoint`] merges the runs.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

use super::checkpoint::Checkpoint;
use super::row::{self, Input, ROW_VERSION, RowData, RowError};
use crate::store::{Change, Changes};

const NODE: u8 = 1;
const DATA: u8 = 2;
const DELETED: u8 = 3;
const SESSION: u8 = 4;
const SESSION_ENDED: u8 = 5;

/// Memory of an entry in addition to its bytes.
pub(super) const ENTRY_BYTES: usize = size_of::<Entry>();

/// Rows of sessions; `None` for an ended session.
pub(super) type Sessions = BTreeMap<i64, Option<Vec<u8>>>;

/// The entries of a sequence of batches.
#[derive(Debug)]
pub(super) struct Entries {
    /// Sorted runs, oldest first.
    sorted: Vec<Run>,
    /// The current run.
    run: Run,
    /// Size at which a run is sorted and a new one starts.
    run_bytes: usize,
    sessions: Sessions,
    zxid: i64,
    /// Oldest first.
    batches: VecDeque<Batch>,
}

/// A batch in the table of waiting batches.
#[derive(Debug)]
pub(super) struct Batch {
    /// The keys of its parts.
    pub(super) keys: Range<u64>,
    /// The bytes of all parts.
    pub(super) bytes: usize,
}

/// The bytes of some batches, and their entries for znodes.
#[derive(Debug, Default)]
pub(super) struct Run {
    bytes: Vec<u8>,
    entries: Vec<Entry>,
}

/// See the methods of [`Run`].
#[derive(Debug, Clone, Copy)]
struct Entry {
    key: Span,
    row: Option<Span>,
    data: Option<Span>,
}

/// A range in the bytes of a run.
#[derive(Debug, Clone, Copy)]
struct Span {
    at: usize,
    length: usize,
}

impl Entries {
    pub(super) fn none(run_bytes: usize) -> Self {
        Self {
            sorted: Vec::new(),
            run: Run::default(),
            run_bytes,
            sessions: Sessions::new(),
            zxid: 0,
            batches: VecDeque::new(),
        }
    }

    /// Returns whether no batch [waits](Self::wait).
    pub(super) fn is_empty(&self) -> bool {
        self.batches.is_empty()
    }

    /// Appends a batch; returns its encoding.
    pub(super) fn add(&mut self, changes: &Changes) -> Result<&[u8], RowError> {
        self.begin_batch();
        let from = self.run.bytes.len();
        encode(changes, &mut self.run.bytes);
        self.index(from)?;
        Ok(&self.run.bytes[from..])
    }

    /// Appends a batch that was read from the file.
    pub(super) fn read(&mut self, batch: &[u8]) -> Result<(), RowError> {
        self.begin_batch();
        let from = self.run.bytes.len();
        self.run.bytes.extend_from_slice(batch);
        self.index(from)
    }

    /// Records that the last appended batch is in the table of waiting batches.
    pub(super) fn wait(&mut self, batch: Batch) {
        self.batches.push_back(batch);
    }

    pub(super) fn checkpoint(mut self) -> Checkpoint {
        self.end_run();
        Checkpoint::new(self.sorted, self.sessions, self.zxid, self.batches)
    }

    /// Sorts the current run if it is long enough. Called before a batch and not after the one that filled the run,
    /// whose clients wait for their replies.
    fn begin_batch(&mut self) {
        if self.run.bytes.len() >= self.run_bytes {
            self.end_run();
        }
    }

    fn end_run(&mut self) {
        let mut run = std::mem::take(&mut self.run);
        if !run.entries.is_empty() {
            run.sort();
            self.sorted.push(run);
        }
    }

    /// Indexes the batch that starts at `from`. Rows are verified when they are read from their tables.
    fn index(&mut self, from: usize) -> Result<(), RowError> {
        let Run { bytes, entries } = &mut self.run;
        let (end, before) = (bytes.len(), entries.len());
        let mut from = Input::versioned(&bytes[from..])?;
        self.zxid = from.number("zxid")?;
        while let Some(change) = from.byte() {
            let mut next = |field| {
                let length = from.bytes(field)?.len();
                Ok::<_, RowError>(Span { at: end - from.rest() - length, length })
            };
            match change {
                NODE => entries.push(Entry { key: next("key")?, row: Some(next("row")?), data: None }),
                DELETED => entries.push(Entry { key: next("key")?, row: None, data: None }),
                // Follows the entry of its znode.
                DATA => {
                    let key = next("key")?;
                    let data = next("data")?;
                    let entry = entries[before..].last_mut();
                    let entry = entry.filter(|entry| bytes[entry.key.range()] == bytes[key.range()]);
                    entry.ok_or(RowError::Orphan)?.data = Some(data);
                }
                SESSION => {
                    let (id, row) = (from.number("session")?, from.bytes("row")?);
                    self.sessions.insert(id, Some(row.to_vec()));
                }
                SESSION_ENDED => drop(self.sessions.insert(from.number("session")?, None)),
                unknown => return Err(RowError::Change(unknown)),
            }
        }
        Ok(())
    }
}

impl Run {
    /// Keeps only the last entry for each key, sorted by key.
    fn sort(&mut self) {
        let Self { bytes, entries } = self;
        let key = |entry: &Entry| &bytes[entry.key.range()];
        entries.sort_by(|one, other| key(one).cmp(key(other)));
        entries.dedup_by(|later, kept| {
            let same = key(later) == key(kept);
            if same {
                *kept = Entry { data: later.data.or(kept.data), ..*later };
            }
            same
        });
        entries.shrink_to_fit();
        // Only the bytes of the kept entries remain, in order: a checkpoint reads them once, sequentially.
        let lengths = entries.iter().map(|entry| entry.spans().map(|span| span.length).sum::<usize>());
        let mut kept = Vec::with_capacity(lengths.sum());
        for entry in entries {
            entry.key = entry.key.moved(bytes, &mut kept);
            entry.row = entry.row.map(|row| row.moved(bytes, &mut kept));
            entry.data = entry.data.map(|data| data.moved(bytes, &mut kept));
        }
        *bytes = kept;
    }

    /// Returns the number of znodes with an entry.
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns the bytes of an entry.
    pub(super) fn bytes_of(&self, entry: usize) -> usize {
        self.entries[entry].spans().map(|span| span.length).sum()
    }

    pub(super) fn key(&self, entry: usize) -> &[u8] {
        &self.bytes[self.entries[entry].key.range()]
    }

    /// Returns the row; `None` for a deleted znode.
    pub(super) fn row(&self, entry: usize) -> Option<&[u8]> {
        Some(&self.bytes[self.entries[entry].row?.range()])
    }

    /// Returns the last data written to a separate row. It is only valid if the znode's row has separate data.
    pub(super) fn data(&self, entry: usize) -> Option<&[u8]> {
        Some(&self.bytes[self.entries[entry].data?.range()])
    }
}

impl Entry {
    fn spans(&self) -> impl Iterator<Item = Span> {
        [Some(self.key), self.row, self.data].into_iter().flatten()
    }
}

impl Span {
    /// Appends the range to `to`.
    fn moved(self, from: &[u8], to: &mut Vec<u8>) -> Self {
        let at = to.len();
        to.extend_from_slice(&from[self.range()]);
        Self { at, ..self }
    }

    fn range(self) -> Range<usize> {
        self.at..self.at + self.length
    }
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
                row::encode_key(node.czxid, path, to);
                row::bytes(&row, to);
                if let (RowData::Apart, true, Some(data)) = (kept, data_changed, data) {
                    to.push(DATA);
                    row::encode_key(node.czxid, path, to);
                    row::bytes(data, to);
                }
            }
            Change::DeleteNode { czxid, path } => {
                to.push(DELETED);
                row::encode_key(*czxid, path, to);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{NodeRow, SessionRow};

    const LARGE: usize = row::INLINE_BYTES + 1;

    fn put(path: &str, data: &[u8]) -> Change {
        let row = NodeRow {
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
        Change::PutNode { path: path.into(), row, data: Some(data.into()), data_changed: true }
    }

    fn encoded(rows: Vec<Change>) -> Vec<u8> {
        let mut bytes = Vec::new();
        encode(&Changes { zxid: 7, rows }, &mut bytes);
        bytes
    }

    fn run(batches: impl IntoIterator<Item = Vec<Change>>) -> Run {
        let mut entries = Entries::none(usize::MAX);
        for rows in batches {
            entries.add(&Changes { zxid: 7, rows }).expect("a valid batch");
        }
        entries.run.sort();
        entries.run
    }

    /// Returns the data stored in a row.
    fn data(row: Option<&[u8]>) -> RowData<'_> {
        row::decode_node(row.expect("the row exists"), &mut row::AclPool::default()).expect("a valid row").1
    }

    #[test]
    fn the_last_entry_for_a_row_wins_within_and_across_batches() {
        let first = || vec![put("/b", b"1"), put("/a", b"0"), put("/b", b"2")];
        let only = run([first()]);
        assert_eq!(
            (only.len(), only.key(0), only.key(1)),
            (2, &row::key(1, "/a")[..], &row::key(1, "/b")[..]),
            "sorted"
        );
        assert_eq!(data(only.row(1)), RowData::Inline(b"2"));
        let both = run([first(), vec![put("/b", b"3")]]);
        assert_eq!(data(both.row(1)), RowData::Inline(b"3"));
        assert_eq!(data(both.row(0)), RowData::Inline(b"0"));
    }

    #[test]
    fn later_entries_without_data_keep_earlier_long_data() {
        let touched = || match put("/a", &[2; LARGE]) {
            Change::PutNode { path, row, data, .. } => {
                Change::PutNode { path, row, data, data_changed: false }
            }
            other => other,
        };
        let run = run([vec![put("/a", &[1; LARGE])], vec![put("/a", &[2; LARGE])], vec![touched()]]);
        assert_eq!((run.len(), data(run.row(0))), (1, RowData::Apart));
        assert_eq!(run.data(0), Some(&[2; LARGE][..]));
    }

    #[test]
    fn deleted_znodes_and_ended_sessions_have_no_row() {
        let session = SessionRow { timeout_ms: 4_000, password: vec![1; 16] };
        let rows = vec![
            put("/a", b"1"),
            Change::DeleteNode { czxid: 1, path: "/a".into() },
            Change::PutSession(7, session),
            Change::DeleteSession(7),
        ];
        let mut entries = Entries::none(usize::MAX);
        entries.add(&Changes { zxid: 7, rows }).expect("a valid batch");
        assert_eq!((entries.zxid, entries.sessions.get(&7)), (7, Some(&None)));
        entries.run.sort();
        assert_eq!((entries.run.len(), entries.run.row(0)), (1, None));
    }

    #[test]
    fn an_invalid_batch_is_an_error() {
        let whole = encoded(vec![put("/a", &[1; LARGE])]);
        let read = |batch: &[u8]| Entries::none(0).read(batch);
        assert_eq!(read(&whole), Ok(()));
        assert_eq!(read(&[]), Err(RowError::Short("version")));
        assert_eq!(read(&whole[..whole.len() - 1]), Err(RowError::Short("data")));
        assert_eq!(read(&[&whole[..], &[99]].concat()), Err(RowError::Change(99)));
        assert_eq!(read(&[9]), Err(RowError::Version(9)));
        let mut alone = encoded(Vec::new());
        alone.push(DATA);
        row::encode_key(1, "/a", &mut alone);
        row::bytes(b"x", &mut alone);
        assert_eq!(read(&alone), Err(RowError::Orphan));
        assert_eq!(read(&[&whole[..], &alone[2..]].concat()), Ok(()), "the data follows its znode");
    }
}
