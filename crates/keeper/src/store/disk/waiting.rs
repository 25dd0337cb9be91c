//! Batches that wait to be folded into the rows' own tables.
//!
//! A batch changes rows all over the tree. Written to the rows' tables at once, each row costs its page and the pages
//! above it; written to a table of batches, it costs what it is long. So batches are kept whole until they are many. Then
//! the last entry of all of them for each row is taken to the tables: a row that changed in a hundred batches is written
//! once. That is a [`Checkpoint`]. It is spread over the commits that come meanwhile, in proportion to what they bring;
//! when nobody waits for a commit, it goes on by itself.
//!
//! ```text
//!  batch ──► the table of batches, and its entries ──► the entries since the last checkpoint began
//!                                                          │ enough of them, or nobody waits
//!                                                          ▼
//!               a share in each commit ◄── checkpoint ──► at its end, its batches are removed
//! ```
//!
//! This is a log, and a checkpoint that is fuzzy while it is under way, in one file and by its transactions. So there is no
//! torn tail, and a batch is there or removed, whole; what is left to get right is that a checkpoint can be cut anywhere,
//! which [`checkpoint`](super::checkpoint) tells. The tables are folded when a store is opened and before they are read, so
//! nobody but this module knows that batches wait.

use std::ops::Range;

use redb::{Database, Durability};

use super::checkpoint::Checkpoint;
use super::entries::{Batch, ENTRY_BYTES, Entries};
use super::row::RowError;
use super::tables::{self, Fault, Writer};
use crate::store::Changes;

/// A store's measures, in bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sizes {
    /// Batches after which a checkpoint begins. It has ended when half as much came again.
    pub(super) fold: usize,
    /// Batches whose entries are sorted at once.
    pub(super) run: usize,
    /// What of a checkpoint is not worth a go, since each writes the inner pages of the tables: it waits for the next commit.
    pub(super) stride: usize,
    /// What of a checkpoint is done in one go when nobody waits: whoever comes then waits for it.
    pub(super) tidy: usize,
    /// A part of a batch, which is a row.
    pub(super) part: usize,
}

impl Sizes {
    pub(super) const USUAL: Self = Self {
        // Some 120,000 changed rows of 200 bytes. The start after a crash folds half as many more: 16 MiB took some 200 ms.
        fold: 32 << 20,
        // Some 4,000, sorted in the processor's cache within milliseconds.
        run: 1 << 20,
        // Some 1,000 rows.
        stride: 512 << 10,
        tidy: 2 << 20,
        // The database gives a long row a power of two of pages, which this fills, with its key and the page's header.
        part: (32 << 10) - 64,
    };
}

/// What a batch costs beside its bytes and its entries, so that many small ones count, too.
const BATCH_BYTES: usize = 64;
/// A row's key: the batch's number, and the part's below it.
const PART_BITS: u32 = 20;

/// What waits.
#[derive(Debug)]
pub(super) struct UnfoldedBatches {
    sizes: Sizes,
    /// The number of the next batch.
    next: u64,
    /// Of the batches since the last checkpoint began.
    entries: Entries,
    /// Their bytes, here and in the file.
    bytes: usize,
    checkpoint: Option<Checkpoint>,
}

impl UnfoldedBatches {
    pub(super) fn none(sizes: Sizes) -> Self {
        Self { sizes, next: 0, entries: Entries::none(sizes.run), bytes: 0, checkpoint: None }
    }

    /// Writes a batch, and returns when it is durable. If it does not become that, the store has failed, and this is not
    /// used again.
    pub(super) fn commit(&mut self, database: &Database, changes: &Changes) -> Result<(), Fault> {
        // Not behind the batch that made them too many, whose clients wait for their answers.
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

    /// Goes on with the checkpoint, or begins one, if anything waits; answers whether something still does.
    pub(super) fn tidy(&mut self, database: &Database) -> Result<bool, Fault> {
        self.begin_checkpoint();
        let Some(checkpoint) = &mut self.checkpoint else { return Ok(false) };
        transact(database, |writer| checkpoint.run(self.sizes.tidy, writer))?;
        self.end_checkpoint();
        Ok(self.checkpoint.is_some() || !self.entries.is_empty())
    }

    /// Leaves nothing waiting.
    pub(super) fn fold(&mut self, database: &Database) -> Result<(), Fault> {
        let unfinished = self.checkpoint.take();
        self.begin_checkpoint();
        let mut both = [unfinished, self.checkpoint.take()].into_iter().flatten().peekable();
        if both.peek().is_none() {
            return Ok(());
        }
        transact(database, |writer| both.try_for_each(|mut checkpoint| checkpoint.run(usize::MAX, writer)))
    }

    /// Begins a checkpoint of all that waits, if there is none.
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

/// What of a checkpoint a commit has to do, when so many bytes have come since it began.
fn owed(all: usize, left: usize, bytes: usize, sizes: Sizes) -> usize {
    let end = sizes.fold / 2;
    if bytes >= end {
        return left;
    }
    let due = (all as u128 * bytes as u128 / end as u128) as usize;
    let owed = due.saturating_sub(all - left);
    if owed < sizes.stride { 0 } else { owed }
}

/// Of the parts of a batch.
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

/// Folds what waits in a file.
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
            // Batches are removed as they were written, whole.
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
    fn a_commit_owes_as_much_of_a_checkpoint_as_it_brings_and_all_when_half_has_come() {
        let sizes = Sizes { fold: 1 << 20, stride: 1_000, ..Sizes::USUAL };
        let owed = |left, bytes| owed(100_000, left, bytes, sizes);
        assert_eq!(owed(100_000, 0), 0);
        assert_eq!(owed(100_000, 5_000), 0, "953 are not worth a go");
        assert_eq!(owed(100_000, 1 << 17), 25_000);
        assert_eq!(owed(90_000, 1 << 17), 15_000, "some is done");
        assert_eq!(owed(70_000, 1 << 17), 0, "more is done");
        assert_eq!(owed(90_000, 1 << 19), 90_000);
        assert_eq!(owed(90_000, usize::MAX), 90_000);
    }
}
