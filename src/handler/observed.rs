//! The built-in middleware: the run time of handlers as a metric.
//!
//! It is outside of all other middleware, so it measures a handler together with its layers. A run is measured exactly
//! once, when its future ends or is dropped: by a timeout, a cancel, an expired lease, the end of a lane's trust or the
//! end of the worker. The code of an abandoned blocking handler may run longer.
//!
//! A layer does not see the rest of an attempt's life:
//!
//! * The outcome. A timeout, an abort and a lapse all drop the layer, and the executor may overrule the handler. The
//!   attempt is counted with its outcome when its close is committed (`actors/src/worker/meters.rs`).
//! * The span `run`. It begins before the handler is called, its context is part of the [`JobContext`], and it contains
//!   the function for invalid jobs, which runs outside of the middleware. The run owns it and records the reason of the
//!   end in it (`actors/host/src/worker/run.rs`).
//! * Attempts without a handler, or that end before one starts.

use std::sync::OnceLock;
use std::time::Instant;

use bellwether_core::metric::HANDLER_DURATION_SECONDS;
use metrics::{Histogram, histogram};

use super::middleware::{Middleware, Next};
use super::{HandlerResult, JobContext};

/// Measures the runs of one kind's handler.
#[derive(Debug, Default)]
pub(super) struct Measured {
    /// Cached, because a lookup per job costs more than the record itself. Created by the first run, when the program
    /// has installed its recorder.
    duration: OnceLock<Histogram>,
}

impl Middleware for Measured {
    async fn handle(&self, context: JobContext, next: Next) -> HandlerResult {
        let labelled = || histogram!(HANDLER_DURATION_SECONDS, "kind" => context.kind().to_string());
        let _timer = Timer { duration: self.duration.get_or_init(labelled), since: Instant::now() };
        next.run(context).await
    }
}

/// Records the time until it is dropped.
struct Timer<'a> {
    duration: &'a Histogram,
    since: Instant,
}

impl Drop for Timer<'_> {
    fn drop(&mut self) {
        self.duration.record(self.since.elapsed());
    }
}
