//! The transactions of `docs/semantics.md`, recognized on the wire.

use bellwether_testkit::{Request, op};

fn multi(request: &Request<'_>, paths: &[&str]) -> bool {
    request.op == op::MULTI && paths.iter().all(|path| request.mentions(path))
}

pub(crate) fn submit(request: &Request<'_>) -> bool {
    multi(request, &["/jobs/", "/ready/"]) && !request.mentions("/assignments/")
}

/// A claim writes a record into `/epoch`; a beat only checks it.
pub(crate) fn claim(request: &Request<'_>) -> bool {
    multi(request, &["/election/", "/epoch", "BW\u{1}\u{5}"])
}

pub(crate) fn assign(request: &Request<'_>) -> bool {
    multi(request, &["/epoch", "/workers/", "/ready/", "/assignments/"])
}

/// A close by the worker.
pub(crate) fn close(request: &Request<'_>) -> bool {
    multi(request, &["/jobs/", "/assignments/"]) && !request.mentions("/epoch")
}

/// A recovery of a lost worker's job by the leader.
pub(crate) fn recover(request: &Request<'_>) -> bool {
    multi(request, &["/epoch", "/jobs/", "/assignments/"])
}

pub(crate) fn promote(request: &Request<'_>) -> bool {
    multi(request, &["/epoch", "/delayed/", "/ready/"])
}

/// An advance of a group by the leader, which creates the job of the next stage. A leader's transaction that ends a
/// member also mentions `/members`.
pub(crate) fn join(request: &Request<'_>) -> bool {
    multi(request, &["/epoch", "/groups/", "/jobs/", "/ready/"]) && !request.mentions("/members/")
}
