//! Following the leadership.

use bellwether_host::election::LeadershipEvent;
use tokio::sync::watch;

/// Where a node stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Leadership {
    /// It leads.
    Active {
        /// The fencing token of its term.
        epoch: i32,
    },
    /// It led and is cut off from ZooKeeper: it may lead on with the same epoch, or not.
    Paused {
        /// The fencing token of its term.
        epoch: i32,
    },
    /// It does not lead.
    Inactive,
}

impl From<&LeadershipEvent> for Leadership {
    fn from(event: &LeadershipEvent) -> Self {
        match event {
            LeadershipEvent::Active { term, .. } => Self::Active { epoch: term.epoch() },
            LeadershipEvent::Paused { term } => Self::Paused { epoch: term.epoch() },
            LeadershipEvent::Inactive(_) => Self::Inactive,
        }
    }
}

/// Follows a node's leadership. Changes that come close together are seen as the last of them.
#[derive(Debug, Clone)]
pub struct Watch {
    events: watch::Receiver<LeadershipEvent>,
    seen: Option<Leadership>,
}

impl Watch {
    pub(super) fn new(events: watch::Receiver<LeadershipEvent>) -> Self {
        Self { events, seen: None }
    }

    /// The present state at the first call, and each next state after that. Pending for ever once the election
    /// is closed and its last state was seen.
    ///
    /// # Cancellation
    /// Safe: a state that was not returned is returned by the next call.
    pub async fn changed(&mut self) -> Leadership {
        loop {
            let now = Leadership::from(&*self.events.borrow_and_update());
            if self.seen != Some(now) {
                self.seen = Some(now);
                return now;
            }
            if self.events.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    /// Waits until this node leads, and gives the epoch.
    ///
    /// # Cancellation
    /// Safe.
    pub async fn active(&mut self) -> i32 {
        loop {
            if let Leadership::Active { epoch } = Leadership::from(&*self.events.borrow_and_update()) {
                self.seen = Some(Leadership::Active { epoch });
                return epoch;
            }
            if self.events.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }
}
