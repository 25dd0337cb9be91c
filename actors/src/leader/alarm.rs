//! A timer for wall clock times.

use std::time::Duration;

use bellwether_core::time::WallMillis;

use crate::{Concern, Context};

/// The longest wait. A changed wall clock, or a new minute, is noticed within this time.
const LONGEST_WAIT: Duration = Duration::from_secs(5);

/// A timer for the earliest time that the machine waits for.
pub(super) struct Alarm<K> {
    key: K,
    due: Option<WallMillis>,
}

impl<K: Clone> Alarm<K> {
    pub(super) fn start<C: Concern<Key = K>>(cx: &mut Context<'_, C>, key: K, tick: C::Msg) -> Self {
        cx.after(key.clone(), LONGEST_WAIT, tick);
        Self { key, due: None }
    }

    /// Sets the timer to `due`, unless it is already set to that time and has not fired.
    pub(super) fn set<C: Concern<Key = K>>(
        &mut self,
        cx: &mut Context<'_, C>,
        due: Option<WallMillis>,
        fired: bool,
        tick: C::Msg,
    ) {
        if !fired && due == self.due {
            return;
        }
        self.due = due;
        // A time that has passed waits for an answer, not for the timer.
        let ahead = due.map(|due| due.since(cx.wall)).filter(|ahead| !ahead.is_zero());
        cx.after(self.key.clone(), ahead.map_or(LONGEST_WAIT, |ahead| ahead.min(LONGEST_WAIT)), tick);
    }
}
