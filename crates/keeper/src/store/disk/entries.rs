//! Batches as bytes, and the last word of some of them on each row.
//!
//! ```text
//!  batch    version │ zxid │ change, …
//!  change   1 node │ path │ row      2 data of a row of its own, behind its znode │ path │ bytes
//!           3 deleted │ path         4 session │ id │ row         5 session ended │ id
//! ```
//!
//! Words are where they stand in their batches. They are sorted a [`Run`] at a time, while it is small enough for the
//! processor's cache and nobody waits long; a [`Sweep`](super::sweep) merges the runs.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

use super::row::{self, Input, ROW_VERSION, RowData, RowError};
use super::sweep::Sweep;
use crate::store::{Change, Changes};

const NODE: u8 = 1;
const DATA: u8 = 2;
const DELETED: u8 = 3;
const SESSION: u8 = 4;
const SESSION_ENDED: u8 = 5;

/// Sessions' rows; `None` has ended.
pub(super) type Sessions = BTreeMap<i64, Option<Vec<u8>>>;

/// What some batches say.
#[derive(Debug)]
pub(super) struct Words {
    /// Runs that are sorted, the oldest first.
    sorted: Vec<Run>,
    /// The run at hand.
    run: Run,
    /// Bytes of a run.
    run_bytes: usize,
    sessions: Sessions,
    zxid: i64,
    /// The keys under which the batches wait, the oldest first.
    keys: VecDeque<u64>,
}

/// Some batches, and their words on znodes.
#[derive(Debug, Default)]
pub(super) struct Run {
    bytes: Vec<u8>,
    words: Vec<Word>,
}

/// What is said of a znode: see the methods of [`Run`].
#[derive(Debug, Clone, Copy)]
struct Word {
    path: Span,
    row: Option<Span>,
    data: Option<Span>,
}

/// Where something stands in a run's bytes.
#[derive(Debug, Clone, Copy)]
struct Span {
    at: u32,
    length: u32,
}

impl Words {
    pub(super) fn none(run_bytes: usize) -> Self {
        let (sorted, run, sessions, keys) = (Vec::new(), Run::default(), Sessions::new(), VecDeque::new());
        Self { sorted, run, run_bytes, sessions, zxid: 0, keys }
    }

    /// Whether no batch is among them.
    pub(super) fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Adds a later batch, and answers it as bytes.
    pub(super) fn add(&mut self, changes: &Changes) -> Result<&[u8], RowError> {
        let from = self.run.bytes.len();
        encode(changes, &mut self.run.bytes);
        self.listen(from)?;
        Ok(&self.run.bytes[from..])
    }

    /// Adds a later batch that was read.
    pub(super) fn read(&mut self, batch: &[u8]) -> Result<(), RowError> {
        let from = self.run.bytes.len();
        self.run.bytes.extend_from_slice(batch);
        self.listen(from)?;
        self.end_run();
        Ok(())
    }

    /// The batch that was added last waits under these keys.
    pub(super) fn wait(&mut self, keys: impl Iterator<Item = u64>) {
        self.keys.extend(keys);
        self.end_run();
    }

    pub(super) fn sweep(mut self) -> Sweep {
        self.sort();
        Sweep::new(self.sorted, self.sessions, self.zxid, self.keys)
    }

    fn end_run(&mut self) {
        if self.run.bytes.len() >= self.run_bytes {
            self.sort();
        }
    }

    fn sort(&mut self) {
        let mut run = std::mem::take(&mut self.run);
        if !run.words.is_empty() {
            run.sort();
            self.sorted.push(run);
        }
    }

    /// Notes the words of the batch that begins there. Its rows are checked when they are read from their tables.
    fn listen(&mut self, from: usize) -> Result<(), RowError> {
        let Run { bytes, words } = &mut self.run;
        let (end, before) = (bytes.len(), words.len());
        let mut from = Input::versioned(&bytes[from..])?;
        self.zxid = from.number("zxid")?;
        while let Some(change) = from.byte() {
            let mut next = |field| {
                let length = from.bytes(field)?.len();
                Span::new(end - from.rest() - length, length)
            };
            match change {
                NODE => words.push(Word { path: next("path")?, row: Some(next("row")?), data: None }),
                DELETED => words.push(Word { path: next("path")?, row: None, data: None }),
                // It stands behind its znode.
                DATA => {
                    let path = next("path")?;
                    let data = next("data")?;
                    let word = words[before..].last_mut();
                    let word = word.filter(|word| bytes[word.path.range()] == bytes[path.range()]);
                    word.ok_or(RowError::Orphan)?.data = Some(data);
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
    /// Leaves the last word on each path, sorted by path, and nothing else.
    fn sort(&mut self) {
        let Self { bytes, words } = self;
        let path = |word: &Word| &bytes[word.path.range()];
        words.sort_by(|one, other| path(one).cmp(path(other)));
        words.dedup_by(|later, kept| {
            let same = path(later) == path(kept);
            if same {
                *kept = Word { data: later.data.or(kept.data), ..*later };
            }
            same
        });
        // Only that is kept, in its order: a sweep reads it once, from the beginning to the end.
        let mut kept = Vec::new();
        for word in words {
            word.path = word.path.moved(bytes, &mut kept);
            word.row = word.row.map(|row| row.moved(bytes, &mut kept));
            word.data = word.data.map(|data| data.moved(bytes, &mut kept));
        }
        kept.shrink_to_fit();
        *bytes = kept;
    }

    /// How many znodes there are words on.
    pub(super) fn len(&self) -> usize {
        self.words.len()
    }

    pub(super) fn path(&self, word: usize) -> &[u8] {
        &self.bytes[self.words[word].path.range()]
    }

    /// `None` is gone.
    pub(super) fn row(&self, word: usize) -> Option<&[u8]> {
        Some(&self.bytes[self.words[word].row?.range()])
    }

    /// Data of a row of its own, the last that was said. It counts only if the znode's row tells of it.
    pub(super) fn data(&self, word: usize) -> Option<&[u8]> {
        Some(&self.bytes[self.words[word].data?.range()])
    }
}

impl Span {
    fn new(at: usize, length: usize) -> Result<Self, RowError> {
        let number = |value| u32::try_from(value).map_err(|_| RowError::Range("batch"));
        Ok(Self { at: number(at)?, length: number(length)? })
    }

    /// Copies what stands here behind `to`, which is no longer than where this comes from.
    fn moved(self, from: &[u8], to: &mut Vec<u8>) -> Self {
        let at = to.len() as u32;
        to.extend_from_slice(&from[self.range()]);
        Self { at, ..self }
    }

    fn range(self) -> Range<usize> {
        let at = self.at as usize;
        at..at + self.length as usize
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
        let mut words = Words::none(usize::MAX);
        for rows in batches {
            words.add(&Changes { zxid: 7, rows }).expect("it was encoded");
        }
        words.run.sort();
        words.run
    }

    /// A row's data, as the row has it.
    fn data(row: Option<&[u8]>) -> RowData<'_> {
        row::decode_node(row.expect("it is there"), &mut row::AclPool::default()).expect("it was encoded").1
    }

    #[test]
    fn the_last_word_on_a_row_wins_within_and_across_batches() {
        let first = || vec![put("/b", b"1"), put("/a", b"0"), put("/b", b"2")];
        let only = run([first()]);
        assert_eq!((only.len(), only.path(0), only.path(1)), (2, &b"/a"[..], &b"/b"[..]), "sorted");
        assert_eq!(data(only.row(1)), RowData::Inline(b"2"));
        let both = run([first(), vec![put("/b", b"3")]]);
        assert_eq!(data(both.row(1)), RowData::Inline(b"3"));
        assert_eq!(data(both.row(0)), RowData::Inline(b"0"));
    }

    #[test]
    fn long_data_is_a_word_of_its_own_that_later_words_on_the_row_leave() {
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
        let mut words = Words::none(usize::MAX);
        words.add(&Changes { zxid: 7, rows }).expect("it was encoded");
        assert_eq!((words.zxid, words.sessions.get(&7)), (7, Some(&None)));
        words.run.sort();
        assert_eq!((words.run.len(), words.run.row(0)), (1, None));
    }

    #[test]
    fn a_batch_that_cannot_be_read_is_an_error() {
        let whole = encoded(vec![put("/a", &[1; LARGE])]);
        let read = |batch: &[u8]| Words::none(0).read(batch);
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
