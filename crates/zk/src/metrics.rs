//! What this crate counts.

use bellwether_core::metric;
use metrics::counter;

pub(crate) enum Request {
    Read,
    Write,
}

/// One request of `ops` operations was sent.
pub(crate) fn sent(request: Request, ops: usize) {
    let kind = match request {
        Request::Read => "read",
        Request::Write => "write",
    };
    counter!(metric::ZK_REQUESTS, "request" => kind).increment(1);
    counter!(metric::ZK_OPERATIONS, "request" => kind).increment(ops as u64);
}

/// A write's reply was lost.
pub(crate) fn unknown() {
    counter!(metric::UNKNOWN_OUTCOMES).increment(1);
}
