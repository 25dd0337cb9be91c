//! Events of jobs, as they happen: one watch for all followers.
//!
//! ```text
//! ZooKeeper ──one recursive watch──▶ hub ──batched reads──▶ ring of events ──▶ each follower, at its own pace
//! ```
//!
//! The first [`Events`] of a client starts its hub, the last one ends it: a client without followers causes no load
//! on ZooKeeper. The hub hears of every entry, assignment and deletion in commit order, and reads the records of the
//! affected jobs, up to a hundred at a time. After a read it collects changes for 25 ms, or until they are of a hundred
//! jobs. If a job passes several states in this time or while its record is being read, only the last one is reported: **intermediate states may be left out, the last state never is**, unless the follower is informed
//! that it missed events. Every reported state was read from ZooKeeper, and each end is reported once.
//!
//! The entry or the assignment of a [segment](bellwether_core::segment) is that of all of its members, and a chunk of succeeded members is
//! the end of these. A member that has left its segment for a record before the hub reads the segment may be reported where
//! the segment was; its own changes follow.
//!
//! Memory is bounded, however many followers there are: the hub holds up to [`EVENT_BACKLOG`] jobs whose records are to
//! be read, and a ring of [`EVENT_BUFFER`] events. A follower that falls further behind loses the oldest events and learns
//! how many ([`Notification::Missed`]). Changes during a connection loss are unknown ([`Notification::Gap`]): a follower that needs
//! the complete state must list the jobs.

mod hub;

use std::sync::{Arc, PoisonError, Weak};
use std::time::Duration;

use bellwether_core::name::{JobId, Kind, WorkerId};
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};

use super::Client;
use super::view::State;
use hub::{Hub, Sent};

/// How many events a follower may be behind: about a second of the commits of one ensemble, and a megabyte.
pub const EVENT_BUFFER: usize = 4_096;

/// How many jobs the hub may be behind. Beyond that, all followers hear of a gap instead.
pub const EVENT_BACKLOG: usize = 16_384;

/// A job changed its state.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Event {
    /// The job.
    pub job: JobId,
    /// Its kind; `None` when its record cannot be read.
    pub kind: Option<Kind>,
    /// Its new state.
    pub state: State,
    /// The worker that it is assigned to, while it runs.
    pub worker: Option<WorkerId>,
    /// The running attempt, or the last one that was closed; 0 before the first.
    pub attempt: u32,
    /// The generation: 1, plus one for each time that the job was opened again.
    pub generation: u32,
    /// The last error, unless the job succeeded.
    pub error: Option<String>,
    /// The time from the assignment to the end of the attempt, if the job has succeeded and both are known.
    pub run_time: Option<Duration>,
}

/// What a follower receives.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Notification {
    /// A job changed its state.
    Event(Arc<Event>),
    /// This follower was too slow and lost this number of events.
    Missed(u64),
    /// Events may have been lost for all followers: the connection was lost, or there were too many changes.
    Gap,
}

/// A follower of events; see [`Client::events`]. It keeps the client's session alive.
#[derive(Debug)]
pub struct Events {
    receiver: broadcast::Receiver<Sent>,
    hub: Arc<Hub>,
    has_ended: bool,
}

impl Client {
    /// Follows the events of all jobs of the namespace from now on.
    ///
    /// Must be called in a tokio runtime.
    #[must_use]
    pub fn events(&self) -> Events {
        let mut known = self.0.events.lock().unwrap_or_else(PoisonError::into_inner);
        let hub = known.upgrade().filter(|hub| !hub.has_ended()).unwrap_or_else(|| {
            let hub = Arc::new(Hub::start(self.0.session.clone()));
            *known = Arc::downgrade(&hub);
            hub
        });
        Events { receiver: hub.subscribe(), hub, has_ended: false }
    }
}

/// The hub, if there are followers.
pub(super) type Known = std::sync::Mutex<Weak<Hub>>;

impl Events {
    /// Waits until the watch is set: all later changes are reported. Returns `false` if the client was closed.
    pub async fn watching(&mut self) -> bool {
        self.hub.watching().await
    }

    /// Returns the next event; `None` once the client is closed or its namespace was refused.
    ///
    /// # Cancellation
    /// Cancel safe: a dropped call loses no event.
    pub async fn next(&mut self) -> Option<Notification> {
        // The channel stays open as long as this follower holds the hub.
        if self.has_ended {
            return None;
        }
        let heard = heard(self.receiver.recv().await);
        self.has_ended = heard.is_none();
        heard
    }

    /// Like [`Events::next`], but returns `None` immediately if there is no event yet.
    pub fn try_next(&mut self) -> Option<Notification> {
        match self.receiver.try_recv() {
            Ok(Sent::Notification(heard)) => Some(heard),
            Err(TryRecvError::Lagged(missed)) => Some(Notification::Missed(missed)),
            Ok(Sent::End) | Err(TryRecvError::Closed) => {
                // The next wait reports it again.
                self.has_ended = true;
                None
            }
            Err(TryRecvError::Empty) => None,
        }
    }
}

fn heard(received: Result<Sent, RecvError>) -> Option<Notification> {
    match received {
        Ok(Sent::Notification(heard)) => Some(heard),
        Err(RecvError::Lagged(missed)) => Some(Notification::Missed(missed)),
        Ok(Sent::End) | Err(RecvError::Closed) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_slow_follower_learns_how_many_events_it_missed() {
        let (ring, mut follower) = broadcast::channel(EVENT_BUFFER);
        let sent = EVENT_BUFFER + 7;
        for missed in 0..sent {
            // The number identifies the event.
            ring.send(Sent::Notification(Notification::Missed(missed as u64))).unwrap();
        }
        assert_eq!(
            heard(follower.recv().await),
            Some(Notification::Missed(7)),
            "the oldest events were lost"
        );
        for next in 7..sent {
            assert_eq!(heard(follower.recv().await), Some(Notification::Missed(next as u64)));
        }
        ring.send(Sent::End).unwrap();
        assert_eq!(heard(follower.recv().await), None);
    }
}
