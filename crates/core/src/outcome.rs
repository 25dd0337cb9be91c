//! The three outcomes of a write.
//!
//! A write was applied, was definitely rejected, or its outcome is unknown. The third is normal: a connection may break
//! after the server committed and before its reply arrives, and the request may even be applied *after* the client has
//! reconnected. An unknown outcome is resolved by reading what the write would have changed, never by a blind retry.

use crate::remedy::ErrorClass;

/// The outcome of a write.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Outcome<T> {
    /// The server confirmed it.
    Applied(T),
    /// The server rejected it, or it was never sent: nothing was changed and nothing will be.
    Rejected(Rejection),
    /// The connection was lost before the reply: the write was applied, was not applied, or may still be applied.
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

/// A definite rejection.
#[derive(Debug, Clone, PartialEq, Eq, Hash, thiserror::Error)]
#[error("operation {at} was rejected: {reason}")]
pub struct Rejection {
    /// Index of the operation that failed; 0 for a single operation or for a request rejected as a whole.
    pub at: usize,
    /// Why it failed.
    pub reason: Reason,
}

impl Rejection {
    /// Whether the request was rejected as a whole, for a reason that is not about any of its operations. It does
    /// not imply anything about epochs, versions or entries, and the request may be sent again later.
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

    /// Whether a leader's transaction was rejected because its epoch has ended. The check of the epoch is the first
    /// operation of each transaction of a leader: [`txn::fence`](crate::txn::fence).
    #[must_use]
    pub fn is_fenced_out(&self) -> bool {
        self.at == EPOCH_CHECK && self.is_fence()
    }

    /// Whether a check failed because its znode has another version or was deleted, which is the purpose of a fence.
    #[must_use]
    pub fn is_fence(&self) -> bool {
        matches!(self.reason, Reason::BadVersion | Reason::NoNode)
    }
}

/// Why a request was definitely rejected.
#[derive(Debug, Clone, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Reason {
    /// The znode, or the parent of the one to create, is absent.
    #[error("no such znode")]
    NoNode,
    /// The znode exists.
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
    /// The request was never handed to ZooKeeper, because the session was not connected.
    #[error("not sent: the session is not connected")]
    NotSent,
    /// The request exceeds a budget and was never sent.
    #[error("not sent: {0}")]
    OverBudget(String),
    /// The server refused the request as a whole, not because of an operation: for example, it is throttled or
    /// read-only.
    #[error("ZooKeeper refused the request: {0}")]
    Refused(String),
    /// Another definite error code of the server for this operation.
    #[error("ZooKeeper refused it: {0}")]
    Other(String),
}

impl Reason {
    /// Returns the class of the rejection, for a request whose caller did not expect it.
    #[must_use]
    pub fn class(&self) -> ErrorClass {
        match self {
            // The server is throttled or read-only, which passes.
            Self::NotSent | Self::Refused(_) => ErrorClass::Unavailable,
            Self::OverBudget(_) => ErrorClass::Invalid,
            Self::NoNode
            | Self::NodeExists
            | Self::BadVersion
            | Self::NotEmpty
            | Self::NoAuth
            | Self::Other(_) => ErrorClass::Refused,
        }
    }
}

crate::impl_remedy!(Reason);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_changed_or_deleted_znode_fails_a_fence_and_only_the_first_check_is_the_epochs() {
        for (reason, fence) in [
            (Reason::BadVersion, true),
            (Reason::NoNode, true),
            (Reason::NodeExists, false),
            (Reason::NotEmpty, false),
            (Reason::NoAuth, false),
        ] {
            let at = |at| Rejection { at, reason: reason.clone() };
            assert_eq!((at(0).is_fence(), at(0).is_fenced_out()), (fence, fence), "{reason:?}");
            assert_eq!((at(1).is_fence(), at(1).is_fenced_out()), (fence, false), "{reason:?}");
        }
    }

    #[test]
    fn a_request_that_was_not_sent_or_refused_was_rejected_as_a_whole() {
        for (reason, whole) in [
            (Reason::NotSent, true),
            (Reason::OverBudget(String::new()), true),
            (Reason::Refused(String::new()), true),
            (Reason::NoNode, false),
            (Reason::NodeExists, false),
            (Reason::BadVersion, false),
            (Reason::NotEmpty, false),
            (Reason::NoAuth, false),
            (Reason::Other(String::new()), false),
        ] {
            assert_eq!(Rejection { at: 0, reason: reason.clone() }.is_whole(), whole, "{reason:?}");
        }
    }
}
