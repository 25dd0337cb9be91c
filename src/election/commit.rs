//! Writes that only the leader can make.

use bellwether_core::machine::election::leadership::LeadershipState;
use bellwether_core::outcome::{Outcome, Reason, Rejection};
use bellwether_core::remedy::{ErrorClass, Remedy};
use bellwether_core::txn::Op;
use bellwether_host::election::ActiveTerm;

use super::Election;

/// A leader's transaction is not known to be applied.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CommitError {
    /// This node is not the leader under that epoch now. Nothing was sent.
    #[error("this node does not lead under epoch {0} now: nothing was sent")]
    NotLeader(i32),
    /// Another leader has claimed a later epoch, or `/epoch` was deleted. Nothing was changed, and no later write
    /// under this epoch can succeed.
    #[error("epoch {0} has ended: another leader has claimed a later epoch")]
    FencedOut(i32),
    /// ZooKeeper rejected the transaction. Nothing was changed.
    #[error("the transaction was rejected")]
    Rejected(#[source] Rejection),
    /// The connection was lost before the reply. The transaction may have been applied: read the affected
    /// znodes back. Committing it again is safe only if its own checks reject the second copy.
    #[error("the connection was lost before the reply: read back whether the transaction was applied")]
    Unknown,
}

impl CommitError {
    /// Returns the class of the error. A leader that has lost its epoch decides again, under its next epoch.
    #[must_use]
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::NotLeader(_) | Self::FencedOut(_) => ErrorClass::Conflict,
            Self::Rejected(Rejection { reason, .. }) => match reason {
                // The caller's own operations and checks: the state is not as it decided.
                Reason::NoNode | Reason::NodeExists | Reason::BadVersion | Reason::NotEmpty => {
                    ErrorClass::Conflict
                }
                Reason::NoAuth
                | Reason::NotSent
                | Reason::OverBudget(_)
                | Reason::Refused(_)
                | Reason::Other(_) => reason.class(),
            },
            Self::Unknown => ErrorClass::Unknown,
        }
    }

    /// Returns what the caller can do.
    #[must_use]
    pub fn remedy(&self) -> Remedy {
        match self {
            Self::Unknown => Remedy::ReadBack,
            error => error.class().remedy(),
        }
    }
}

bellwether_core::impl_remedy!(@retryable CommitError);

impl Election {
    /// Commits all operations in one transaction as the leader of `epoch`. Paths are relative to the namespace.
    ///
    /// Pass the epoch under which the caller *decided*. After a change of leadership, even back to this node, a
    /// decision that was made under an earlier epoch is refused.
    ///
    /// # Errors
    /// [`CommitError`]. The index in a rejection counts the given operations from 0.
    ///
    /// # Ordering
    /// Transactions are sent in the order in which their futures are first polled.
    ///
    /// # Cancellation
    /// A future that is dropped before its first poll sends nothing. Dropping it later cancels nothing, and the
    /// outcome is unknown.
    ///
    /// # Connection loss
    /// Returns [`CommitError::Unknown`]: the transaction may have been applied, or may be applied when the session
    /// reconnects. It is never applied under another epoch.
    pub async fn commit(&self, epoch: i32, mut ops: Vec<Op>) -> Result<(), CommitError> {
        let leadership = self.0.actor.leadership();
        let present = match &*leadership.borrow() {
            LeadershipState::Active(ActiveTerm { zk, term }) if term.epoch() == epoch => {
                Some((zk.clone(), term.clone()))
            }
            LeadershipState::Active(_) | LeadershipState::Paused { .. } | LeadershipState::Inactive(_) => {
                None
            }
        };
        let Some((zk, term)) = present.filter(|_| self.is_leader()) else {
            return Err(CommitError::NotLeader(epoch));
        };
        ops.insert(0, term.fence());
        let committed = zk.commit(ops);
        // Dropped, so that the session can end while the reply is awaited.
        drop((zk, term));
        match committed.await {
            Outcome::Applied(()) => Ok(()),
            Outcome::Unknown => Err(CommitError::Unknown),
            Outcome::Rejected(rejection) if rejection.is_fenced_out() => {
                self.0.actor.fenced_out(epoch);
                Err(CommitError::FencedOut(epoch))
            }
            // The caller's operations are counted without the fence.
            Outcome::Rejected(Rejection { at, reason }) => {
                Err(CommitError::Rejected(Rejection { at: at.saturating_sub(1), reason }))
            }
        }
    }
}
