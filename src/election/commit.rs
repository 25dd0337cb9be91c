//! Writes that only the leader can make.

use bellwether_core::machine::election::leadership::LeadershipState;
use bellwether_core::outcome::{Outcome, Rejection};
use bellwether_core::txn::Op;
use bellwether_host::election::ActiveTerm;

use super::Election;

/// A leader's transaction is not known to be applied.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
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
    /// znodes back.
    #[error("the connection was lost before the reply: read back whether the transaction was applied")]
    Unknown,
}

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
