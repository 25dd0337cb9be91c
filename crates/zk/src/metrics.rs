//! The metrics of this crate.

use std::time::Duration;

use bellwether_core::metric;
use metrics::{counter, histogram};

#[derive(Clone, Copy)]
pub(crate) enum Request {
    Read,
    Write,
}

impl Request {
    fn label(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
        }
    }
}

/// Counts a sent request of `ops` operations.
pub(crate) fn sent(request: Request, ops: usize) {
    let kind = request.label();
    counter!(metric::ZOOKEEPER_REQUESTS, "request" => kind).increment(1);
    counter!(metric::ZOOKEEPER_OPERATIONS, "request" => kind).increment(ops as u64);
}

/// Records that the server answered a request after this time.
pub(crate) fn answered(request: Request, after: Duration) {
    histogram!(metric::ZOOKEEPER_REQUEST_DURATION_SECONDS, "request" => request.label()).record(after);
}

/// Counts a write whose reply was lost.
pub(crate) fn unknown() {
    counter!(metric::ZOOKEEPER_UNKNOWN_OUTCOMES).increment(1);
}

#[cfg(test)]
mod tests {
    use metrics_exporter_prometheus::PrometheusBuilder;

    use super::*;

    #[test]
    fn requests_are_counted_by_kind_with_their_operations_and_answers() {
        let recorder = PrometheusBuilder::new().build_recorder();
        metrics::with_local_recorder(&recorder, || {
            sent(Request::Read, 3);
            sent(Request::Write, 2);
            sent(Request::Write, 5);
            answered(Request::Read, Duration::from_millis(5));
            unknown();
        });
        let text = recorder.handle().render();
        for (name, label, value) in [
            (metric::ZOOKEEPER_REQUESTS, "{request=\"read\"}", 1),
            (metric::ZOOKEEPER_REQUESTS, "{request=\"write\"}", 2),
            (metric::ZOOKEEPER_OPERATIONS, "{request=\"read\"}", 3),
            (metric::ZOOKEEPER_OPERATIONS, "{request=\"write\"}", 7),
            (&format!("{}_count", metric::ZOOKEEPER_REQUEST_DURATION_SECONDS), "{request=\"read\"}", 1),
            (metric::ZOOKEEPER_UNKNOWN_OUTCOMES, "", 1),
        ] {
            assert!(
                text.lines().any(|line| line == format!("{name}{label} {value}")),
                "{name}{label}: {text}"
            );
        }
    }
}
