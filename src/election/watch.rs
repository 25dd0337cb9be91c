//! Following the leadership.

use bellwether_core::machine::election::leadership::LeadershipState;
use bellwether_host::election::ActiveTerm;
use tokio::sync::watch;

/// Follows a node's leadership. Changes that come close together are seen as the last of them.
#[derive(Debug, Clone)]
pub struct Watch {
    states: watch::Receiver<LeadershipState<ActiveTerm>>,
    seen: Option<Seen>,
}

/// What of a state makes it another one to a caller: its name and its epoch.
type Seen = (&'static str, Option<i32>);

fn seen(state: &LeadershipState) -> Seen {
    (state.as_str(), state.term().map(|term| term.epoch()))
}

impl Watch {
    pub(super) fn new(states: watch::Receiver<LeadershipState<ActiveTerm>>) -> Self {
        Self { states, seen: None }
    }

    /// The present state at the first call, and after that each next state: another of the three, or another epoch.
    /// Pending for ever once the election is closed and its last state was seen.
    ///
    /// # Cancellation
    /// Safe: a state that was not returned is returned by the next call.
    pub async fn changed(&mut self) -> LeadershipState {
        loop {
            let now = self.now();
            if self.seen != Some(seen(&now)) {
                self.seen = Some(seen(&now));
                return now;
            }
            self.next().await;
        }
    }

    /// Waits until this node leads, and gives the epoch.
    ///
    /// # Cancellation
    /// Safe.
    pub async fn active(&mut self) -> i32 {
        loop {
            let now = self.now();
            if let LeadershipState::Active(term) = &now {
                self.seen = Some(seen(&now));
                return term.epoch();
            }
            self.next().await;
        }
    }

    fn now(&mut self) -> LeadershipState {
        self.states.borrow_and_update().clone().map(|active| active.term)
    }

    /// Pending for ever when the election is closed.
    async fn next(&mut self) {
        if self.states.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}
