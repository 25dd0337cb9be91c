//! The containers of a transaction: the parents of delayed entries and of turns, and the slots and classes of ready entries.
//!
//! ZooKeeper removes an empty container at any time, so a transaction that creates a znode in a container may find it
//! missing. The driver that commits transactions creates missing containers; no other code does. It guesses from the
//! containers that it has [seen](SeenParents) which ones exist:
//!
//! ```text
//!  send with a create of each container that was not seen ──applied, or reply lost──▶ done
//!    ▲                 └─rejected at a container─▶ read which containers exist ─┐
//!    └──────────────── send with a create of each absent container ◀────────────┘
//! ```
//!
//! The creates are part of the multi, so no container is left behind without a child, and a reader never sees the child
//! without its container. They come first, a container before those in it, and a container that exists rejects the multi before
//! any other operation.
//!
//! **What if the reply is lost?** The outcome is unknown, and the caller resolves it by the rule of its transaction: the
//! driver never sends again. It sends again only after the server has rejected the whole multi. So no copy of it is in
//! flight, and to the caller all sends are one request. A seen container is only a guess, so it needs no other rule.
//!
//! Limits: [`MAX_SENDS`]; [`SEEN`] containers are remembered.

use std::collections::{BTreeMap, BTreeSet};

use xxhash_rust::xxh3::xxh3_64;

use super::{Lifetime, Op};
use crate::budget::MAX_READ_BATCH;
use crate::outcome::{Outcome, Reason, Rejection};
use crate::path;
use crate::port::{ReadError, Requests};

/// How often one transaction is sent. Each send after the second one needs another process that created, or a server
/// that removed, one of its containers since the read before it.
const MAX_SENDS: u32 = 8;

/// How many containers are remembered, at least: the minutes of two weeks, or the lanes of a busy client. It is half a
/// megabyte. A forgotten one costs one rejected multi and one read.
const SEEN: usize = 16_384;

/// The containers that a session has seen, by their hashes. A wrong guess costs time only.
#[derive(Debug, Default)]
pub struct SeenParents {
    recent: BTreeSet<u64>,
    older: BTreeSet<u64>,
}

impl SeenParents {
    fn has(&self, parent: &str) -> bool {
        let hash = xxh3_64(parent.as_bytes());
        self.recent.contains(&hash) || self.older.contains(&hash)
    }

    fn add(&mut self, parent: &str) {
        if self.recent.len() >= SEEN {
            self.older = std::mem::take(&mut self.recent);
        }
        self.recent.insert(xxh3_64(parent.as_bytes()));
    }
}

/// One transaction on its way, with its containers.
#[derive(Debug)]
pub struct Parents {
    parents: Vec<Parent>,
    sends: u32,
}

#[derive(Debug)]
struct Parent {
    path: String,
    /// The positions of the operations that create a znode in it, or in a container in it.
    children: Vec<usize>,
    /// Whether the next multi creates it.
    absent: bool,
}

/// What the driver does after a reply.
#[derive(Debug, PartialEq, Eq)]
pub enum Delivery {
    /// Return this outcome. A rejection names an operation of the transaction.
    Done(Outcome<()>),
    /// [Read](Parents::look) which containers exist, and send again.
    Look,
}

impl Parents {
    /// The containers that these operations need. `None` if they need none, as most.
    #[must_use]
    pub fn of<'a>(ops: impl Iterator<Item = &'a Op>, seen: &SeenParents) -> Option<Self> {
        let mut parents = Vec::<Parent>::new();
        let mut known = BTreeMap::new();
        for (at, op) in ops.enumerate() {
            let Op::Create { path, .. } = op else { continue };
            let inner = path::container_of(path);
            let outer = inner.and_then(path::container_of);
            for parent in outer.into_iter().chain(inner) {
                let index = *known.entry(parent).or_insert_with(|| {
                    let absent = !seen.has(parent);
                    parents.push(Parent { path: parent.to_owned(), children: Vec::new(), absent });
                    parents.len() - 1
                });
                parents[index].children.push(at);
            }
        }
        (!parents.is_empty()).then_some(Self { parents, sends: 0 })
    }

    /// The operations that come first in the next multi.
    #[must_use]
    pub fn creates(&self) -> Vec<Op> {
        let create = |path| Op::Create { path, data: Vec::new(), lifetime: Lifetime::Container };
        self.absent().map(|parent| create(parent.path.clone())).collect()
    }

    fn absent(&self) -> impl Iterator<Item = &Parent> {
        self.parents.iter().filter(|parent| parent.absent)
    }

    /// Takes the outcome of the multi: [`Parents::creates`], then the operations of the transaction.
    pub fn answered(&mut self, seen: &mut SeenParents, outcome: Outcome<()>) -> Delivery {
        let rejection = match outcome {
            Outcome::Applied(()) => {
                self.parents.iter().for_each(|parent| seen.add(&parent.path));
                return Delivery::Done(Outcome::Applied(()));
            }
            Outcome::Unknown => return Delivery::Done(Outcome::Unknown),
            Outcome::Rejected(rejection) if rejection.is_whole() => {
                return Delivery::Done(Outcome::Rejected(rejection));
            }
            Outcome::Rejected(rejection) => rejection,
        };
        self.sends += 1;
        let creates = self.absent().count();
        let Rejection { at, reason } = rejection;
        let (at, is_parents) = match at.checked_sub(creates) {
            // A create of a container.
            None => {
                let parent = self.absent().nth(at).expect("there are more creates");
                let exists = reason == Reason::NodeExists;
                (parent.children[0], exists || reason == Reason::NoNode && self.lacks_outer(parent))
            }
            Some(at) => {
                let creates_child = || self.parents.iter().any(|parent| parent.children.contains(&at));
                (at, reason == Reason::NoNode && creates_child())
            }
        };
        if is_parents && self.sends < MAX_SENDS {
            return Delivery::Look;
        }
        // To the caller a container that it cannot get is missing.
        let reason = if is_parents { Reason::NoNode } else { reason };
        Delivery::Done(Outcome::Rejected(Rejection { at, reason }))
    }

    /// Whether a container that was considered present is missing: the one of this container.
    fn lacks_outer(&self, parent: &Parent) -> bool {
        let outer = path::container_of(&parent.path);
        self.parents.iter().any(|other| Some(&*other.path) == outer && !other.absent)
    }

    /// Reads which containers exist. The read is sent after the rejection arrived, so it is at least as new.
    ///
    /// # Errors
    /// The outcome of the transaction if a read was not answered: the last multi was rejected, and no other was sent.
    pub async fn look<Z: Requests + ?Sized>(&mut self, zk: &Z) -> Result<(), Outcome<()>> {
        for parents in self.parents.chunks_mut(MAX_READ_BATCH) {
            let paths = parents.iter().map(|parent| parent.path.clone()).collect();
            let found = zk.get_many(paths).await.map_err(|error| {
                let reason = match error {
                    ReadError::Disconnected => Reason::NotSent,
                    ReadError::Refused(reason) => Reason::Refused(reason.to_string()),
                };
                Outcome::Rejected(Rejection { at: 0, reason })
            })?;
            for (parent, node) in parents.iter_mut().zip(found) {
                parent.absent = node.is_none();
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
