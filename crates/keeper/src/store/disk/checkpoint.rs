//! Moves the entries of waiting batches into the tables of the rows.
//!
//! A checkpoint writes the last entry of many batches for each row to the tables. It works in parts, in the order of
//! the keys: znodes of one time share pages, so a page with many entries is written once or twice. After the last entry the
//! batches are removed, oldest first, each as a whole.
//!
//! A crash in between is safe, although the tables then match no single transaction: they can contain newer rows than
//! the oldest waiting batches. Every newer batch is also still waiting, because a batch is only removed when the
//! entries of all earlier batches are in the tables. An entry is a complete row or a deletion. All waiting batches are
//! folded into the tables, in order, before the tables are read. So the last entry for each row wins again.

use std::cmp::Ordering;
use std::collections::binary_heap::PeekMut;
use std::collections::{BinaryHeap, VecDeque};

use super::entries::{Batch, Run, Sessions};
use super::row;
use super::tables::{Fault, Writer};

/// Cost of writing or removing a row, as the number of bytes of long rows that take the same time.
const ROW_COST: usize = 256;

#[derive(Debug)]
pub(super) struct Checkpoint {
    runs: BinaryHeap<Cursor>,
    sessions: Sessions,
    zxid: i64,
    batches: VecDeque<Batch>,
    all: usize,
    left: usize,
}

/// A run that is not at its end, and its next entry. The greatest cursor has the first key and, among equal keys, the
/// newest run.
#[derive(Debug)]
struct Cursor {
    run: Run,
    entry: usize,
    /// The position among the runs; the oldest is 0.
    age: usize,
}

impl Checkpoint {
    /// Creates a checkpoint of sorted runs and their batches, oldest first.
    pub(super) fn new(runs: Vec<Run>, sessions: Sessions, zxid: i64, batches: VecDeque<Batch>) -> Self {
        let cursors = (0..).zip(runs).filter(|(_, run)| run.len() > 0);
        let runs = cursors.map(|(age, run)| Cursor { run, entry: 0, age }).collect::<BinaryHeap<_>>();
        let entries = runs
            .iter()
            .map(|cursor| (0..cursor.run.len()).map(|entry| cost(&cursor.run, entry)).sum::<usize>());
        let all =
            entries.sum::<usize>() + sessions.len() * ROW_COST + batches.iter().map(removal).sum::<usize>();
        Self { runs, sessions, zxid, batches, all, left: all }
    }

    /// Returns the total cost.
    pub(super) fn all(&self) -> usize {
        self.all
    }

    /// Returns the remaining cost.
    pub(super) fn left(&self) -> usize {
        self.left
    }

    /// Does work of at least `budget`, exceeding it by at most one row, or all of the remaining work.
    pub(super) fn run(&mut self, budget: usize, writer: &mut Writer<'_>) -> Result<(), Fault> {
        let end = self.left.saturating_sub(budget);
        while self.left > end {
            if let Some(newest) = self.runs.pop() {
                self.write(newest, writer)?;
            } else if let Some((id, row)) = self.sessions.pop_first() {
                writer.put_or_remove_session(id, row.as_deref())?;
                self.left -= ROW_COST;
            } else if let Some(batch) = self.batches.pop_front() {
                self.left -= removal(&batch);
                writer.remove_waiting(batch.keys)?;
            } else {
                self.left = 0;
            }
        }
        match self.left {
            0 => Ok(writer.zxid(self.zxid)?),
            _ => Ok(()),
        }
    }

    /// Writes the newest entry for a znode and skips the older ones.
    fn write(&mut self, mut newest: Cursor, writer: &mut Writer<'_>) -> Result<(), Fault> {
        self.left -= newest.cost();
        let wants_data =
            newest.data().is_none() && newest.row().is_some_and(|row| row::is_apart(row) == Ok(true));
        let mut data = None;
        while let Some(mut older) = self.runs.peek_mut()
            && older.key() == newest.key()
        {
            if wants_data && data.is_none() {
                data = older.data().map(<[u8]>::to_vec);
            }
            self.left -= older.cost();
            if older.pass().is_none() {
                PeekMut::pop(older);
            }
        }
        writer.put_or_remove(newest.key(), newest.row(), newest.data().or(data.as_deref()))?;
        if newest.pass().is_some() {
            self.runs.push(newest);
        }
        Ok(())
    }
}

fn cost(run: &Run, entry: usize) -> usize {
    ROW_COST + run.bytes_of(entry)
}

/// A part is a row. It is read before it is removed, which costs a fraction of a write.
fn removal(batch: &Batch) -> usize {
    batch.keys.clone().count() * ROW_COST + batch.bytes / 8
}

impl Cursor {
    fn key(&self) -> &[u8] {
        self.run.key(self.entry)
    }

    fn row(&self) -> Option<&[u8]> {
        self.run.row(self.entry)
    }

    fn data(&self) -> Option<&[u8]> {
        self.run.data(self.entry)
    }

    fn cost(&self) -> usize {
        cost(&self.run, self.entry)
    }

    /// Moves to the next entry; `None` at the end.
    fn pass(&mut self) -> Option<()> {
        self.entry += 1;
        (self.entry < self.run.len()).then_some(())
    }
}

impl Ord for Cursor {
    fn cmp(&self, other: &Self) -> Ordering {
        other.key().cmp(self.key()).then(self.age.cmp(&other.age))
    }
}

impl PartialOrd for Cursor {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Cursor {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Cursor {}
