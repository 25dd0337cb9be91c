//! One attempt of a remote worker: the handler that waits for its finish.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bellwether::handler::{Closed, HandlerResult, Stop};
use bellwether::{HandlerError, JobContext, JobId};
use tokio::sync::oneshot;

use super::table::{Id, Reason};
use super::worker::RemoteWorker;

/// The delay of an attempt whose id is still in use for the repeat of an earlier finish, or that was taken over for a process
/// that no longer runs it.
const AGAIN_AFTER: Duration = Duration::from_secs(1);

/// An attempt that a remote worker runs.
#[derive(Debug)]
pub(crate) struct Attempt {
    job: JobId,
    state: Mutex<State>,
    finish: Mutex<Option<oneshot::Sender<HandlerResult>>>,
    /// Whether the handler returned the outcome of the finish.
    taken: AtomicBool,
}

/// A finished attempt is kept for repeats of the finish, without its payload and checkpoint.
#[derive(Debug)]
enum State {
    Open(Arc<JobContext>),
    Finished(Finished),
}

/// How a finish ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Finished {
    /// The attempt is closed with this finish. A concurrent cancel may have changed a failure to cancelled.
    Closed,
    /// The attempt was closed without it.
    Fenced,
    /// The worker's session ended first.
    Unknown,
}

impl Attempt {
    fn new(context: JobContext, finish: oneshot::Sender<HandlerResult>) -> Self {
        Self {
            job: context.job().clone(),
            state: Mutex::new(State::Open(Arc::new(context))),
            finish: Mutex::new(Some(finish)),
            taken: AtomicBool::new(false),
        }
    }

    /// Returns the context, until it is known how the attempt was finished.
    pub(crate) fn context(&self) -> Option<Arc<JobContext>> {
        match &*self.state() {
            State::Open(context) => Some(Arc::clone(context)),
            State::Finished(_) => None,
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands the outcome to the handler. The first outcome counts.
    pub(crate) fn hand_over(&self, outcome: HandlerResult) {
        let finish = self.finish.lock().unwrap_or_else(PoisonError::into_inner).take();
        // A handler that has ended does not take the outcome: `Attempt::finished` reports it.
        if let Some(finish) = finish
            && finish.send(outcome).is_err()
        {
            tracing::debug!(job = %self.job, "a remote worker finished an attempt that has ended");
        }
    }

    /// Waits until the attempt is closed.
    pub(crate) async fn finished(&self) -> Finished {
        let context = match &*self.state() {
            State::Open(context) => Arc::clone(context),
            State::Finished(finished) => return *finished,
        };
        let finished = match context.closed().await {
            Closed::Written if self.taken.load(Ordering::Acquire) => Finished::Closed,
            Closed::Unknown if self.taken.load(Ordering::Acquire) => Finished::Unknown,
            Closed::Written | Closed::Fenced | Closed::Unknown => Finished::Fenced,
        };
        *self.state() = State::Finished(finished);
        finished
    }
}

/// Ends the attempt in the table when the handler returns or is dropped.
struct Ends<'a> {
    worker: &'a RemoteWorker,
    id: &'a Id,
    context: &'a JobContext,
}

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.worker.ended(self.id, reason(self.context));
    }
}

/// Runs an attempt: offers it to the remote worker, or attaches to it if the worker has it already, and waits for its finish.
pub(super) async fn run(worker: Arc<RemoteWorker>, context: JobContext) -> HandlerResult {
    let id =
        Id { job: context.job().clone(), attempt: context.attempt(), fencing_token: context.fencing_token() };
    let (finish, mut finished) = oneshot::channel();
    let attempt = Arc::new(Attempt::new(context.clone(), finish));
    if !worker.begin(&id, &attempt) {
        return Err(HandlerError::retry_later(AGAIN_AFTER));
    }
    let _ends = Ends { worker: &worker, id: &id, context: &context };
    let outcome = tokio::select! {
        biased;
        outcome = &mut finished => outcome,
        () = context.cancelled() => {
            worker.stop_attempt(&id, reason(&context));
            finished.await
        }
    };
    // The sender lives as long as the attempt.
    let outcome =
        outcome.unwrap_or_else(|_| Err(HandlerError::new("the attempt was dropped by its gateway")));
    // No await follows, so the run ends with this outcome.
    attempt.taken.store(true, Ordering::Release);
    outcome
}

fn reason(context: &JobContext) -> Reason {
    match context.stop_reason() {
        Some(Stop::Cancelled) => Reason::Cancelled,
        Some(Stop::HandedBack) => Reason::HandedBack,
        // Timed out before the handler could see it, or the worker's session has ended; or the lease expired, the session
        // lost its trust, or another process closed the attempt.
        None | Some(_) => Reason::Closed,
    }
}

#[cfg(test)]
mod tests {
    use bellwether::{Kind, Payload};

    use super::*;

    /// An attempt without a worker, which is never closed, and what its handler waits for.
    fn attempt() -> (Attempt, oneshot::Receiver<HandlerResult>) {
        let payload = Payload::json(*b"1").unwrap();
        let context = JobContext::detached(JobId::new("a").unwrap(), Kind::new("mail").unwrap(), payload);
        let (finish, finished) = oneshot::channel();
        (Attempt::new(context, finish), finished)
    }

    #[tokio::test]
    async fn a_finish_counts_only_if_the_handler_returned_it() {
        let (fenced, finished) = attempt();
        // The handler was dropped before it took the outcome, so the attempt ended in another way.
        drop(finished);
        fenced.hand_over(Err(HandlerError::new("no")));
        fenced.hand_over(Err(HandlerError::new("repeated")));
        assert_eq!(fenced.finished().await, Finished::Fenced);
        let (taken, _finished) = attempt();
        taken.taken.store(true, Ordering::Release);
        assert_eq!(taken.finished().await, Finished::Unknown);
    }

    #[tokio::test]
    async fn a_finished_attempt_keeps_its_result_and_not_its_context() {
        let (attempt, _finished) = attempt();
        let context = Arc::downgrade(&attempt.context().unwrap());
        assert_eq!(attempt.finished().await, Finished::Fenced);
        assert!(context.upgrade().is_none() && attempt.context().is_none());
        assert_eq!(attempt.finished().await, Finished::Fenced);
    }
}
