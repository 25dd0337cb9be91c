//! The cell between a handler and its worker: what the handler says about its attempt, and until when the lease runs.
//!
//! The handler writes into the cell and, if the cell was empty, notifies the worker, which empties the cell when the
//! notification arrives. So a handler that reports often fills no mailbox: one notification is under way, and the newest
//! report counts.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bellwether_core::job::{Progress, ProgressError};
use bellwether_core::name::JobId;
use bellwether_core::time::Millis;

/// An attempt: its job and its number.
pub type Word = (JobId, u32);

/// Tells the worker that the cell of an attempt is not empty.
pub type Notify = Arc<dyn Fn(Word) + Send + Sync>;

/// The cell of one attempt.
pub struct Pulse {
    of: Word,
    /// `None` for an attempt without a worker.
    notify: Option<Notify>,
    cell: Mutex<Cell>,
}

struct Cell {
    until: Millis,
    progress: Progress,
    said: Said,
}

/// What a handler said since the cell was last emptied.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Said {
    /// It asked for a lease of this length.
    pub renew: Option<Duration>,
    /// It reported this progress.
    pub progress: Option<Progress>,
}

impl Said {
    fn is_nothing(&self) -> bool {
        self.renew.is_none() && self.progress.is_none()
    }
}

impl Pulse {
    /// The cell of an attempt that begins with the progress of the one before.
    #[must_use]
    pub fn new(of: Word, notify: Option<Notify>, until: Millis, progress: Progress) -> Self {
        Self { of, notify, cell: Mutex::new(Cell { until, progress, said: Said::default() }) }
    }

    /// A holder of the lock cannot panic between two changes.
    fn cell(&self) -> MutexGuard<'_, Cell> {
        self.cell.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Until when the attempt's lease runs.
    #[must_use]
    pub fn until(&self) -> Millis {
        self.cell().until
    }

    /// The lease was renewed.
    pub fn set_until(&self, until: Millis) {
        self.cell().until = until;
    }

    /// The handler asks for a lease of this length from now on.
    pub fn renew(&self, lease: Duration) {
        self.say(|cell| cell.said.renew = cell.said.renew.max(Some(lease)));
    }

    /// The handler reports its progress.
    ///
    /// # Errors
    /// What `change` refuses. Nothing is reported then.
    pub fn progress(
        &self,
        change: impl FnOnce(Progress) -> Result<Progress, ProgressError>,
    ) -> Result<(), ProgressError> {
        self.say(|cell| {
            cell.progress = change(cell.progress.clone())?;
            cell.said.progress = Some(cell.progress.clone());
            Ok(())
        })
    }

    /// The newest progress, whether it is written or not.
    #[must_use]
    pub fn said_last(&self) -> Progress {
        self.cell().progress.clone()
    }

    fn say<T>(&self, say: impl FnOnce(&mut Cell) -> T) -> T {
        let (said, first) = {
            let mut cell = self.cell();
            let silent = cell.said.is_nothing();
            let said = say(&mut cell);
            (said, silent && !cell.said.is_nothing())
        };
        if let (true, Some(notify)) = (first, &self.notify) {
            notify(self.of.clone());
        }
        said
    }

    /// Empties the cell.
    #[must_use]
    pub fn take(&self) -> Said {
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
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn a_handler_that_reports_often_notifies_once_and_its_newest_report_counts() {
        let (to, words) = mpsc::channel();
        let of = (JobId::new("a").unwrap(), 1);
        let notify: Notify = Arc::new(move |word| to.send(word).unwrap());
        let pulse = Pulse::new(of.clone(), Some(notify), Millis(0), Progress::default());
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
        assert_eq!(words.try_recv(), Ok(of), "the cell was emptied: it notifies again");
    }

    #[test]
    fn a_report_beyond_its_bounds_is_refused_and_nothing_is_said() {
        let pulse = Pulse::new((JobId::new("a").unwrap(), 1), None, Millis(0), Progress::default());
        pulse.progress(|progress| progress.with_message(Some(101), "")).unwrap_err();
        assert_eq!(pulse.take(), Said::default());
    }
}
