//! The built-in middleware: the span in which a handler runs, and its run time as a metric.
//!
//! It is outside of all other middleware, so their log lines are in the span and their time is measured, too. A run is
//! measured exactly once, when its future ends or is dropped: by a timeout, a cancel, an expired lease, the end of a lane's
//! trust or the end of the worker. The code of an abandoned blocking handler may run longer.
//!
//! The outcome of an attempt is not visible from a middleware: a timeout, an abort and a lapse drop it, and the executor
//! may overrule the handler. The run records the outcome in the span (`actors/host/src/worker/run.rs`), and the attempt is
//! counted when its close is committed (`actors/src/worker/meters.rs`).

use std::sync::OnceLock;
use std::time::Instant;

use bellwether_core::metric::HANDLER_DURATION_SECONDS;
use bellwether_host::kind_label;
use metrics::{Histogram, histogram};
use tracing::Instrument as _;

use super::middleware::{Middleware, Next};
use super::{HandlerResult, JobContext};

/// Observes the runs of one kind's handler.
#[derive(Debug, Default)]
pub(super) struct Observed {
    /// Cached, because a lookup per job costs more than the record itself. Created by the first run, when the program
    /// has installed its recorder.
    duration: OnceLock<Histogram>,
}

impl Middleware for Observed {
    async fn handle(&self, context: JobContext, next: Next) -> HandlerResult {
        let labelled =
            || histogram!(HANDLER_DURATION_SECONDS, "kind" => kind_label::of_served(context.kind()));
        let _timer = Timer { duration: self.duration.get_or_init(labelled), since: Instant::now() };
        let span = context.run.span.clone();
        next.run(context).instrument(span).await
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
