//! What this crate counts. Described and touched with all others by the node (`bellwether::metrics`).

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
    counter!("bellwether_zookeeper_requests_total", "request" => kind).increment(1);
    counter!("bellwether_zookeeper_operations_total", "request" => kind).increment(ops as u64);
}

/// A write's reply was lost.
pub(crate) fn unknown() {
    counter!("bellwether_zookeeper_unknown_outcomes_total").increment(1);
}
