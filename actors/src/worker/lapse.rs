//! How long the run of a job with a lane may go on.
//!
//! After the last instant at which its session can be trusted, the leader may give the lane to the next job (S6). So a run
//! does not begin then, it ends then, and its result does not count. The host of the runs asks here at a run's beginning,
//! when it has an end, and at each time that the answer names.

use bellwether_core::time::Millis;

/// When to ask again; `None` if the run is over. The trust may have been renewed by then.
#[must_use]
pub fn next_look(trusted_until: Millis, now: Millis) -> Option<Millis> {
    (now < trusted_until).then_some(trusted_until)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_with_a_lane_ends_with_the_trust_in_its_session() {
        assert_eq!(next_look(Millis(10), Millis(9)), Some(Millis(10)));
        assert_eq!(next_look(Millis(10), Millis(10)), None);
    }
}
