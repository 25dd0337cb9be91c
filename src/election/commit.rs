//! Writes that only the leader can make.

use bellwether_core::machine::election::leadership::LeadershipState;
use bellwether_core::outcome::{Outcome, Rejection};
use bellwether_core::txn::Op;
use bellwether_host::election::ActiveTerm;

use super::Election;

/// What became of a leader's transaction that was not applied for certain.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CommitError {
    /// This node does not lead under that epoch now. Nothing was sent.
    #[error("this node does not lead under epoch {0} now: nothing was sent")]
    NotLeader(i32),
    /// Another leader has claimed since, or `/epoch` is gone. Nothing was changed, and nothing ever will be under
    /// this epoch.
    #[error("epoch {0} is over: another leader has claimed")]
    FencedOut(i32),
    /// ZooKeeper refused it. Nothing was changed.
    #[error("the transaction was rejected")]
    Rejected(#[source] Rejection),
    /// The connection was lost before the reply: applied or not. Read back what it would have changed.
    #[error("the connection was lost before the reply: read back whether the transaction was applied")]
    Unknown,
}

impl Election {
    /// Commits all operations, or none, as the leader of `epoch`. Paths are relative to the namespace.
    ///
    /// The epoch is the one under which the caller *decided*: after a change of leadership, even to this same
    /// node, a decision of before is refused.
    ///
    /// # Errors
    /// [`CommitError`]. A rejection's index counts the given operations from 0.
    ///
    /// # Ordering
    /// Transactions are sent in the order in which their futures are first polled.
    ///
    /// # Cancellation
    /// Dropping the future before it is polled sends nothing; later it cancels nothing, and the outcome is unknown.
    ///
    /// # Connection loss
    /// [`CommitError::Unknown`]: the transaction may have been applied, or may yet be when the session reconnects. It
    /// is applied under this epoch or never.
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
        // The session must be able to end while the answer is awaited.
        drop((zk, term));
        match committed.await {
            Outcome::Applied(()) => Ok(()),
            Outcome::Unknown => Err(CommitError::Unknown),
            Outcome::Rejected(rejection) if rejection.is_fenced_out() => {
                self.0.actor.fenced_out(epoch);
                Err(CommitError::FencedOut(epoch))
            }
            // The caller counts without the fence.
            Outcome::Rejected(Rejection { at, reason }) => {
                Err(CommitError::Rejected(Rejection { at: at.saturating_sub(1), reason }))
            }
        }
    }
}
