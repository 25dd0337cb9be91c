//! Between a handler and its worker: what it says of its attempt, and until when its lease runs.
//!
//! The handler writes into a cell and, if the cell was empty, sends word; the worker empties it when the word arrives. So
//! a handler that says much fills no mailbox: one word is under way, and the newest is what counts.

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bellwether_core::job::{Progress, ProgressError};
use bellwether_core::name::JobId;
use tokio::sync::mpsc::UnboundedSender;

/// Which attempt has something to say.
pub(in crate::worker) type Word = (JobId, u32);

pub(in crate::worker) struct Pulse {
    of: Word,
    /// Nobody listens to an attempt of no worker.
    to: Option<UnboundedSender<Word>>,
    cell: Mutex<Cell>,
}

struct Cell {
    until: Instant,
    progress: Progress,
    said: Said,
}

/// What was said since it was last asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::worker) struct Said {
    pub(in crate::worker) renew: Option<Duration>,
    pub(in crate::worker) progress: Option<Progress>,
}

impl Said {
    fn is_nothing(&self) -> bool {
        self.renew.is_none() && self.progress.is_none()
    }
}

impl Pulse {
    /// Of an attempt that begins with the progress of the one before.
    pub(in crate::worker) fn new(
        of: Word,
        to: Option<UnboundedSender<Word>>,
        until: Instant,
        progress: Progress,
    ) -> Self {
        Self { of, to, cell: Mutex::new(Cell { until, progress, said: Said::default() }) }
    }

    /// Nothing that is done with it can panic half-way.
    fn cell(&self) -> MutexGuard<'_, Cell> {
        self.cell.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn until(&self) -> Instant {
        self.cell().until
    }

    pub(in crate::worker) fn set_until(&self, until: Instant) {
        self.cell().until = until;
    }

    pub(in crate::worker) fn renew(&self, lease: Duration) {
        self.say(|cell| cell.said.renew = cell.said.renew.max(Some(lease)));
    }

    pub(super) fn progress(
        &self,
        change: impl FnOnce(Progress) -> Result<Progress, ProgressError>,
    ) -> Result<(), ProgressError> {
        self.say(|cell| {
            cell.progress = change(cell.progress.clone())?;
            cell.said.progress = Some(cell.progress.clone());
            Ok(())
        })
    }

    /// What it said last, written or not.
    pub(super) fn said_last(&self) -> Progress {
        self.cell().progress.clone()
    }

    fn say<T>(&self, say: impl FnOnce(&mut Cell) -> T) -> T {
        let (said, first) = {
            let mut cell = self.cell();
            let silent = cell.said.is_nothing();
            let said = say(&mut cell);
            (said, silent && !cell.said.is_nothing())
        };
        if let (true, Some(to)) = (first, &self.to)
            && to.send(self.of.clone()).is_err()
        {
            tracing::trace!(job = %self.of.0, "said after its worker's end");
        }
        said
    }

    /// Empties the cell.
    pub(in crate::worker) fn take(&self) -> Said {
        std::mem::take(&mut self.cell().said)
    }
}

impl fmt::Debug for Pulse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pulse").field("of", &self.of).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::mpsc::unbounded_channel;

    use super::*;

    #[test]
    fn a_handler_that_says_much_sends_one_word_and_its_newest_counts() {
        let (to, mut words) = unbounded_channel();
        let of = (JobId::new("a").unwrap(), 1);
        let pulse = Pulse::new(of.clone(), Some(to), Instant::now(), Progress::default());
        for percent in 0..=100 {
            pulse.progress(|progress| progress.with_message(Some(percent), "on it")).unwrap();
        }
        pulse.renew(Duration::from_secs(9));
        pulse.renew(Duration::from_secs(1));
        assert_eq!(words.try_recv(), Ok(of.clone()));
        assert!(words.try_recv().is_err());
        let said = pulse.take();
        assert_eq!((said.renew, said.progress.unwrap().percent()), (Some(Duration::from_secs(9)), Some(100)));
        assert_eq!(pulse.take(), Said::default());
        pulse.renew(Duration::from_secs(1));
        assert_eq!(words.try_recv(), Ok(of), "after it was heard there is a word again");
    }

    #[test]
    fn what_is_out_of_its_bounds_is_not_said() {
        let pulse = Pulse::new((JobId::new("a").unwrap(), 1), None, Instant::now(), Progress::default());
        pulse.progress(|progress| progress.with_message(Some(101), "")).unwrap_err();
        assert_eq!(pulse.take(), Said::default());
    }
}
