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
