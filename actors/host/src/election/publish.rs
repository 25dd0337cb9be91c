//! Telling the world, and withdrawing it in any case.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bellwether_core::machine::leadership::Inactive;
use bellwether_core::metric;
use bellwether_core::time::Millis;
use metrics::{counter, gauge};
use tokio::sync::watch;

use super::{LeadershipEvent, Subscriber};
use crate::clock;

/// Until when this node may act, on this process's monotonic clock. 0: it may not.
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

/// Owned by the actor's state: whichever way that ends, this says that the node leads no more.
pub(super) struct Publisher {
    permit: Permit,
    leadership: watch::Sender<LeadershipEvent>,
    subscribers: Vec<Subscriber>,
}

impl Publisher {
    pub(super) fn new(permit: Permit) -> (Self, watch::Receiver<LeadershipEvent>) {
        let (leadership, receiver) = watch::channel(LeadershipEvent::Inactive(Inactive::Idle));
        record(&LeadershipEvent::Inactive(Inactive::Idle));
        (Self { permit, leadership, subscribers: Vec::new() }, receiver)
    }

    pub(super) fn subscribe(&mut self, subscriber: Subscriber) {
        let present = self.leadership.borrow().clone();
        if subscriber(present) {
            self.subscribers.push(subscriber);
        }
    }

    pub(super) fn permit(&self, until: Option<Millis>) {
        self.permit.set(until);
    }

    pub(super) fn tell(&mut self, event: &LeadershipEvent) {
        let to = name(event);
        if name(&self.leadership.borrow()) != to {
            counter!(metric::LEADERSHIP_TRANSITIONS, "to" => to).increment(1);
        }
        record(event);
        self.leadership.send_replace(event.clone());
        self.subscribers.retain(|subscriber| subscriber(event.clone()));
    }
}

impl Drop for Publisher {
    fn drop(&mut self) {
        self.permit(None);
        self.tell(&LeadershipEvent::Inactive(Inactive::Idle));
    }
}

/// As the transitions' label says it.
fn name(event: &LeadershipEvent) -> &'static str {
    match event {
        LeadershipEvent::Inactive(_) => "inactive",
        LeadershipEvent::Paused { .. } => "paused",
        LeadershipEvent::Active { .. } => "active",
    }
}

fn record(event: &LeadershipEvent) {
    let (state, epoch) = match event {
        LeadershipEvent::Inactive(_) => (0, 0),
        LeadershipEvent::Paused { term } => (1, term.epoch()),
        LeadershipEvent::Active { term, .. } => (2, term.epoch()),
    };
    gauge!(metric::LEADERSHIP_STATE).set(f64::from(state));
    gauge!(metric::EPOCH).set(f64::from(epoch));
}
