//! Batches that are not yet folded into the tables of the rows.
//!
//! A batch changes rows all over the tree. Written directly to the tables of the rows, each row costs its page and the
//! inner pages above it; written to a table of batches, it costs its length. So batches are first stored whole. Once
//! there are enough of them, the last entry of all of them for each row is written to the tables: a row that changed in
//! a hundred batches is written once. This is a [`Checkpoint`]. It is spread over later commits, in proportion to their
//! size; while no commit is waiting, it continues alone.
//!
//! ```text
//!  batch ──► the table of batches, and its entries ──► the entries since the last checkpoint began
//!                                                          │ enough bytes, or no waiting commit
//!                                                          ▼
//!            part of it in each commit ◄── checkpoint ──► its batches are removed when it ends
//! ```
//!
//! This is a log with a fuzzy checkpoint, in one file and its transactions. So there is no torn tail, and a batch is
//! either present or removed as a whole. The remaining requirement is that a checkpoint can be interrupted anywhere;
//! see [`checkpoint`](super::checkpoint). Waiting batches are folded when a store is opened and before its tables are
//! read, so no other module depends on them.

use std::ops::Range;

use redb::{Database, Durability};

use super::checkpoint::Checkpoint;
use super::entries::{Batch, ENTRY_BYTES, Entries};
use super::row::RowError;
use super::tables::{self, Fault, Writer};
use crate::store::Changes;

/// Size parameters of a store, in bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sizes {
    /// Size of the batches at which a checkpoint starts. It ends when half as much has been added.
    pub(super) fold: usize,
    /// Size of the batches whose entries are sorted together.
    pub(super) run: usize,
    /// A part of a checkpoint below this size waits for the next commit, because each part writes the inner pages of
    /// the tables.
    pub(super) stride: usize,
    /// Size of the part that is written in one transaction while no commit is waiting: a commit that arrives then waits
    /// for it.
    pub(super) tidy: usize,
    /// Size of a part of a batch, which is a row of the table.
    pub(super) part: usize,
}

impl Sizes {
    pub(super) const USUAL: Self = Self {
        // About 120,000 changed rows of 200 bytes. A start after a crash folds this and up to half as much again;
        // folding 16 MiB took about 200 ms.
        fold: 32 << 20,
        // About 4,000 rows, sorted in the processor's cache within milliseconds.
        run: 1 << 20,
        // About 1,000 rows.
        stride: 512 << 10,
        tidy: 2 << 20,
        // redb stores a long row in a power of two of pages; a part with its key and the page header fills them.
        part: (32 << 10) - 64,
    };
}

/// Cost of a batch in addition to its bytes and entries, so that many small batches count as well.
const BATCH_BYTES: usize = 64;
/// Bits of a row's key for the part; the bits above are the batch number.
const PART_BITS: u32 = 20;

/// The batches that are not folded yet.
#[derive(Debug)]
pub(super) struct UnfoldedBatches {
    sizes: Sizes,
    /// The number of the next batch.
    next: u64,
    /// Entries of the batches since the start of the last checkpoint.
    entries: Entries,
    /// Their bytes, in memory and in the file.
    bytes: usize,
    checkpoint: Option<Checkpoint>,
}

impl UnfoldedBatches {
    pub(super) fn none(sizes: Sizes) -> Self {
        Self { sizes, next: 0, entries: Entries::none(sizes.run), bytes: 0, checkpoint: None }
    }

    /// Writes a batch; returns when it is durable. After an error the store has failed and this value must not be used
    /// again.
    pub(super) fn commit(&mut self, database: &Database, changes: &Changes) -> Result<(), Fault> {
        // Checked before a batch and not after the one that exceeded the limit, whose clients wait for their replies.
        if self.bytes > self.sizes.fold {
            self.begin_checkpoint();
        }
        let batch = self.entries.add(changes).map_err(in_batch)?;
        let bytes = batch.len();
        self.bytes += bytes + changes.rows.len() * ENTRY_BYTES + BATCH_BYTES;
        let keys = keys(self.next, bytes.div_ceil(self.sizes.part));
        self.next += 1;
        transact(database, |writer| {
            for (key, part) in keys.clone().zip(batch.chunks(self.sizes.part)) {
                writer.wait(key, part)?;
            }
            let Some(checkpoint) = &mut self.checkpoint else { return Ok(()) };
            let owed = owed(checkpoint.all(), checkpoint.left(), self.bytes, self.sizes);
            checkpoint.run(owed, writer)
        })?;
        self.entries.wait(Batch { keys, bytes });
        self.end_checkpoint();
        Ok(())
    }

    /// Continues or starts a checkpoint if batches wait; returns whether some still wait.
    pub(super) fn tidy(&mut self, database: &Database) -> Result<bool, Fault> {
        self.begin_checkpoint();
        let Some(checkpoint) = &mut self.checkpoint else { return Ok(false) };
        transact(database, |writer| checkpoint.run(self.sizes.tidy, writer))?;
        self.end_checkpoint();
        Ok(self.checkpoint.is_some() || !self.entries.is_empty())
    }

    /// Folds all waiting batches.
    pub(super) fn fold(&mut self, database: &Database) -> Result<(), Fault> {
        let unfinished = self.checkpoint.take();
        self.begin_checkpoint();
        let mut both = [unfinished, self.checkpoint.take()].into_iter().flatten().peekable();
        if both.peek().is_none() {
            return Ok(());
        }
        transact(database, |writer| both.try_for_each(|mut checkpoint| checkpoint.run(usize::MAX, writer)))
    }

    /// Starts a checkpoint of all waiting batches, unless one is running.
    fn begin_checkpoint(&mut self) {
        if self.checkpoint.is_none() && !self.entries.is_empty() {
            let none = Entries::none(self.sizes.run);
            self.bytes = 0;
            self.checkpoint = Some(std::mem::replace(&mut self.entries, none).checkpoint());
        }
    }

    fn end_checkpoint(&mut self) {
        self.checkpoint.take_if(|checkpoint| checkpoint.left() == 0);
    }
}

/// Returns the part of a checkpoint that a commit must do when `bytes` have been added since its start.
fn owed(all: usize, left: usize, bytes: usize, sizes: Sizes) -> usize {
    let end = sizes.fold / 2;
    if bytes >= end {
        return left;
    }
    let due = (all as u128 * bytes as u128 / end as u128) as usize;
    let owed = due.saturating_sub(all - left);
    if owed < sizes.stride { 0 } else { owed }
}

/// Returns the keys of the parts of a batch.
fn keys(batch: u64, parts: usize) -> Range<u64> {
    let first = batch << PART_BITS;
    first..first + parts as u64
}

/// Runs a transaction that is durable on return.
fn transact(
    database: &Database,
    write: impl FnOnce(&mut Writer<'_>) -> Result<(), Fault>,
) -> Result<(), Fault> {
    let mut transaction = database.begin_write()?;
    transaction.set_durability(Durability::Immediate)?;
    let mut writer = Writer::open(&transaction)?;
    write(&mut writer)?;
    drop(writer);
    Ok(transaction.commit()?)
}

/// Folds the waiting batches of a file.
pub(super) fn fold(database: &Database, sizes: Sizes) -> Result<(), Fault> {
    let mut transaction = database.begin_write()?;
    transaction.set_durability(Durability::Immediate)?;
    let mut entries = Entries::none(sizes.run);
    let mut batch = Vec::new();
    let mut last = None;
    tables::take_all_waiting(&transaction, |key, part| {
        if key.trailing_zeros() >= PART_BITS {
            if last.is_some() {
                entries.read(&batch).map_err(in_batch)?;
                batch.clear();
            }
        } else if last != Some(key - 1) {
            // Batches are removed in the order of their numbers, as a whole.
            return Err(Fault::Row(format!("part {key:#x} of a waiting batch"), RowError::Missing));
        }
        batch.extend_from_slice(part);
        last = Some(key);
        Ok(())
    })?;
    if last.is_none() {
        return Ok(transaction.abort()?);
    }
    entries.read(&batch).map_err(in_batch)?;
    let mut writer = Writer::open(&transaction)?;
    entries.checkpoint().run(usize::MAX, &mut writer)?;
    drop(writer);
    Ok(transaction.commit()?)
}

fn in_batch(error: RowError) -> Fault {
    Fault::Row("a waiting batch".to_owned(), error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commit_pays_a_proportional_part_of_a_checkpoint_and_all_of_it_at_half_the_limit() {
        let sizes = Sizes { fold: 1 << 20, stride: 1_000, ..Sizes::USUAL };
        let owed = |left, bytes| owed(100_000, left, bytes, sizes);
        assert_eq!(owed(100_000, 0), 0);
        assert_eq!(owed(100_000, 5_000), 0, "953 bytes are below the stride");
        assert_eq!(owed(100_000, 1 << 17), 25_000);
        assert_eq!(owed(90_000, 1 << 17), 15_000, "a part is done");
        assert_eq!(owed(70_000, 1 << 17), 0, "more is done");
        assert_eq!(owed(90_000, 1 << 19), 90_000);
        assert_eq!(owed(90_000, usize::MAX), 90_000);
    }
}
