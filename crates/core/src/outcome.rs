//! The three outcomes of a write.
//!
//! A write was applied, was definitely refused, or nobody here knows. The third is normal: a connection
//! breaks after the server committed and before its reply arrives, and the request may even be applied
//! *after* we have reconnected. An unknown outcome is resolved by reading back what the write would have
//! changed, never by a blind retry.

/// What became of a write.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Outcome<T> {
    /// The server said so.
    Applied(T),
    /// The server refused it, or it was never sent: nothing changed and nothing will.
    Rejected(Rejection),
    /// The connection was lost before the reply: applied, or not, or not yet.
    Unknown,
}

impl<T> Outcome<T> {
    /// Maps the applied value.
    pub fn map<U>(self, f: impl FnOnce(T) -> U) -> Outcome<U> {
        match self {
            Self::Applied(value) => Outcome::Applied(f(value)),
            Self::Rejected(rejection) => Outcome::Rejected(rejection),
            Self::Unknown => Outcome::Unknown,
        }
    }
}

/// The position of the epoch's check in a leader's transaction.
const EPOCH_CHECK: usize = 0;

/// A definite refusal.
#[derive(Debug, Clone, PartialEq, Eq, Hash, thiserror::Error)]
#[error("operation {at} was rejected: {reason}")]
pub struct Rejection {
    /// Index of the operation that failed; 0 for a single operation or a request refused as a whole.
    pub at: usize,
    /// Why.
    pub reason: Reason,
}

impl Rejection {
    /// Whether the request was refused as a whole, for nothing that any of its operations is about: it says
    /// nothing about epochs, versions or entries, and may be sent again later.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        match self.reason {
            Reason::NoNode
            | Reason::NodeExists
            | Reason::BadVersion
            | Reason::NotEmpty
            | Reason::NoAuth
            | Reason::Other(_) => false,
            Reason::NotSent | Reason::OverBudget(_) | Reason::Refused(_) => true,
        }
    }

    /// Whether a leader's transaction was refused because its epoch is over. The check of the epoch is the first operation of
    /// each: [`txn::fence`](crate::txn::fence).
    #[must_use]
    pub fn is_fenced_out(&self) -> bool {
        self.at == EPOCH_CHECK && self.is_fence()
    }

    /// Whether a check failed because its znode has another version, or is gone: what a fence is for.
    #[must_use]
    pub fn is_fence(&self) -> bool {
        matches!(self.reason, Reason::BadVersion | Reason::NoNode)
    }
}

/// Why a request was definitely refused.
#[derive(Debug, Clone, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Reason {
    /// The znode, or the parent of the one to create, is absent.
    #[error("no such znode")]
    NoNode,
    /// The znode is there already.
    #[error("the znode exists")]
    NodeExists,
    /// The znode has another version.
    #[error("the znode has another version")]
    BadVersion,
    /// The znode to delete has children.
    #[error("the znode has children")]
    NotEmpty,
    /// ACLs forbid it.
    #[error("not authorised")]
    NoAuth,
    /// It was never handed to ZooKeeper, because the session was not connected.
    #[error("not sent: the session is not connected")]
    NotSent,
    /// It breaks a budget and was never sent.
    #[error("not sent: {0}")]
    OverBudget(String),
    /// The server refused the request as a whole, for nothing that is in it: it is throttled, say, or read-only.
    #[error("ZooKeeper refused the request: {0}")]
    Refused(String),
    /// Another definite server code about this operation.
    #[error("ZooKeeper refused it: {0}")]
    Other(String),
}
