//! A watch reports each state once and waits for the next one.

use bellwether_core::machine::election::leadership::Inactive;
use futures::FutureExt;

use super::*;

#[test]
fn a_watch_reports_a_state_once_and_waits_for_another() {
    let (states, seen) = watch::channel(State::<ActiveTerm>::Inactive(Inactive::Idle));
    let mut watch = Watch::new(seen);
    let inactive = LeadershipState::Inactive(Inactive::Idle);
    assert_eq!(watch.changed().now_or_never(), Some(inactive));
    assert_eq!(watch.changed().now_or_never(), None);
    states.send_replace(State::Inactive(Inactive::Standby));
    assert_eq!(watch.changed().now_or_never(), None, "it is still inactive");
    assert_eq!(watch.active().now_or_never(), None);
    drop(states);
    assert_eq!(watch.changed().now_or_never(), None, "the election has ended: nothing changes any more");
}
