//! Blocking code of a handler, on its own thread.
//!
//! A thread cannot be stopped. So the slot of a run has two kinds of owners: the run, and its threads. The slot is free
//! when the last of them is done. The context of the run owns no slot, because a handler may keep it for any time.

use std::panic::resume_unwind;
use std::sync::{Arc, Weak};

use tracing::Span;

use super::{HandlerError, HandlerResult, RunContext};
use crate::worker::slots::SlotPermit;

/// The slot of a run, if there is a worker.
#[derive(Debug, Clone, Default)]
pub struct Slot(Option<Weak<SlotPermit>>);

impl Slot {
    /// Refers to the slot of a run. The slot stays owned by the run.
    pub(in crate::worker) fn of(permit: &Arc<SlotPermit>) -> Self {
        Self(Some(Arc::downgrade(permit)))
    }
}

impl RunContext {
    /// Runs blocking code on its own thread, in the slot of the run, and in the current span. A panic of the code
    /// continues in the caller. Without a worker, the code runs on the caller's thread.
    ///
    /// # Errors
    /// The errors of the code, or an error if the attempt was over before the code began.
    ///
    /// # Cancellation
    /// If the future is dropped while the code waits for a thread, the code never begins. Code that has begun keeps the
    /// slot until it returns, and its result is dropped.
    pub async fn blocking(&self, code: impl FnOnce() -> HandlerResult + Send + 'static) -> HandlerResult {
        let Some(slot) = &self.slot.0 else { return code() };
        let over = || HandlerError::new("the attempt was cancelled before its blocking code began");
        let slot = slot.upgrade().ok_or_else(over)?;
        let (span, cancelled) = (Span::current(), self.cancelled.clone());
        let thread = tokio::task::spawn_blocking(move || {
            let _slot = slot;
            let _within = span.entered();
            // The attempt may have been closed while the code waited for a thread.
            if cancelled.is_cancelled() { Err(over()) } else { code() }
        });
        match thread.await {
            Ok(handled) => handled,
            Err(error) => match error.try_into_panic() {
                Ok(panic) => resume_unwind(panic),
                Err(error) => Err(HandlerError::new(format!("the handler's thread ended: {error}"))),
            },
        }
    }
}
