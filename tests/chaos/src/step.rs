//! The transactions of `docs/semantics.md`, as they look on the wire.

use bellwether_testkit::{Request, op};

fn multi(request: &Request<'_>, paths: &[&str]) -> bool {
    request.op == op::MULTI && paths.iter().all(|path| request.mentions(path))
}

pub(crate) fn submit(request: &Request<'_>) -> bool {
    multi(request, &["/jobs/", "/queue/"]) && !request.mentions("/assignments/")
}

pub(crate) fn claim(request: &Request<'_>) -> bool {
    multi(request, &["/election/", "/epoch"])
}

pub(crate) fn assign(request: &Request<'_>) -> bool {
    multi(request, &["/epoch", "/workers/", "/queue/", "/assignments/"])
}

/// By the worker.
pub(crate) fn close(request: &Request<'_>) -> bool {
    multi(request, &["/jobs/", "/assignments/"]) && !request.mentions("/epoch")
}

/// Of a lost worker's job, by the leader.
pub(crate) fn recover(request: &Request<'_>) -> bool {
    multi(request, &["/epoch", "/jobs/", "/assignments/"])
}

pub(crate) fn promote(request: &Request<'_>) -> bool {
    multi(request, &["/epoch", "/delayed/", "/queue/"])
}

/// Takes a group on and makes the job of its next stage, by the leader. An end of a member that the leader writes is about
/// `/members`, too.
pub(crate) fn join(request: &Request<'_>) -> bool {
    multi(request, &["/epoch", "/groups/", "/jobs/", "/queue/"]) && !request.mentions("/members/")
}
