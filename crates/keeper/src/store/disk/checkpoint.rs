//! The way of words into the rows' tables.
//!
//! A sweep takes the last words of many batches to the tables, a few rows at a time, in the order of their paths: siblings
//! share pages, so a page that many words are for is written once or twice. When all are there, the batches that said
//! them are removed, the oldest first.
//!
//! A crash in between does no harm. The tables may have newer words than the oldest batches that still wait; but whatever
//! is newer waits, too, and all that waits is swept, in order, before the tables are read.

use std::cmp::Ordering;
use std::collections::binary_heap::PeekMut;
use std::collections::{BinaryHeap, VecDeque};

use super::tables::{Fault, Writer};
use super::words::{Run, Sessions};

#[derive(Debug)]
pub(super) struct Sweep {
    runs: BinaryHeap<Cursor>,
    sessions: Sessions,
    zxid: i64,
    /// Those under which the batches wait.
    keys: VecDeque<u64>,
    all: usize,
    left: usize,
}

/// A run, and its next word: there is one. The greatest has the first path, and is the newest of those that have it.
#[derive(Debug)]
struct Cursor {
    run: Run,
    word: usize,
    /// Its place among the runs, the oldest 0.
    age: usize,
}

impl Sweep {
    /// Of sorted runs, the oldest first.
    pub(super) fn new(runs: Vec<Run>, sessions: Sessions, zxid: i64, keys: VecDeque<u64>) -> Self {
        let left = runs.iter().map(Run::len).sum::<usize>() + sessions.len() + keys.len();
        let cursors = (0..).zip(runs).filter(|(_, run)| run.len() > 0);
        let runs = cursors.map(|(age, run)| Cursor { run, word: 0, age }).collect();
        Self { runs, sessions, zxid, keys, all: left, left }
    }

    /// How many steps it had at first.
    pub(super) fn all(&self) -> usize {
        self.all
    }

    /// How many are left.
    pub(super) fn left(&self) -> usize {
        self.left
    }

    /// Goes so many steps, or what one row takes more, or what is left.
    pub(super) fn run(&mut self, steps: usize, writer: &mut Writer<'_>) -> Result<(), Fault> {
        let end = self.left.saturating_sub(steps);
        while self.left > end {
            if let Some(newest) = self.runs.pop() {
                self.say(newest, writer)?;
            } else if let Some((id, row)) = self.sessions.pop_first() {
                writer.say_of_session(id, row.as_deref())?;
                self.left -= 1;
            } else if let Some(key) = self.keys.pop_front() {
                writer.forget_waiting(key)?;
                self.left -= 1;
            }
        }
        match self.left {
            0 => Ok(writer.zxid(self.zxid)?),
            _ => Ok(()),
        }
    }

    /// Writes the newest word on a znode, and passes over the others.
    fn say(&mut self, mut newest: Cursor, writer: &mut Writer<'_>) -> Result<(), Fault> {
        self.left -= 1;
        let mut data = None;
        while let Some(mut older) = self.runs.peek_mut()
            && older.path() == newest.path()
        {
            if newest.data().is_none() && data.is_none() {
                data = older.data().map(<[u8]>::to_vec);
            }
            self.left -= 1;
            if older.pass().is_none() {
                PeekMut::pop(older);
            }
        }
        writer.say(newest.path(), newest.row(), newest.data().or(data.as_deref()))?;
        if newest.pass().is_some() {
            self.runs.push(newest);
        }
        Ok(())
    }
}

impl Cursor {
    fn path(&self) -> &[u8] {
        self.run.path(self.word)
    }

    fn row(&self) -> Option<&[u8]> {
        self.run.row(self.word)
    }

    fn data(&self) -> Option<&[u8]> {
        self.run.data(self.word)
    }

    /// Goes to the next word; `None` is the end.
    fn pass(&mut self) -> Option<()> {
        self.word += 1;
        (self.word < self.run.len()).then_some(())
    }
}

impl Ord for Cursor {
    fn cmp(&self, other: &Self) -> Ordering {
        other.path().cmp(self.path()).then(self.age.cmp(&other.age))
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
