//! The end of a run that holds a lane.
//!
//! When the session can no longer be trusted, the leader may give the lane to the next job (S6). From then on a run
//! does not start, a running handler is stopped, and its result does not count. The host of the runs calls
//! [`next_check`] when a run starts, when it has a result, and at each time that `next_check` returns.

use bellwether_core::time::Millis;

/// Returns the time of the next call, or `None` if the run must end. The trust may have been renewed by then.
#[must_use]
pub fn next_check(trusted_until: Millis, now: Millis) -> Option<Millis> {
    (now < trusted_until).then_some(trusted_until)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_with_a_lane_ends_with_the_trust_in_its_session() {
        assert_eq!(next_check(Millis(10), Millis(9)), Some(Millis(10)));
        assert_eq!(next_check(Millis(10), Millis(10)), None);
    }
}
