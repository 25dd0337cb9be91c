//! The cell between a handler and its worker: the handler's reports about its attempt, and the end of the lease.
//!
//! The handler writes into the cell and notifies the worker if the cell was empty. The worker empties the cell when the
//! notification arrives. So a handler that reports often does not fill the mailbox: at most one notification is in
//! flight, and only the newest report counts.
//!
//! A handler may wait until a renewal is written. Its request gets a ticket, and the worker confirms the highest ticket
//! that is written. The handler stops waiting when its attempt is told to stop or its lease ends, so no waker outlives the
//! attempt.
//!
//! The worker also writes how the attempt was closed. Its half of the cell is [`Attended`]: if it is dropped before, for
//! example because the session ended, the outcome is [`Closed::Unknown`]. So a wait for the close always ends.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{self, Poll, Waker};
use std::time::Duration;

use bellwether_core::job::{Progress, ProgressError};
use bellwether_core::machine::worker::executor_pool::Stop;
use bellwether_core::name::JobId;
use bellwether_core::time::Millis;

/// The id of an attempt: its job and its number.
pub type Word = (JobId, u32);

/// Notifies the worker that the cell of an attempt is not empty.
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
    /// The last ticket that was given out.
    ticket: u64,
    /// The highest ticket whose renewal is written.
    confirmed: u64,
    /// Why the attempt was asked to stop.
    stop: Option<Stop>,
    /// How the attempt was closed, once the worker knows.
    closed: Option<Closed>,
    /// Tasks that wait for a confirmation or for the close.
    waiting: Vec<Waker>,
}

/// How an attempt was closed, as its worker knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Closed {
    /// By this worker: its transaction is applied. It may have changed the handler's outcome, for example to cancelled.
    Written,
    /// By another process, or the attempt no longer exists. The handler's outcome is dropped.
    Fenced,
    /// The worker ended first, for example with its session. Its transaction may or may not have been applied.
    Unknown,
}

/// The handler's reports since the cell was last emptied.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Said {
    /// The handler requested a lease of this length.
    pub renew: Option<Duration>,
    /// The handler waits until the lease is written: the highest ticket.
    pub confirm: Option<u64>,
    /// The handler reported this progress.
    pub progress: Option<Progress>,
}

impl Said {
    fn is_nothing(&self) -> bool {
        self.renew.is_none() && self.progress.is_none()
    }

    /// These reports and later ones, as if they had been taken together.
    #[must_use]
    pub fn and(self, later: Self) -> Self {
        Self {
            renew: self.renew.max(later.renew),
            confirm: self.confirm.max(later.confirm),
            progress: later.progress.or(self.progress),
        }
    }
}

impl Pulse {
    /// Creates the cell of an attempt that starts with the progress of the previous attempt.
    #[must_use]
    pub fn new(of: Word, notify: Option<Notify>, until: Millis, progress: Progress) -> Self {
        let (said, waiting) = (Said::default(), Vec::new());
        // An attempt without a worker is never closed.
        let closed = notify.is_none().then_some(Closed::Unknown);
        let cell = Cell { until, progress, said, ticket: 0, confirmed: 0, stop: None, closed, waiting };
        Self { of, notify, cell: Mutex::new(cell) }
    }

    /// Locks the cell. Poison is ignored: a holder of the lock cannot panic between two changes.
    fn cell(&self) -> MutexGuard<'_, Cell> {
        self.cell.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The end of the attempt's lease.
    #[must_use]
    pub fn until(&self) -> Millis {
        self.cell().until
    }

    /// Sets the end of the lease after a renewal.
    pub fn set_until(&self, until: Millis) {
        self.cell().until = until;
    }

    /// Requests a lease of this length from now on.
    pub fn renew(&self, lease: Duration) {
        self.say(|cell| cell.said.renew = cell.said.renew.max(Some(lease)));
    }

    /// Requests that a lease of this length from now on is written immediately. Returns the ticket for
    /// [`Pulse::poll_confirmed`].
    #[must_use]
    pub fn renew_now(&self, lease: Duration) -> u64 {
        self.say(|cell| {
            cell.ticket += 1;
            (cell.said.renew, cell.said.confirm) = (cell.said.renew.max(Some(lease)), Some(cell.ticket));
            if self.notify.is_none() {
                cell.confirmed = cell.ticket;
            }
            cell.ticket
        })
    }

    /// Is ready once the renewal of this ticket is written. An attempt without a worker writes nothing and is ready
    /// immediately.
    pub fn poll_confirmed(&self, ticket: u64, cx: &mut task::Context<'_>) -> Poll<()> {
        let mut cell = self.cell();
        if cell.confirmed >= ticket {
            return Poll::Ready(());
        }
        cell.wait(cx);
        Poll::Pending
    }

    /// Confirms that the renewals of all tickets up to this one are written.
    pub fn confirm(&self, ticket: u64) {
        self.wake(|cell| cell.confirmed = cell.confirmed.max(ticket));
    }

    /// Is ready once the worker knows how the attempt was closed.
    pub fn poll_closed(&self, cx: &mut task::Context<'_>) -> Poll<Closed> {
        let mut cell = self.cell();
        match cell.closed {
            Some(closed) => Poll::Ready(closed),
            None => {
                cell.wait(cx);
                Poll::Pending
            }
        }
    }

    /// Publishes how the attempt was closed. The first outcome counts.
    fn close(&self, closed: Closed) {
        self.wake(|cell| {
            cell.closed.get_or_insert(closed);
        });
    }

    fn wake(&self, change: impl FnOnce(&mut Cell)) {
        let waiting = {
            let mut cell = self.cell();
            change(&mut cell);
            std::mem::take(&mut cell.waiting)
        };
        waiting.into_iter().for_each(Waker::wake);
    }

    /// Sets why the attempt is asked to stop. The first reason counts.
    pub fn set_stop(&self, stop: Stop) {
        self.cell().stop.get_or_insert(stop);
    }

    /// Why the attempt was asked to stop.
    #[must_use]
    pub fn stop(&self) -> Option<Stop> {
        self.cell().stop
    }

    /// Reports the handler's progress.
    ///
    /// # Errors
    /// The error of `change`. The progress is then unchanged.
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

    /// The newest progress, whether it is already written to ZooKeeper or not.
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

    /// Empties the cell and returns its reports.
    #[must_use]
    pub fn take(&self) -> Said {
        std::mem::take(&mut self.cell().said)
    }
}

impl Cell {
    fn wait(&mut self, cx: &task::Context<'_>) {
        if !self.waiting.iter().any(|waker| waker.will_wake(cx.waker())) {
            self.waiting.push(cx.waker().clone());
        }
    }
}

/// The worker's half of a cell. Exactly one exists for each attempt.
#[derive(Debug)]
pub struct Attended(Arc<Pulse>);

impl Attended {
    /// Creates the worker's half.
    #[must_use]
    pub fn new(pulse: Arc<Pulse>) -> Self {
        Self(pulse)
    }

    /// Publishes how the attempt was closed.
    pub fn close(self, closed: Closed) {
        self.0.close(closed);
    }
}

impl std::ops::Deref for Attended {
    type Target = Pulse;

    fn deref(&self) -> &Pulse {
        &self.0
    }
}

impl Drop for Attended {
    fn drop(&mut self) {
        // No effect after `Attended::close`.
        self.0.close(Closed::Unknown);
    }
}

impl fmt::Debug for Pulse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pulse").field("of", &self.of).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::mpsc;

    use super::*;

    fn word() -> Word {
        (JobId::new("a").unwrap(), 1)
    }

    #[test]
    fn many_reports_cause_one_notification_and_the_newest_report_counts() {
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
        assert_eq!(words.try_recv(), Ok(of), "an emptied cell notifies again");
    }

    #[test]
    fn a_handler_waits_until_its_renewal_is_confirmed() {
        let pulse = Pulse::new(word(), Some(Arc::new(|_| {})), Millis(0), Progress::default());
        let cx = &mut task::Context::from_waker(Waker::noop());
        let (first, second) =
            (pulse.renew_now(Duration::from_secs(1)), pulse.renew_now(Duration::from_secs(2)));
        let said = Said { renew: Some(Duration::from_secs(2)), confirm: Some(second), progress: None };
        assert_eq!(pulse.take(), said);
        assert_eq!(pulse.poll_confirmed(first, cx), Poll::Pending);
        pulse.confirm(first);
        assert_eq!(pulse.poll_confirmed(first, cx), Poll::Ready(()));
        assert_eq!(pulse.poll_confirmed(second, cx), Poll::Pending);
    }

    #[test]
    fn a_confirmation_wakes_the_handler() {
        struct Flag(AtomicBool);
        impl task::Wake for Flag {
            fn wake(self: Arc<Self>) {
                self.0.store(true, Ordering::SeqCst);
            }
        }
        let flag = Arc::new(Flag(AtomicBool::new(false)));
        let pulse = Pulse::new(word(), Some(Arc::new(|_| {})), Millis(0), Progress::default());
        let ticket = pulse.renew_now(Duration::from_secs(1));
        let waker = Waker::from(Arc::clone(&flag));
        assert_eq!(pulse.poll_confirmed(ticket, &mut task::Context::from_waker(&waker)), Poll::Pending);
        pulse.confirm(ticket);
        assert!(flag.0.load(Ordering::SeqCst));
    }

    #[test]
    fn the_first_outcome_of_the_close_counts_and_a_dropped_worker_leaves_it_unknown() {
        let cx = &mut task::Context::from_waker(Waker::noop());
        let open = || Arc::new(Pulse::new(word(), Some(Arc::new(|_| {})), Millis(0), Progress::default()));
        for (outcome, shown) in [
            (Some(Closed::Written), Closed::Written),
            (Some(Closed::Fenced), Closed::Fenced),
            (None, Closed::Unknown),
        ] {
            let pulse = open();
            let attended = Attended::new(Arc::clone(&pulse));
            assert_eq!(pulse.poll_closed(cx), Poll::Pending);
            match outcome {
                Some(outcome) => attended.close(outcome),
                None => drop(attended),
            }
            assert_eq!(pulse.poll_closed(cx), Poll::Ready(shown));
        }
        let detached = Pulse::new(word(), None, Millis(0), Progress::default());
        assert_eq!(detached.poll_closed(cx), Poll::Ready(Closed::Unknown));
    }

    #[test]
    fn an_invalid_report_is_refused_and_leaves_the_cell_empty() {
        let pulse = Pulse::new((JobId::new("a").unwrap(), 1), None, Millis(0), Progress::default());
        pulse.progress(|progress| progress.with_message(Some(101), "")).unwrap_err();
        assert_eq!(pulse.take(), Said::default());
    }
}
