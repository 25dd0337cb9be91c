//! Decides between sending a submission and giving it up at its deadline.

use std::sync::{Mutex, MutexGuard, PoisonError};

use bellwether_core::segment::MemberId;

/// Shared by the caller, which may give up, and the batcher, which may send. Exactly one of them wins. So a caller
/// that gave up first knows that nothing was sent and nothing will be.
#[derive(Debug, Default)]
pub(super) struct SendGate(Mutex<State>);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum State {
    #[default]
    Waiting,
    Sent(SentAs),
    Abandoned,
}

/// What a submission was sent as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SentAs {
    /// A record with the id of the submission.
    Record,
    /// A member of a segment, whose id the batcher has assigned.
    Member(MemberId),
}

impl SendGate {
    /// The batcher is about to send. Returns `false` if the caller has given up.
    pub(super) fn send(&self, sent_as: SentAs) -> bool {
        let mut state = self.lock();
        if *state == State::Waiting {
            *state = State::Sent(sent_as);
        }
        matches!(*state, State::Sent(_))
    }

    /// The pending send did not happen, and no earlier one did either.
    pub(super) fn unsend(&self) {
        let mut state = self.lock();
        if matches!(*state, State::Sent(_)) {
            *state = State::Waiting;
        }
    }

    /// The caller gives up.
    ///
    /// # Errors
    /// The job was sent, or may have been: as what.
    pub(super) fn abandon(&self) -> Result<(), SentAs> {
        let mut state = self.lock();
        if let State::Sent(sent_as) = *state {
            return Err(sent_as);
        }
        *state = State::Abandoned;
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use bellwether_core::segment::SegmentId;
    use uuid::Uuid;

    use super::*;

    #[test]
    fn only_one_side_decides() {
        let given_up = SendGate::default();
        assert_eq!(given_up.abandon(), Ok(()));
        assert!(!given_up.send(SentAs::Record));

        let sent = SendGate::default();
        assert!(sent.send(SentAs::Record) && sent.send(SentAs::Record));
        assert_eq!(sent.abandon(), Err(SentAs::Record));

        sent.unsend();
        assert_eq!(sent.abandon(), Ok(()));
        sent.unsend();
        assert!(!sent.send(SentAs::Record), "it stays abandoned");
    }

    #[test]
    fn a_caller_learns_the_id_under_which_its_job_was_sent() {
        let segment = SegmentId::new(Uuid::nil(), 4, 1).unwrap();
        let member = SentAs::Member(MemberId { segment, number: 3 });
        let gate = SendGate::default();
        assert!(gate.send(member));
        assert_eq!(gate.abandon(), Err(member));
        gate.unsend();
        assert!(gate.send(SentAs::Record), "its segment was taken apart before it was sent");
        assert_eq!(gate.abandon(), Err(SentAs::Record));
    }
}
