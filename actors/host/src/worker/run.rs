//! The run of one attempt, isolated from its worker.
//!
//! Whatever the handler does (return, fail, panic, exceed its timeout, be dropped), exactly one [`Ended`] is sent, by a
//! guard that the run owns. The slot's permit is held as long as the handler's code runs, also by its threads (see
//! [`RunContext::blocking`]): an abandoned blocking handler keeps it until it returns.
//!
//! A job with a lane runs only while its worker's session can be trusted, because afterwards the leader may give the
//! lane to the next job. The run checks the trust itself, so neither a silent network nor a busy actor delays its end.
//!
//! The run records in the span of the attempt how it ended, which no middleware could: a timeout, an abort and a lapse only
//! drop the middleware. The built-in middleware of the library runs the handler in the span.

use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use bellwether_actors::worker::lane_trust::next_check;
use bellwether_core::machine::worker::executor_pool::{Ended, Run, Stop};
use bellwether_core::name::{JobId, Kind};
use bellwether_zk::Trust;
use futures::FutureExt;
use tokio::sync::mpsc::UnboundedSender;
use tracing::{Instrument as _, Span};

use super::handler::{Handler, HandlerResult, OnInvalid, RunContext};
use super::runs::Happened;
use super::slots::SlotPermit;
use crate::clock;
use crate::trace;

/// Reports the end of the run, also when the run is dropped.
pub(super) struct Guard {
    job: JobId,
    attempt: u32,
    /// The end to report if the run is dropped.
    dropped: Run,
    /// The span of the run, in which the end is recorded.
    span: Span,
    to: Option<UnboundedSender<Happened>>,
}

impl Guard {
    pub(super) fn new(context: &RunContext, to: UnboundedSender<Happened>) -> Self {
        Self {
            job: context.job.clone(),
            attempt: context.attempt,
            dropped: Run::Aborted,
            span: context.span.clone(),
            to: Some(to),
        }
    }

    fn ended(mut self, how: Run) {
        self.tell(how);
    }

    fn tell(&mut self, how: Run) {
        let Some(to) = self.to.take() else { return };
        trace::ran(&self.span, &how);
        let ended = Ended { job: self.job.clone(), attempt: self.attempt, how };
        if to.send(Happened::Ended(ended)).is_err() {
            tracing::debug!(job = %self.job, "a run ended after its executor pool");
        }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let how = std::mem::replace(&mut self.dropped, Run::Aborted);
        self.tell(how);
    }
}

/// The bounds of a run.
pub(super) struct Bounds {
    pub(super) timeout: Option<Duration>,
    /// The session's trust, for a job with a lane.
    pub(super) trust: Option<Trust>,
}

/// Runs the handler until it ends or a bound is reached.
pub(super) async fn run(
    handler: Handler,
    on_invalid: Option<OnInvalid>,
    context: RunContext,
    bounds: Bounds,
    slot: Arc<SlotPermit>,
    mut guard: Guard,
) {
    let (cancellation, pulse) = (context.cancelled.clone(), Arc::clone(&context.pulse));
    let (kind, span) = (context.kind.clone(), context.span.clone());
    // The context is large, and most kinds have no such handler.
    let invalid = on_invalid.map(|on_invalid| (on_invalid, Box::new(context.clone())));
    let handled = async {
        let _slot = slot;
        let handled = AssertUnwindSafe(async { handler(context).await }).catch_unwind();
        ended(handled.await)
    };
    let timed = async {
        match bounds.timeout {
            None => handled.await,
            Some(limit) => tokio::select! {
                biased;
                how = handled => how,
                () = clock::sleep_until(clock::now() + limit) => {
                    pulse.set_stop(Stop::TimedOut);
                    cancellation.cancel();
                    Run::Failed(format!("timed out after {limit:?}"))
                }
            },
        }
    };
    let how = match bounds.trust.clone() {
        None => timed.await,
        Some(trust) => tokio::select! {
            // First, so without trust no handler starts and no result counts.
            biased;
            () = lapse(trust) => {
                pulse.set_stop(Stop::Untrusted);
                cancellation.cancel();
                Run::Lapsed
            }
            how = timed => how,
        },
    };
    if let Run::Invalid(why) = &how {
        // The result is final, even if the invalid-job handler runs until the lease expires or the trust ends.
        guard.dropped = how.clone();
        let untrusted = async {
            match bounds.trust {
                None => std::future::pending().await,
                Some(trust) => lapse(trust).await,
            }
        };
        tokio::select! {
            biased;
            () = untrusted => {}
            () = tell_invalid(invalid, (&guard.job, &kind), why).instrument(span) => {}
        }
    }
    guard.ended(how);
}

/// Calls the invalid-job handler before the job is closed as dead. Its result does not change the job's end.
async fn tell_invalid(
    handler: Option<(OnInvalid, Box<RunContext>)>,
    (job, kind): (&JobId, &Kind),
    why: &str,
) {
    let Some((on_invalid, context)) = handler else {
        tracing::warn!(%job, %kind, reason = why, "the job is dead: the handler reported invalid input");
        return;
    };
    let done = AssertUnwindSafe(async { on_invalid(*context, why.to_owned()).await }).catch_unwind();
    if let Err(panic) = done.await {
        let panic = message(panic.as_ref());
        tracing::error!(%job, %kind, panic, "the invalid-job handler panicked");
    }
}

/// Resolves when the session can no longer be trusted.
async fn lapse(trust: Trust) {
    loop {
        let shortened = trust.shortened();
        let Some(at) = next_check(trust.until(), clock::now()) else { return };
        // The trust may be renewed during the sleep.
        tokio::select! {
            () = clock::sleep_until(at) => {}
            () = shortened => {}
        }
    }
}

fn ended(handled: Result<HandlerResult, Box<dyn Any + Send>>) -> Run {
    match handled {
        Ok(Ok(result)) => Run::Succeeded(result),
        Ok(Err(error)) => error.into_run(),
        Err(panic) => Run::Failed(format!("panicked: {}", message(panic.as_ref()))),
    }
}

fn message(panic: &(dyn Any + Send)) -> &str {
    panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message")
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::mpsc;

    use bellwether_core::job::Payload;
    use bellwether_core::name::Kind;
    use futures::future::BoxFuture;
    use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
    use tokio_util::sync::CancellationToken;

    use super::*;
    use crate::worker::handler::{HandlerError, Slot};
    use crate::worker::slots::Slots;

    async fn how(happened: &mut UnboundedReceiver<Happened>) -> Run {
        match happened.recv().await {
            Some(Happened::Ended(ended)) => ended.how,
            other => panic!("not the end of a run: {other:?}"),
        }
    }

    #[test]
    fn a_blocking_handler_that_is_abandoned_while_it_waits_for_a_thread_never_starts() {
        let runtime =
            tokio::runtime::Builder::new_current_thread().max_blocking_threads(1).enable_time().build();
        runtime.unwrap().block_on(async {
            let (release, released) = mpsc::channel::<()>();
            let only_thread = tokio::task::spawn_blocking(move || released.recv());
            let began = Arc::new(AtomicBool::new(false));
            let handle = {
                let began = Arc::clone(&began);
                move |context: RunContext| {
                    let began = Arc::clone(&began);
                    let code = move || {
                        began.store(true, Ordering::SeqCst);
                        Payload::json(*b"1").map_err(HandlerError::from)
                    };
                    async move { context.blocking(code).await }.boxed()
                }
            };
            let payload = Payload::json(*b"1").unwrap();
            let mut context =
                RunContext::detached(JobId::new("a").unwrap(), Kind::new("slow").unwrap(), payload);
            let (to, mut ended) = unbounded_channel();
            let guard = Guard::new(&context, to);
            let slots = Slots::new(1);
            let slot = Arc::new(slots.acquire().await);
            context.slot = Slot::of(&slot);
            let bounds = Bounds { timeout: Some(Duration::from_millis(1)), trust: None };
            run(Arc::new(handle), None, context, bounds, slot, guard).await;
            assert_eq!(how(&mut ended).await, Run::Failed("timed out after 1ms".into()));
            assert_eq!(slots.free(), 0, "the slot is held for the thread");
            release.send(()).unwrap();
            only_thread.await.unwrap().unwrap();
            drop(slots.acquire().await);
            assert!(!began.load(Ordering::SeqCst));
        });
    }

    /// A slow invalid-job handler does not cause a retry of a job that can never succeed.
    #[tokio::test]
    async fn an_invalid_run_stays_invalid_after_its_timeout_and_when_it_is_dropped() {
        let handle = |_: RunContext| async { Err(HandlerError::invalid("no such account")) }.boxed();
        let on_invalid: OnInvalid = Arc::new(|_, _| std::future::pending().boxed());
        let payload = Payload::json(*b"1").unwrap();
        let context = RunContext::detached(JobId::new("a").unwrap(), Kind::new("bad").unwrap(), payload);
        let (to, mut ended) = unbounded_channel();
        let guard = Guard::new(&context, to);
        let slot = Arc::new(Slots::new(1).acquire().await);
        let bounds = Bounds { timeout: Some(Duration::from_millis(1)), trust: None };
        let run = run(Arc::new(handle), Some(on_invalid), context, bounds, slot, guard);
        tokio::time::timeout(Duration::from_millis(50), run)
            .await
            .expect_err("the run continues and is dropped");
        assert_eq!(how(&mut ended).await, Run::Invalid("no such account".into()));
    }

    /// S6: the run waited for its slot while its process was frozen for longer than the session timeout.
    #[tokio::test]
    async fn a_run_that_holds_a_lane_does_not_start_without_trust_in_its_session() {
        let handle = |_: RunContext| -> BoxFuture<'static, HandlerResult> { panic!("the handler started") };
        let payload = Payload::json(*b"1").unwrap();
        let context = RunContext::detached(JobId::new("a").unwrap(), Kind::new("sum").unwrap(), payload);
        let (to, mut ended) = unbounded_channel();
        let guard = Guard::new(&context, to);
        let slot = Arc::new(Slots::new(1).acquire().await);
        let bounds = Bounds { timeout: None, trust: Some(Trust::unanswered(Duration::ZERO)) };
        run(Arc::new(handle), None, context, bounds, slot, guard).await;
        assert_eq!(how(&mut ended).await, Run::Lapsed);
    }

    /// S6: afterwards the next job of the lane may start.
    #[tokio::test]
    async fn only_a_run_that_holds_a_lane_ends_with_the_trust_in_its_session() {
        for laned in [true, false] {
            let dropped = CancellationToken::new();
            let owned = dropped.clone().drop_guard();
            let owned = Arc::new(std::sync::Mutex::new(Some(owned)));
            let handle = move |context: RunContext| {
                let owned = owned.lock().unwrap().take();
                async move {
                    let _owned = owned;
                    context.cancelled.cancelled().await;
                    std::future::pending::<HandlerResult>().await
                }
                .boxed()
            };
            let payload = Payload::json(*b"1").unwrap();
            let context = RunContext::detached(JobId::new("a").unwrap(), Kind::new("slow").unwrap(), payload);
            let cancelled = context.cancelled.clone();
            let (to, mut ended) = unbounded_channel();
            let guard = Guard::new(&context, to);
            let slot = Arc::new(Slots::new(1).acquire().await);
            let trust = Trust::unanswered(Duration::from_millis(50));
            let until = trust.until();
            let bounds = Bounds { timeout: None, trust: laned.then_some(trust) };
            let run = run(Arc::new(handle), None, context, bounds, slot, guard);
            let over = tokio::time::timeout(Duration::from_millis(300), run).await;
            assert_eq!(over.is_ok(), laned);
            let how = super::tests::how(&mut ended).await;
            assert_eq!(how, if laned { Run::Lapsed } else { Run::Aborted });
            assert_eq!(cancelled.is_cancelled(), laned, "the handler is asked to stop");
            dropped.cancelled().await;
            assert!(clock::now() >= until, "the run ends no earlier");
        }
    }
}
