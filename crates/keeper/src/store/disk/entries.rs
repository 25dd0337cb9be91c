//! Batches as bytes, and the last entry of some of them for each row.
//!
//! ```text
//!  batch    version │ zxid │ change, …
//!  change   1 node │ path │ row      2 data of a row of its own, behind its znode │ path │ bytes
//!           3 deleted │ path         4 session │ id │ row         5 session ended │ id
//! ```
//!
//! Entries are where they stand in their batches. They are sorted a [`Run`] at a time, while it is small enough for the
//! processor's cache and nobody waits long; a [`Checkpoint`] merges the runs.

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

/// What an entry takes of memory beside its bytes.
pub(super) const ENTRY_BYTES: usize = size_of::<Entry>();

/// Sessions' rows; `None` has ended.
pub(super) type Sessions = BTreeMap<i64, Option<Vec<u8>>>;

/// Those of some batches.
#[derive(Debug)]
pub(super) struct Entries {
    /// Runs that are sorted, the oldest first.
    sorted: Vec<Run>,
    /// The run at hand.
    run: Run,
    /// With so many bytes a run is sorted, and another begins.
    run_bytes: usize,
    sessions: Sessions,
    zxid: i64,
    /// The oldest first.
    batches: VecDeque<Batch>,
}

/// A batch that waits.
#[derive(Debug)]
pub(super) struct Batch {
    /// Of its parts.
    pub(super) keys: Range<u64>,
    /// Of all of them.
    pub(super) bytes: usize,
}

/// Some batches, and their entries for znodes.
#[derive(Debug, Default)]
pub(super) struct Run {
    bytes: Vec<u8>,
    entries: Vec<Entry>,
}

/// See the methods of [`Run`].
#[derive(Debug, Clone, Copy)]
struct Entry {
    path: Span,
    row: Option<Span>,
    data: Option<Span>,
}

/// Where something stands in a run's bytes.
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

    /// Whether no batch [waits](Self::wait).
    pub(super) fn is_empty(&self) -> bool {
        self.batches.is_empty()
    }

    /// Adds a later batch, and answers it as bytes.
    pub(super) fn add(&mut self, changes: &Changes) -> Result<&[u8], RowError> {
        self.begin_batch();
        let from = self.run.bytes.len();
        encode(changes, &mut self.run.bytes);
        self.index(from)?;
        Ok(&self.run.bytes[from..])
    }

    /// Adds a later batch that was read.
    pub(super) fn read(&mut self, batch: &[u8]) -> Result<(), RowError> {
        self.begin_batch();
        let from = self.run.bytes.len();
        self.run.bytes.extend_from_slice(batch);
        self.index(from)
    }

    /// The batch that was added last waits.
    pub(super) fn wait(&mut self, batch: Batch) {
        self.batches.push_back(batch);
    }

    pub(super) fn checkpoint(mut self) -> Checkpoint {
        self.end_run();
        Checkpoint::new(self.sorted, self.sessions, self.zxid, self.batches)
    }

    /// Sorts a run that is long enough: not behind the batch that made it so, whose clients wait for their answers.
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

    /// Notes the entries of the batch that begins there. Its rows are checked when they are read from their tables.
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
                NODE => entries.push(Entry { path: next("path")?, row: Some(next("row")?), data: None }),
                DELETED => entries.push(Entry { path: next("path")?, row: None, data: None }),
                // It stands behind its znode.
                DATA => {
                    let path = next("path")?;
                    let data = next("data")?;
                    let entry = entries[before..].last_mut();
                    let entry = entry.filter(|entry| bytes[entry.path.range()] == bytes[path.range()]);
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
    /// Leaves the last entry for each path, sorted by path, and nothing else.
    fn sort(&mut self) {
        let Self { bytes, entries } = self;
        let path = |entry: &Entry| &bytes[entry.path.range()];
        entries.sort_by(|one, other| path(one).cmp(path(other)));
        entries.dedup_by(|later, kept| {
            let same = path(later) == path(kept);
            if same {
                *kept = Entry { data: later.data.or(kept.data), ..*later };
            }
            same
        });
        entries.shrink_to_fit();
        // Only what they tell is kept, in their order: a checkpoint reads it once, from the beginning to the end.
        let lengths = entries.iter().map(|entry| entry.spans().map(|span| span.length).sum::<usize>());
        let mut kept = Vec::with_capacity(lengths.sum());
        for entry in entries {
            entry.path = entry.path.moved(bytes, &mut kept);
            entry.row = entry.row.map(|row| row.moved(bytes, &mut kept));
            entry.data = entry.data.map(|data| data.moved(bytes, &mut kept));
        }
        *bytes = kept;
    }

    /// For how many znodes there are entries.
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Bytes of this entry.
    pub(super) fn bytes_of(&self, entry: usize) -> usize {
        self.entries[entry].spans().map(|span| span.length).sum()
    }

    pub(super) fn path(&self, entry: usize) -> &[u8] {
        &self.bytes[self.entries[entry].path.range()]
    }

    /// `None` is a znode that was deleted.
    pub(super) fn row(&self, entry: usize) -> Option<&[u8]> {
        Some(&self.bytes[self.entries[entry].row?.range()])
    }

    /// The last data that was written to a row of its own. It counts only if the znode's row tells of it.
    pub(super) fn data(&self, entry: usize) -> Option<&[u8]> {
        Some(&self.bytes[self.entries[entry].data?.range()])
    }
}

impl Entry {
    fn spans(&self) -> impl Iterator<Item = Span> {
        [Some(self.path), self.row, self.data].into_iter().flatten()
    }
}

impl Span {
    /// Copies what stands here behind `to`.
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
            entries.add(&Changes { zxid: 7, rows }).expect("it was encoded");
        }
        entries.run.sort();
        entries.run
    }

    /// A row's data, as the row has it.
    fn data(row: Option<&[u8]>) -> RowData<'_> {
        row::decode_node(row.expect("it is there"), &mut row::AclPool::default()).expect("it was encoded").1
    }

    #[test]
    fn the_last_entry_for_a_row_wins_within_and_across_batches() {
        let first = || vec![put("/b", b"1"), put("/a", b"0"), put("/b", b"2")];
        let only = run([first()]);
        assert_eq!((only.len(), only.path(0), only.path(1)), (2, &b"/a"[..], &b"/b"[..]), "sorted");
        assert_eq!(data(only.row(1)), RowData::Inline(b"2"));
        let both = run([first(), vec![put("/b", b"3")]]);
        assert_eq!(data(both.row(1)), RowData::Inline(b"3"));
        assert_eq!(data(both.row(0)), RowData::Inline(b"0"));
    }

    #[test]
    fn long_data_is_kept_by_later_entries_that_do_not_have_it() {
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
    fn a_deleted_znode_is_gone_and_a_session_ends() {
        let session = SessionRow { timeout_ms: 4_000, password: vec![1; 16] };
        let rows = vec![
            put("/a", b"1"),
            Change::DeleteNode("/a".into()),
            Change::PutSession(7, session),
            Change::DeleteSession(7),
        ];
        let mut entries = Entries::none(usize::MAX);
        entries.add(&Changes { zxid: 7, rows }).expect("it was encoded");
        assert_eq!((entries.zxid, entries.sessions.get(&7)), (7, Some(&None)));
        entries.run.sort();
        assert_eq!((entries.run.len(), entries.run.row(0)), (1, None));
    }

    #[test]
    fn a_batch_that_cannot_be_read_is_an_error() {
        let whole = encoded(vec![put("/a", &[1; LARGE])]);
        let read = |batch: &[u8]| Entries::none(0).read(batch);
        assert_eq!(read(&whole), Ok(()));
        assert_eq!(read(&[]), Err(RowError::Short("version")));
        assert_eq!(read(&whole[..whole.len() - 1]), Err(RowError::Short("data")));
        assert_eq!(read(&[&whole[..], &[99]].concat()), Err(RowError::Change(99)));
        assert_eq!(read(&[9]), Err(RowError::Version(9)));
        let mut alone = encoded(Vec::new());
        alone.push(DATA);
        row::bytes(b"/a", &mut alone);
        row::bytes(b"x", &mut alone);
        assert_eq!(read(&alone), Err(RowError::Orphan));
        assert_eq!(read(&[&whole[..], &alone[2..]].concat()), Ok(()), "it stands behind its znode");
    }
}
