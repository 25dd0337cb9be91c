//! Publishes the leadership to its subscribers, and withdraws it when the actor ends for any reason.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bellwether_core::machine::election::leadership::{Inactive, LeadershipState};
use bellwether_core::metric;
use bellwether_core::time::Millis;
use metrics::{counter, gauge};
use tokio::sync::{oneshot, watch};

use super::{ActiveTerm, Subscriber};
use crate::clock;

/// The time until which this node may act, on this process's monotonic clock. 0 means that it may not act.
#[derive(Debug, Clone, Default)]
pub(super) struct Permit(Arc<AtomicU64>);

impl Permit {
    pub(super) fn holds(&self) -> bool {
        clock::now().0 < self.0.load(Ordering::Acquire)
    }

    fn set(&self, until: Option<Millis>) {
        self.0.store(until.map_or(0, |until| until.0), Ordering::Release);
    }
}

/// The subscribers. The lock is held while a state is published, so a new subscriber receives the current state first
/// and misses none.
#[derive(Clone)]
pub(super) struct Publisher(Arc<Mutex<Subscribed>>);

struct Subscribed {
    leadership: watch::Sender<LeadershipState<ActiveTerm>>,
    subscribers: Vec<Subscriber>,
}

impl fmt::Debug for Publisher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Publisher")
    }
}

impl Publisher {
    pub(super) fn new() -> (Self, watch::Receiver<LeadershipState<ActiveTerm>>) {
        let (leadership, receiver) = watch::channel(LeadershipState::Inactive(Inactive::Idle));
        record(&LeadershipState::Inactive(Inactive::Idle));
        (Self(Arc::new(Mutex::new(Subscribed { leadership, subscribers: Vec::new() }))), receiver)
    }

    fn subscribed(&self) -> MutexGuard<'_, Subscribed> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn subscribe(&self, subscriber: Subscriber) {
        let mut subscribed = self.subscribed();
        let present = subscribed.leadership.borrow().clone();
        if subscriber(present) {
            subscribed.subscribers.push(subscriber);
        }
    }

    fn tell(&self, state: &LeadershipState<ActiveTerm>) {
        let mut subscribed = self.subscribed();
        let name = state.as_str();
        if subscribed.leadership.borrow().as_str() != name {
            counter!(metric::LEADERSHIP_TRANSITIONS, "state" => name).increment(1);
        }
        record(state);
        subscribed.leadership.send_replace(state.clone());
        subscribed.subscribers.retain(|subscriber| subscriber(state.clone()));
    }
}

/// Owned by the actor. When the actor ends for any reason, dropping this publishes that the node is not the leader.
pub(super) struct Publishing {
    publisher: Publisher,
    permit: Permit,
}

impl Publishing {
    pub(super) fn new(publisher: Publisher, permit: Permit) -> Self {
        Self { publisher, permit }
    }

    pub(super) fn permit(&self, until: Option<Millis>) {
        self.permit.set(until);
    }

    pub(super) fn tell(&self, state: &LeadershipState<ActiveTerm>) {
        self.publisher.tell(state);
    }
}

impl Drop for Publishing {
    fn drop(&mut self) {
        self.permit(None);
        self.tell(&LeadershipState::Inactive(Inactive::Idle));
    }
}

/// The callers that wait for the deletion of the candidate, by their number.
#[derive(Debug, Clone, Default)]
pub(super) struct StepDownCallers(Arc<Mutex<BTreeMap<u64, oneshot::Sender<()>>>>);

impl StepDownCallers {
    fn callers(&self) -> MutexGuard<'_, BTreeMap<u64, oneshot::Sender<()>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn wait(&self, caller: u64, done: oneshot::Sender<()>) {
        self.callers().insert(caller, done);
    }

    pub(super) fn answer(&self, caller: u64) {
        if let Some(done) = self.callers().remove(&caller)
            && done.send(()).is_err()
        {
            tracing::trace!("the caller that asked to step down no longer waits");
        }
    }

    /// Drops all callers, because the actor has ended and will not answer.
    pub(super) fn clear(&self) {
        self.callers().clear();
    }
}

fn record(state: &LeadershipState<ActiveTerm>) {
    let (number, epoch) = match state {
        LeadershipState::Inactive(_) => (0, 0),
        LeadershipState::Paused { term, .. } => (1, term.epoch()),
        LeadershipState::Active(ActiveTerm { term, .. }) => (2, term.epoch()),
    };
    gauge!(metric::LEADERSHIP_STATE).set(f64::from(number));
    gauge!(metric::EPOCH).set(f64::from(epoch));
}
