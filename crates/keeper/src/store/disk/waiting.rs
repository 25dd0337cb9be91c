//! Batches that wait to be folded into the rows' own tables.
//!
//! A batch changes rows all over the tree. Written to the rows' tables at once, each row costs its page and the pages
//! above it; written to a table of batches, it costs what it is long. So batches are kept whole until they are many. Then
//! the last word of all of them on each row is taken to the tables: a row that changed in a hundred batches is written
//! once. That is a [`Sweep`], and it is spread over the commits that come meanwhile, so that none of them takes much longer
//! than without; when nobody waits for a commit, it goes on by itself.
//!
//! ```text
//!  batch ──► the table of batches, and its words ──► the words since the last sweep began
//!                                                        │ FOLD_BYTES of them, or nobody waits
//!                                                        ▼
//!            a share of its rows in each commit ◄── sweep ──► at its end, its batches are removed
//! ```
//!
//! This is no log beside the tables: it is a table of the same file, written by the same transactions. There is
//! nothing to truncate, no torn tail, and no moment in which one has what the other lacks. The tables are folded when
//! a store is opened and before they are read, so nobody but this module knows that batches wait.

use redb::{Database, Durability};

use super::row::RowError;
use super::sweep::Sweep;
use super::tables::{self, Fault, Writer};
use super::words::Words;
use crate::store::Changes;

/// Bytes of batches after which a sweep begins: some 200,000 changed rows. It has ended before as many came again, so twice
/// as many may wait, in memory, too. The start after a crash folds them: 16 MiB took some 200 ms.
pub(super) const FOLD_BYTES: usize = 32 << 20;
/// Runs of a sweep: each is sorted at once, a MiB of `FOLD_BYTES` within some milliseconds.
const RUNS: usize = 32;
/// Steps of a sweep that are taken in one go: with fewer, each go would write the inner pages of the tables for little.
const STRIDE: usize = 1_000;
/// Goes of a short sweep, at least: what can go wrong between two goes, tests see on short ones.
const GOES: usize = 32;
/// Steps that are taken when nobody waits: whoever comes then waits for them.
const TIDY_STRIDE: usize = 4 * STRIDE;
/// What a batch costs beside its bytes, so that many small ones count, too.
const BATCH_COST: usize = 64;
/// A batch is cut into rows of this length: the database gives a long row a power of two of pages, which this fills, with
/// its key and the page's header.
const PART_BYTES: usize = (32 << 10) - 64;
/// A row's key: the batch's number, and the part's below it.
const PART_BITS: u32 = 20;

/// What waits.
#[derive(Debug)]
pub(super) struct Waiting {
    /// The number of the next batch.
    next: u64,
    /// Of the batches since the last sweep began.
    words: Words,
    /// Their cost.
    bytes: usize,
    sweep: Option<Sweep>,
    fold_bytes: usize,
}

impl Waiting {
    pub(super) fn none(fold_bytes: usize) -> Self {
        Self { next: 0, words: Words::none(fold_bytes / RUNS), bytes: 0, sweep: None, fold_bytes }
    }

    /// Writes a batch, and returns when it is durable. If it does not become that, the store has failed, and this is not
    /// used again.
    pub(super) fn commit(&mut self, database: &Database, changes: &Changes) -> Result<(), Fault> {
        let batch = self.words.add(changes).map_err(in_batch)?;
        self.bytes += batch.len() + BATCH_COST;
        let first = self.next << PART_BITS;
        self.next += 1;
        let parts = (first..).zip(batch.chunks(PART_BYTES));
        let last = first + batch.len().div_ceil(PART_BYTES) as u64;
        transact(database, |writer| {
            for (key, part) in parts {
                writer.wait(key, part)?;
            }
            match &mut self.sweep {
                Some(sweep) => sweep.run(owed(sweep, self.bytes, self.fold_bytes), writer),
                None => Ok(()),
            }
        })?;
        self.words.wait(first..last);
        self.end_sweep();
        if self.bytes > self.fold_bytes {
            self.begin_sweep();
        }
        Ok(())
    }

    /// Goes on with the sweep, or begins one, if anything waits; answers whether something still does.
    pub(super) fn tidy(&mut self, database: &Database) -> Result<bool, Fault> {
        self.begin_sweep();
        let Some(sweep) = &mut self.sweep else { return Ok(false) };
        transact(database, |writer| sweep.run(TIDY_STRIDE, writer))?;
        self.end_sweep();
        Ok(self.sweep.is_some() || !self.words.is_empty())
    }

    /// Leaves nothing waiting.
    pub(super) fn fold(&mut self, database: &Database) -> Result<(), Fault> {
        let unfinished = self.sweep.take();
        self.begin_sweep();
        let mut sweeps = [unfinished, self.sweep.take()].into_iter().flatten().peekable();
        if sweeps.peek().is_none() {
            return Ok(());
        }
        transact(database, |writer| sweeps.try_for_each(|mut sweep| sweep.run(usize::MAX, writer)))
    }

    /// Begins a sweep of all that waits, if there is none.
    fn begin_sweep(&mut self) {
        if self.sweep.is_none() && !self.words.is_empty() {
            let none = Words::none(self.fold_bytes / RUNS);
            self.bytes = 0;
            self.sweep = Some(std::mem::replace(&mut self.words, none).sweep());
        }
    }

    fn end_sweep(&mut self) {
        self.sweep.take_if(|sweep| sweep.left() == 0);
    }
}

/// How many steps of a sweep a commit has to take, when so many bytes of batches have come since it began: it has ended
/// with half of `fold_bytes`, so that a long batch does not find it unfinished.
fn owed(sweep: &Sweep, bytes: usize, fold_bytes: usize) -> usize {
    let (all, left, end) = (sweep.all(), sweep.left(), fold_bytes / 2);
    if bytes >= end {
        return left;
    }
    let due = (all as u128 * bytes as u128 / end as u128) as usize;
    let owed = due.saturating_sub(all - left);
    if owed < (all / GOES).min(STRIDE) { 0 } else { owed }
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
pub(super) fn fold(database: &Database) -> Result<(), Fault> {
    let mut transaction = database.begin_write()?;
    transaction.set_durability(Durability::Immediate)?;
    let parts = tables::take_all_waiting(&transaction)?;
    if parts.is_empty() {
        return Ok(transaction.abort()?);
    }
    let mut words = Words::none(FOLD_BYTES / RUNS);
    for batch in whole(parts) {
        words.read(&batch).map_err(in_batch)?;
    }
    let mut writer = Writer::open(&transaction)?;
    words.sweep().run(usize::MAX, &mut writer)?;
    drop(writer);
    Ok(transaction.commit()?)
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

fn in_batch(error: RowError) -> Fault {
    Fault::Row("a waiting batch".to_owned(), error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Change;

    fn sweep_of(rows: usize) -> Sweep {
        let mut words = Words::none(usize::MAX);
        let rows = (0..rows).map(|n| Change::DeleteNode(format!("/{n}").into())).collect::<Vec<Change>>();
        words.add(&Changes { zxid: 1, rows }).expect("it was encoded");
        words.sweep()
    }

    #[test]
    fn a_commit_owes_as_much_of_a_sweep_as_it_brings_and_all_when_half_has_come() {
        let sweep = sweep_of(100_000);
        assert_eq!(owed(&sweep, 0, 1 << 20), 0);
        assert_eq!(owed(&sweep, 5_000, 1 << 20), 0, "953 are not worth it");
        assert_eq!(owed(&sweep, 1 << 17, 1 << 20), 25_000);
        assert_eq!(owed(&sweep, 1 << 19, 1 << 20), 100_000);
        assert_eq!(owed(&sweep, usize::MAX, 1 << 20), 100_000);
        assert_eq!(owed(&sweep, 1, 0), 100_000);
    }

    #[test]
    fn a_short_sweep_goes_in_many_goes() {
        assert_eq!(owed(&sweep_of(320), 10_000, 1 << 20), 0);
        assert_eq!(owed(&sweep_of(320), 17_000, 1 << 20), 10);
        assert_eq!(owed(&sweep_of(3), 300_000, 1 << 20), 1);
    }
}
