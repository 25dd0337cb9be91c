//! The timer of a member that waits for times of the wall clock.

use std::time::Duration;

use bellwether_core::time::WallMillis;
use ractor::{ActorRef, Message};

use crate::task::{Owned, after};

/// The longest sleep: a wall clock that was set is noticed within it, and so is a new minute.
const LONGEST_SLEEP: Duration = Duration::from_secs(5);

pub(super) struct Alarm {
    due: Option<WallMillis>,
    _timer: Owned,
}

impl Alarm {
    pub(super) fn start<M: Message>(actor: &ActorRef<M>, tick: impl FnOnce() -> M + Send + 'static) -> Self {
        Self { due: None, _timer: after(actor, LONGEST_SLEEP, tick) }
    }

    /// Rings when that is due, unless it is set for it already and has not rung (`rang`).
    pub(super) fn set<M: Message>(
        &mut self,
        actor: &ActorRef<M>,
        now: WallMillis,
        due: Option<WallMillis>,
        rang: bool,
        tick: impl FnOnce() -> M + Send + 'static,
    ) {
        if !rang && due == self.due {
            return;
        }
        // What is due already waits for an answer, not for the time.
        let ahead = due.map(|due| due.since(now)).filter(|ahead| !ahead.is_zero());
        let wait = ahead.map_or(LONGEST_SLEEP, |ahead| ahead.min(LONGEST_SLEEP));
        *self = Self { due, _timer: after(actor, wait, tick) };
    }
}
