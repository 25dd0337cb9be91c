//! What happens to jobs, as it happens: one watch for all who follow.
//!
//! ```text
//! ZooKeeper ──one recursive watch──▶ hub ──batched reads──▶ ring of events ──▶ each follower, at its own pace
//! ```
//!
//! The first [`Events`] of a client starts its hub, the last one ends it: a client that nobody follows costs ZooKeeper
//! nothing. The hub hears of every entry, assignment and deletion, in the order in which they were committed, and reads
//! the records of the jobs concerned, a hundred at a time. So a job that goes through several states while its record is
//! being read is told in the last of them: **states may be left out, the last one never is**, unless a follower is told
//! that it missed something. What is told is what was read, so it is never invented.
//!
//! Memory is bounded: the hub holds [`MAX_PENDING`] jobs whose record is to be read and a ring of [`RING`] events, however
//! many follow. A follower that falls behind by more loses the oldest, and hears how many ([`Heard::Missed`]). When the
//! connection is lost nobody knows what happened until it is back ([`Heard::Gap`]): who needs the whole truth lists.

mod hub;

use std::sync::{Arc, PoisonError, Weak};

use bellwether_core::name::{JobId, Kind, WorkerId};
use serde::Serialize;
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};

use super::Client;
use super::view::State;
use hub::{Hub, Sent};

/// Events that a follower may be behind: about a second of what one ensemble commits, and a megabyte.
pub const RING: usize = 4_096;

/// Jobs that the hub may be behind; beyond it all are told of a gap instead.
pub const MAX_PENDING: usize = 16_384;

/// A job is in another state than before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Event {
    /// Which job.
    pub job: JobId,
    /// Its kind; `None` when its record cannot be read.
    pub kind: Option<Kind>,
    /// Where it is now.
    pub state: State,
    /// The worker that has it, while it runs.
    pub worker: Option<WorkerId>,
    /// The attempt under way, or the last that was closed; 0 before the first.
    pub attempt: u32,
    /// 1, and one more for each time that it was opened again.
    pub generation: u32,
    /// The last error, unless it succeeded.
    pub error: Option<String>,
}

/// What a follower hears.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Heard {
    /// Of a job.
    Event(Arc<Event>),
    /// So many events were lost on this follower, which was too slow for them.
    Missed(u64),
    /// Some may have been lost on all, as the connection was lost or too much happened at once.
    Gap,
}

/// Follows what happens to jobs; see [`Client::events`]. The client's session lives as long as it.
#[derive(Debug)]
pub struct Events {
    receiver: broadcast::Receiver<Sent>,
    hub: Arc<Hub>,
}

impl Client {
    /// Follows what happens to all jobs of the namespace from now on.
    ///
    /// Must be called in a tokio runtime.
    #[must_use]
    pub fn events(&self) -> Events {
        let mut known = self.0.events.lock().unwrap_or_else(PoisonError::into_inner);
        let hub = known.upgrade().filter(|hub| !hub.has_ended()).unwrap_or_else(|| {
            let hub = Arc::new(Hub::start(self.0.link.clone()));
            *known = Arc::downgrade(&hub);
            hub
        });
        Events { receiver: hub.subscribe(), hub }
    }
}

/// The hub, if somebody follows.
pub(super) type Known = std::sync::Mutex<Weak<Hub>>;

impl Events {
    /// Waits until the watch is set: what happens from then on is told. `false` when the client was closed.
    pub async fn watching(&mut self) -> bool {
        self.hub.watching().await
    }

    /// The next one; `None` once the client is closed or its namespace refused.
    ///
    /// # Cancellation
    /// A dropped call loses nothing.
    pub async fn next(&mut self) -> Option<Heard> {
        heard(self.receiver.recv().await)
    }

    /// As [`Events::next`], when there is one already.
    pub fn try_next(&mut self) -> Option<Heard> {
        match self.receiver.try_recv() {
            Ok(Sent::Heard(heard)) => Some(heard),
            Err(TryRecvError::Lagged(missed)) => Some(Heard::Missed(missed)),
            // The next wait tells the end again: the hub that has ended is kept by nobody.
            Ok(Sent::End) | Err(TryRecvError::Empty | TryRecvError::Closed) => None,
        }
    }
}

fn heard(received: Result<Sent, RecvError>) -> Option<Heard> {
    match received {
        Ok(Sent::Heard(heard)) => Some(heard),
        Err(RecvError::Lagged(missed)) => Some(Heard::Missed(missed)),
        Ok(Sent::End) | Err(RecvError::Closed) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn who_is_slower_than_the_ring_hears_how_many_it_missed_and_the_last() {
        let (ring, mut follower) = broadcast::channel(RING);
        let sent = RING + 7;
        for missed in 0..sent {
            // Told apart by a number.
            ring.send(Sent::Heard(Heard::Missed(missed as u64))).unwrap();
        }
        assert_eq!(heard(follower.recv().await), Some(Heard::Missed(7)), "it was too slow for so many");
        for next in 7..sent {
            assert_eq!(heard(follower.recv().await), Some(Heard::Missed(next as u64)));
        }
        ring.send(Sent::End).unwrap();
        assert_eq!(heard(follower.recv().await), None);
    }
}
