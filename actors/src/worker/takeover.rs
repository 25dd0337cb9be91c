//! Takes over the attempts that a process runs, from the worker that it had before: carries out the decisions of
//! [`bellwether_core::takeover`].
//!
//! The new worker is registered and offers no slot yet. For each attempt: read, decide, commit; after a rejection, read and
//! decide again. A lost connection interrupts the takeover. It is repeated from the start, and recognises the attempts
//! that were moved before, whether the reply came or not.
//!
//! Limits: `WINDOW` attempts at a time. The number of attempts is at most the number of the worker's slots, and for each kind at most
//! its concurrency limit, because each attempt is attached to a handler immediately.

use std::collections::BTreeMap;

use bellwether_core::machine::worker::Lookup;
use bellwether_core::name::{Kind, WorkerId};
use bellwether_core::outcome::{Outcome, Reason, Rejection};
use bellwether_core::path;
use bellwether_core::port::{Node, ReadError, ReadResult, Reply, Requests};
use bellwether_core::takeover::{self, Decision, HeldAttempt, Owner, Refusal, Seen};
use bellwether_core::txn::Op;
use bellwether_core::worker::WorkerInfo;

/// The attempts that are read and moved at a time. Each has a record of at most 1 MiB in memory.
const WINDOW: usize = 16;

/// The rejections of one move after which the attempt is refused. Each has another cause: the attempt was closed (refused at
/// the next read), flagged, renewed by the former gateway, or the new registration was set by an operator.
const MAX_REJECTIONS: u32 = 8;

/// What a process runs, and how much of it the new worker may take.
#[derive(Debug, Clone)]
pub struct Takeover {
    /// The worker that had the attempts.
    pub from: WorkerId,
    /// The owner of both workers.
    pub owner: Owner,
    /// The attempts.
    pub held: Vec<HeldAttempt>,
    /// The slots of the new worker.
    pub slots: u32,
    /// The concurrency limits of kinds.
    pub limits: BTreeMap<Kind, u32>,
}

/// The outcome for one attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Taken {
    /// The attempt, as the process named it.
    pub held: HeldAttempt,
    /// Its new token, or the reason why it was not moved.
    pub fencing_token: Result<i32, Refusal>,
}

/// The slots that are left.
struct Capacity {
    slots: u32,
    limits: BTreeMap<Kind, u32>,
}

impl Capacity {
    fn has(&self, kind: &Kind) -> bool {
        self.slots > 0 && self.limits.get(kind).is_none_or(|left| *left > 0)
    }

    fn take(&mut self, kind: &Kind) {
        self.slots = self.slots.saturating_sub(1);
        if let Some(left) = self.limits.get_mut(kind) {
            *left = left.saturating_sub(1);
        }
    }

    fn give_back(&mut self, kind: &Kind) {
        self.slots = self.slots.saturating_add(1);
        if let Some(left) = self.limits.get_mut(kind) {
            *left = left.saturating_add(1);
        }
    }
}

/// Moves the attempts to the worker `to`. Returns the outcome for each.
///
/// # Errors
/// The connection was lost: some attempts may have been moved.
pub async fn take_over(zk: &dyn Requests, wanted: &Takeover, to: WorkerId) -> ReadResult<Vec<Taken>> {
    let mut taken = Vec::new();
    let refused = |held: &HeldAttempt, refusal| Taken { held: held.clone(), fencing_token: Err(refusal) };
    let former = match zk.get(path::worker(wanted.from)).await {
        Ok(former) => former,
        Err(ReadError::Disconnected) => return Err(ReadError::Disconnected),
        Err(ReadError::Refused(_)) => {
            return Ok(wanted.held.iter().map(|held| refused(held, Refusal::Failed)).collect());
        }
    };
    let refusal = match Node::look::<WorkerInfo>(&former) {
        // Its session has expired, or it has left: its attempts are being closed.
        Lookup::Absent => Some(Refusal::NotHeld),
        Lookup::Found(former, _) if former.owner != Some(wanted.owner) => Some(Refusal::NotOwner),
        Lookup::Found(..) => None,
        Lookup::Unreadable { .. } => Some(Refusal::NotOwner),
    };
    if let Some(refusal) = refusal {
        return Ok(wanted.held.iter().map(|held| refused(held, refusal)).collect());
    }
    let mut capacity = Capacity { slots: wanted.slots, limits: wanted.limits.clone() };
    for held in wanted.held.chunks(WINDOW) {
        let mut waiting = held.to_vec();
        for _ in 0..MAX_REJECTIONS {
            waiting = pass(zk, (wanted.from, to), waiting, &mut capacity, &mut taken).await?;
        }
        taken.extend(waiting.iter().map(|held| refused(held, Refusal::Failed)));
    }
    Ok(taken)
}

/// Reads, decides and commits once. Returns the attempts whose move was rejected.
async fn pass(
    zk: &dyn Requests,
    (from, to): (WorkerId, WorkerId),
    waiting: Vec<HeldAttempt>,
    capacity: &mut Capacity,
    taken: &mut Vec<Taken>,
) -> ReadResult<Vec<HeldAttempt>> {
    let reads = waiting.into_iter().map(|held| (zk.get_many(paths(&held, from, to)), held));
    let mut commits = Vec::new();
    for (read, held) in reads.collect::<Vec<_>>() {
        match decided(read.await, &held, from, to, capacity) {
            Ok(Decided::Over(fencing_token)) => taken.push(Taken { held, fencing_token }),
            Ok(Decided::Commit(fencing_token, kind, ops)) => commits.push((held, fencing_token, kind, ops)),
            Err(error) => return Err(error),
        }
    }
    let commits = commits
        .into_iter()
        .map(|(held, fencing_token, kind, ops)| (zk.commit(ops), held, fencing_token, kind));
    let mut again = Vec::new();
    // All replies are awaited, so that no move is under way when the takeover is repeated or ends.
    let mut interrupted = false;
    for (reply, held, fencing_token, kind) in commits.collect::<Vec<(Reply<Outcome<()>>, _, _, _)>>() {
        match reply.await {
            Outcome::Applied(()) => {
                taken.push(Taken { held, fencing_token: Ok(fencing_token) });
            }
            Outcome::Rejected(Rejection { reason: Reason::OverBudget(_) | Reason::NoAuth, .. }) => {
                tracing::warn!(job = %held.job, "ZooKeeper refused to move the attempt to this worker");
                taken.push(Taken { held, fencing_token: Err(Refusal::Failed) });
            }
            Outcome::Rejected(Rejection { reason: Reason::NotSent, .. }) | Outcome::Unknown => {
                interrupted = true;
            }
            Outcome::Rejected(_) => {
                capacity.give_back(&kind);
                again.push(held);
            }
        }
    }
    if interrupted { Err(ReadError::Disconnected) } else { Ok(again) }
}

enum Decided {
    Over(Result<i32, Refusal>),
    Commit(i32, Kind, Vec<Op>),
}

fn decided(
    read: ReadResult<Vec<Option<Node>>>,
    held: &HeldAttempt,
    from: WorkerId,
    to: WorkerId,
    capacity: &mut Capacity,
) -> ReadResult<Decided> {
    let nodes = match read {
        Ok(nodes) => nodes,
        Err(ReadError::Disconnected) => return Err(ReadError::Disconnected),
        Err(ReadError::Refused(_)) => return Ok(Decided::Over(Err(Refusal::Failed))),
    };
    let [registration, new, old, record] = nodes.as_slice() else {
        return Ok(Decided::Over(Err(Refusal::Failed)));
    };
    let seen = Seen {
        registration: Node::look(registration),
        new: Node::look(new),
        old: Node::look(old),
        record: Node::look(record),
    };
    let kind = match &seen.record {
        Lookup::Found(record, _) => record.kind.clone(),
        Lookup::Absent | Lookup::Unreadable { .. } => return Ok(Decided::Over(Err(Refusal::NotHeld))),
    };
    Ok(match takeover::decide(held, from, to, &seen) {
        Decision::Moved(fencing_token) => {
            capacity.take(&kind);
            Decided::Over(Ok(fencing_token))
        }
        Decision::Commit(..) if !capacity.has(&kind) => Decided::Over(Err(Refusal::NotServed)),
        Decision::Commit(fencing_token, ops) => {
            capacity.take(&kind);
            Decided::Commit(fencing_token, kind, ops)
        }
        Decision::Refuse(refusal) => Decided::Over(Err(refusal)),
    })
}

/// The znodes of [`Seen`], with the old assignment before the record.
fn paths(held: &HeldAttempt, from: WorkerId, to: WorkerId) -> Vec<String> {
    let assignment = |worker| path::assignment(worker, &held.job);
    vec![path::worker(to), assignment(to), assignment(from), path::record(&held.job)]
}

#[cfg(test)]
mod tests;
