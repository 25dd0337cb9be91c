//! Watching changes of leadership.

use bellwether_core::machine::election::leadership::LeadershipState as State;
use bellwether_host::election::ActiveTerm;
use tokio::sync::watch;

use super::LeadershipState;

/// Watches a node's leadership. Of changes in quick succession only the last is seen.
#[derive(Debug, Clone)]
pub struct Watch {
    states: watch::Receiver<State<ActiveTerm>>,
    seen: Option<Seen>,
}

/// The parts of a state that callers distinguish: its name and its epoch.
type Seen = (&'static str, Option<i32>);

fn seen(state: &LeadershipState) -> Seen {
    (state.as_str(), state.term().map(|term| term.epoch()))
}

impl Watch {
    pub(super) fn new(states: watch::Receiver<State<ActiveTerm>>) -> Self {
        Self { states, seen: None }
    }

    /// Returns the current state on the first call, and after that each next state: another variant or another epoch.
    /// Pending forever once the election is closed and its last state was returned.
    ///
    /// # Cancellation
    /// Cancel safe: a state that was not returned is returned by the next call.
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

    /// Waits until this node is the leader and returns the epoch.
    ///
    /// # Cancellation
    /// Cancel safe.
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
        LeadershipState::of(&self.states.borrow_and_update())
    }

    /// Pending forever when the election is closed.
    async fn next(&mut self) {
        if self.states.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

#[cfg(test)]
mod tests;
