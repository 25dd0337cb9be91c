//! One attempt's run: the handler behind a wall.
//!
//! Whatever the handler does (return, fail, panic, overrun its time, be dropped), exactly one [`Ended`] comes
//! out, because it is sent by a guard that the run owns. The slot's permit lives as long as the handler's code
//! does: a blocking handler that was given up keeps it until it returns. One that was given up while it waited
//! for a thread never begins.
//!
//! A job with a lane runs only while its worker's session can be trusted: after that the leader may have given its lane
//! to the next. Its run follows the trust by itself, so that neither a silent network nor a busy actor makes it late.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use bellwether_actors::worker::lapse::next_look;
use bellwether_core::machine::worker::executor_pool::{Ended, Run};
use bellwether_core::name::JobId;
use bellwether_zk::Trust;
use futures::FutureExt;
use tokio::sync::OwnedSemaphorePermit;
use tokio::sync::mpsc::UnboundedSender;
use tracing::Span;

use super::handler::{Handler, HandlerError, HandlerResult, OnInvalid, RunContext};
use super::runs::Happened;
use crate::clock;
use crate::trace;

/// Tells how the run ended, also when it is dropped.
pub(super) struct Guard {
    job: JobId,
    attempt: u32,
    since: Instant,
    /// What is told of a run that is dropped.
    dropped: Run,
    /// The run's, which is told how it ended.
    span: Span,
    to: Option<UnboundedSender<Happened>>,
}

impl Guard {
    pub(super) fn new(context: &RunContext, span: Span, to: UnboundedSender<Happened>) -> Self {
        Self {
            job: context.job.clone(),
            attempt: context.attempt,
            since: Instant::now(),
            dropped: Run::Aborted,
            span,
            to: Some(to),
        }
    }

    fn ended(mut self, how: Run) {
        self.tell(how);
    }

    fn tell(&mut self, how: Run) {
        let Some(to) = self.to.take() else { return };
        trace::ran(&self.span, &how);
        let ended = Ended { job: self.job.clone(), attempt: self.attempt, how, ran: self.since.elapsed() };
        if to.send(Happened::Ended(ended)).is_err() {
            tracing::debug!(job = %self.job, "a run ended after its executor");
        }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let how = std::mem::replace(&mut self.dropped, Run::Aborted);
        self.tell(how);
    }
}

/// What bounds a run.
pub(super) struct Bounds {
    pub(super) timeout: Option<Duration>,
    /// Given for a job with a lane.
    pub(super) trust: Option<Trust>,
}

/// Runs the handler to one of its ends.
pub(super) async fn run(
    handler: Handler,
    on_invalid: Option<OnInvalid>,
    context: RunContext,
    bounds: Bounds,
    slot: OwnedSemaphorePermit,
    mut guard: Guard,
) {
    let (cancellation, of) = (context.cancelled.clone(), context.clone());
    let handled = async {
        match handler {
            Handler::Async(handle) => {
                let _slot = slot;
                let handled = AssertUnwindSafe(async { handle(context).await }).catch_unwind();
                ended(handled.await)
            }
            Handler::Blocking(handle) => {
                let span = Span::current();
                let blocking = tokio::task::spawn_blocking(move || {
                    let _slot = slot;
                    let _within = span.entered();
                    // It may have waited for a thread until its attempt was closed.
                    if context.cancelled.is_cancelled() {
                        return Ok(Err(HandlerError::new("told to stop before it began")));
                    }
                    catch_unwind(AssertUnwindSafe(|| handle(context)))
                });
                match blocking.await {
                    Ok(handled) => ended(handled),
                    Err(error) => Run::Failed(format!("the handler's thread ended: {error}")),
                }
            }
        }
    };
    let timed = async {
        match bounds.timeout {
            // No timer for those who asked for none.
            None => handled.await,
            Some(limit) => tokio::time::timeout(limit, handled).await.unwrap_or_else(|_| {
                cancellation.cancel();
                Run::Failed(format!("timed out after {limit:?}"))
            }),
        }
    };
    let how = match bounds.trust.clone() {
        None => timed.await,
        Some(trust) => tokio::select! {
            // First, so that nothing begins, and no result counts, once it is too late.
            biased;
            () = lapse(trust) => {
                cancellation.cancel();
                Run::Lapsed
            }
            how = timed => how,
        },
    };
    if let Run::Invalid(why) = &how {
        // That is what it is, however long the rest takes: until its lease is over, or its lane may be another's.
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
            () = invalid(on_invalid, of, why) => {}
        }
    }
    guard.ended(how);
}

/// Before its job is closed as dead. What this does, or fails at, changes nothing about that.
async fn invalid(on_invalid: Option<OnInvalid>, context: RunContext, why: &str) {
    let (job, kind) = (context.job.clone(), context.kind.clone());
    let Some(on_invalid) = on_invalid else {
        tracing::warn!(%job, %kind, why, "the job is dead: the handler reported invalid input");
        return;
    };
    let done = AssertUnwindSafe(async { on_invalid(context, why.to_owned()).await }).catch_unwind();
    if let Err(panic) = done.await {
        let panic = message(panic.as_ref());
        tracing::error!(%job, %kind, panic, "the handler of invalid jobs panicked");
    }
}

/// Resolves once the session cannot be trusted to live.
async fn lapse(trust: Trust) {
    // It may be renewed while this sleeps.
    while next_look(clock::at(trust.until()), clock::now()).is_some() {
        tokio::time::sleep_until(trust.until().into()).await;
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
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::mpsc;

    use bellwether_core::job::Payload;
    use bellwether_core::name::Kind;
    use futures::future::BoxFuture;
    use tokio::sync::Semaphore;
    use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
    use tokio_util::sync::CancellationToken;

    use super::*;

    async fn how(happened: &mut UnboundedReceiver<Happened>) -> Run {
        match happened.recv().await {
            Some(Happened::Ended(ended)) => ended.how,
            other => panic!("a run ends, not {other:?}"),
        }
    }

    #[test]
    fn a_blocking_handler_that_is_given_up_while_it_waits_for_a_thread_never_begins() {
        let runtime =
            tokio::runtime::Builder::new_current_thread().max_blocking_threads(1).enable_time().build();
        runtime.unwrap().block_on(async {
            let (release, released) = mpsc::channel::<()>();
            let only_thread = tokio::task::spawn_blocking(move || released.recv());
            let began = Arc::new(AtomicBool::new(false));
            let handle = {
                let began = Arc::clone(&began);
                move |context: RunContext| {
                    began.store(true, Ordering::SeqCst);
                    Ok(context.payload)
                }
            };
            let payload = Payload::json(*b"1").unwrap();
            let context = RunContext::detached(JobId::new("a").unwrap(), Kind::new("slow").unwrap(), payload);
            let (to, mut ended) = unbounded_channel();
            let guard = Guard::new(&context, Span::none(), to);
            let slots = Arc::new(Semaphore::new(1));
            let slot = Arc::clone(&slots).acquire_owned().await.unwrap();
            let bounds = Bounds { timeout: Some(Duration::from_millis(1)), trust: None };
            run(Handler::Blocking(Arc::new(handle)), None, context, bounds, slot, guard).await;
            assert_eq!(how(&mut ended).await, Run::Failed("timed out after 1ms".into()));
            release.send(()).unwrap();
            only_thread.await.unwrap().unwrap();
            drop(slots.acquire().await.unwrap());
            assert!(!began.load(Ordering::SeqCst));
        });
    }

    /// A job that can never succeed is not tried again because what hears of it takes long.
    #[tokio::test]
    async fn a_run_that_was_invalid_stays_so_when_its_time_is_over_or_it_is_dropped() {
        let handle = |_: RunContext| async { Err(HandlerError::invalid("no such account")) }.boxed();
        let on_invalid: OnInvalid = Arc::new(|_, _| std::future::pending().boxed());
        let payload = Payload::json(*b"1").unwrap();
        let context = RunContext::detached(JobId::new("a").unwrap(), Kind::new("bad").unwrap(), payload);
        let (to, mut ended) = unbounded_channel();
        let guard = Guard::new(&context, Span::none(), to);
        let slot = Arc::new(Semaphore::new(1)).acquire_owned().await.unwrap();
        let bounds = Bounds { timeout: Some(Duration::from_millis(1)), trust: None };
        let run = run(Handler::Async(Arc::new(handle)), Some(on_invalid), context, bounds, slot, guard);
        tokio::time::timeout(Duration::from_millis(50), run).await.expect_err("it goes on, and is dropped");
        assert_eq!(how(&mut ended).await, Run::Invalid("no such account".into()));
    }

    /// S6: one that waited for its slot until its process stood still beyond its session.
    #[tokio::test]
    async fn a_run_that_holds_a_lane_does_not_begin_without_trust_in_its_session() {
        let handle = |_: RunContext| -> BoxFuture<'static, HandlerResult> { panic!("it begins") };
        let payload = Payload::json(*b"1").unwrap();
        let context = RunContext::detached(JobId::new("a").unwrap(), Kind::new("sum").unwrap(), payload);
        let (to, mut ended) = unbounded_channel();
        let guard = Guard::new(&context, Span::none(), to);
        let slot = Arc::new(Semaphore::new(1)).acquire_owned().await.unwrap();
        let bounds = Bounds { timeout: None, trust: Some(Trust::unanswered(Duration::ZERO)) };
        run(Handler::Async(Arc::new(handle)), None, context, bounds, slot, guard).await;
        assert_eq!(how(&mut ended).await, Run::Lapsed);
    }

    /// S6: whoever has the lane next may begin.
    #[tokio::test]
    async fn a_run_that_holds_a_lane_ends_with_the_trust_in_its_session_and_another_does_not() {
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
            let guard = Guard::new(&context, Span::none(), to);
            let slot = Arc::new(Semaphore::new(1)).acquire_owned().await.unwrap();
            let trust = Trust::unanswered(Duration::from_millis(50));
            let until = trust.until();
            let bounds = Bounds { timeout: None, trust: laned.then_some(trust) };
            let run = run(Handler::Async(Arc::new(handle)), None, context, bounds, slot, guard);
            let over = tokio::time::timeout(Duration::from_millis(300), run).await;
            assert_eq!(over.is_ok(), laned);
            let how = super::tests::how(&mut ended).await;
            assert_eq!(how, if laned { Run::Lapsed } else { Run::Aborted });
            assert_eq!(cancelled.is_cancelled(), laned, "it is told");
            dropped.cancelled().await;
            assert!(Instant::now() >= until, "and not before");
        }
    }
}
