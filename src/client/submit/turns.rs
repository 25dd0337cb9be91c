//! The order of the submissions of a lane, while their payloads are encoded.
//!
//! The batcher orders the jobs of a lane as it receives them. Codecs take different times, so each submission waits here
//! until the earlier ones of its lane have reached the batcher or were dropped.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bellwether_core::name::Lane;
use tokio::sync::oneshot;

/// The submissions with a lane that have not reached the batcher.
#[derive(Debug, Clone, Default)]
pub(in crate::client) struct Turns(Arc<Mutex<Waiting>>);

#[derive(Debug, Default)]
struct Waiting {
    lanes: BTreeMap<Lane, Queue>,
    next: u64,
}

/// The turns of one lane in their order. All but the first one have the sender that wakes them.
type Queue = BTreeMap<u64, Option<oneshot::Sender<()>>>;

/// The place of a submission among the submissions of its lane. Dropping it lets the next one go.
#[derive(Debug)]
pub(super) struct Turn {
    turns: Turns,
    lane: Lane,
    number: u64,
    /// `None` once the turn has come.
    comes: Option<oneshot::Receiver<()>>,
}

impl Turns {
    /// Takes the next place in a lane; `None` for a job without one.
    pub(super) fn take(&self, lane: Option<&Lane>) -> Option<Turn> {
        let lane = lane?.clone();
        let mut waiting = self.lock();
        let number = waiting.next;
        waiting.next += 1;
        let queue = waiting.lanes.entry(lane.clone()).or_default();
        let (wake, comes) = oneshot::channel();
        let (wake, comes) = if queue.is_empty() { (None, None) } else { (Some(wake), Some(comes)) };
        queue.insert(number, wake);
        Some(Turn { turns: self.clone(), lane, number, comes })
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Turn {
    /// Waits until the turns before it have ended.
    pub(super) async fn come(mut self) -> Self {
        if let Some(comes) = &mut self.comes {
            comes.await.expect("its sender is in the queue until the turn comes");
        }
        self.comes = None;
        self
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut waiting = self.turns.lock();
        let Some(queue) = waiting.lanes.get_mut(&self.lane) else { return };
        queue.remove(&self.number);
        match queue.first_entry() {
            Some(mut first) => {
                if let Some(wake) = first.get_mut().take() {
                    // The turn owns the receiver, and takes itself out of the queue before it drops it.
                    wake.send(()).expect("a turn in the queue has its receiver");
                }
            }
            None => {
                waiting.lanes.remove(&self.lane);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    fn lane(name: &str) -> Lane {
        Lane::new(name).unwrap()
    }

    #[test]
    fn a_turn_comes_when_the_turns_before_it_in_its_lane_have_ended() {
        let turns = Turns::default();
        let take = |name| turns.take(Some(&lane(name))).unwrap();
        let (first, second, other) = (take("a"), take("a"), take("b"));
        assert!(turns.take(None).is_none());
        assert!(other.come().now_or_never().is_some());
        let mut second = Box::pin(second.come());
        assert!(second.as_mut().now_or_never().is_none());
        drop(first.come().now_or_never().unwrap());
        assert!(second.as_mut().now_or_never().is_some());
    }

    #[test]
    fn a_dropped_turn_that_still_waited_lets_no_later_one_overtake() {
        let turns = Turns::default();
        let take = || turns.take(Some(&lane("a"))).unwrap();
        let (first, second, third) = (take(), take(), take());
        let mut second = Box::pin(second.come());
        assert!(second.as_mut().now_or_never().is_none());
        drop(second);
        let mut third = Box::pin(third.come());
        assert!(third.as_mut().now_or_never().is_none(), "the first turn has not ended");
        drop(first);
        assert!(third.as_mut().now_or_never().is_some());
    }

    #[test]
    fn a_lane_without_a_submission_takes_no_memory() {
        let turns = Turns::default();
        for _ in 0..2 {
            let both = (turns.take(Some(&lane("a"))), turns.take(Some(&lane("a"))));
            drop(both);
            assert!(turns.lock().lanes.is_empty());
        }
    }
}
