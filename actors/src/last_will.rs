//! A concern's will: operations that its host commits when the concern has ended for any reason.

use std::sync::Arc;
use std::time::Duration;

use bellwether_core::outcome::{Outcome, Reason, Rejection};
use bellwether_core::port::Session;
use bellwether_core::remedy::ErrorClass;
use bellwether_core::txn::Op;

/// The wait before a will is committed again.
const RETRY: Duration = Duration::from_millis(100);

/// Commits a will until its outcome is known or the session has ended, which makes the will void. A lost reply is
/// harmless: the next commit is rejected because the znodes no longer exist, which ends the retries. A permanent rejection, for
/// example for missing permissions, also ends them.
pub async fn carry_out<S: Future>(session: Arc<dyn Session>, ops: Vec<Op>, sleep: impl Fn(Duration) -> S) {
    repeat(|| session.has_ended(), || session.commit(ops.clone()), sleep).await;
}

async fn repeat<C, S>(has_ended: impl Fn() -> bool, commit: impl Fn() -> C, sleep: impl Fn(Duration) -> S)
where
    C: Future<Output = Outcome<()>>,
    S: Future,
{
    while !has_ended() {
        match commit().await {
            Outcome::Applied(()) | Outcome::Rejected(Rejection { reason: Reason::NoNode, .. }) => return,
            Outcome::Rejected(Rejection { reason, .. }) if reason.class() != ErrorClass::Unavailable => {
                tracing::warn!(%reason, "an actor has ended, and its last operations were rejected");
                return;
            }
            Outcome::Rejected(_) | Outcome::Unknown => {
                sleep(RETRY).await;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::future::ready;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::*;

    const LOST: Outcome<()> = Outcome::Unknown;

    fn rejected(reason: Reason) -> Outcome<()> {
        Outcome::Rejected(Rejection { at: 0, reason })
    }

    /// Returns how many of these outcomes were consumed. The session ends after the last one.
    fn commits(mut outcomes: Vec<Outcome<()>>) -> usize {
        let count = outcomes.len();
        outcomes.reverse();
        let outcomes = RefCell::new(outcomes);
        let commit = || ready(outcomes.borrow_mut().pop().unwrap());
        let done = pin!(repeat(|| outcomes.borrow().is_empty(), commit, ready));
        assert_eq!(done.poll(&mut Context::from_waker(Waker::noop())), Poll::Ready(()));
        count - outcomes.borrow().len()
    }

    #[test]
    fn a_will_is_committed_again_until_its_outcome_is_known() {
        assert_eq!(commits(vec![LOST, LOST, Outcome::Applied(()), LOST]), 3);
        assert_eq!(commits(vec![rejected(Reason::NotSent), Outcome::Applied(()), LOST]), 2);
    }

    #[test]
    fn after_a_lost_reply_a_will_ends_when_its_znodes_no_longer_exist() {
        assert_eq!(commits(vec![LOST, rejected(Reason::NoNode), LOST]), 2);
    }

    #[test]
    fn a_will_that_is_rejected_for_good_is_given_up() {
        assert_eq!(commits(vec![rejected(Reason::Refused("throttled".to_owned())), LOST]), 2);
        assert_eq!(commits(vec![LOST, rejected(Reason::NoAuth), LOST]), 2);
    }

    #[test]
    fn a_will_is_dropped_when_the_session_has_ended() {
        assert_eq!(commits(vec![LOST, LOST]), 2);
    }
}
