//! The term of a leader.

use uuid::Uuid;

use crate::txn::{self, Claim, Op};

/// One leadership of one session: fences every write of the leader.
///
/// Its fields are private, and only [`super::Leadership`] creates one, from a claim that ZooKeeper applied: a term
/// proves that its owner has held the epoch.
///
/// ```compile_fail,E0451
/// # use bellwether_core::machine::election::leadership::Term;
/// fn forge(term: Term) -> Term {
///     Term { epoch: term.epoch() + 1, ..term }
/// }
/// ```
///
/// Epochs of two terms never alias: a `Set` of `/epoch` is applied to a version only once, and after an operator
/// deleted the znode, a claim skips every epoch that its process has seen (S4).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Term {
    epoch: i32,
    session: i64,
    candidate: String,
    token: Uuid,
}

impl Term {
    pub(super) fn claimed(claim: Claim) -> Self {
        Self {
            epoch: claim.epoch(),
            session: claim.session(),
            candidate: claim.seat().candidate().to_owned(),
            token: claim.token(),
        }
    }

    /// Returns the version of `/epoch`.
    #[must_use]
    pub fn epoch(&self) -> i32 {
        self.epoch
    }

    /// Returns the ZooKeeper session of the term. The term ends with it.
    #[must_use]
    pub fn session(&self) -> i64 {
        self.session
    }

    /// Returns the path of the candidate znode.
    #[must_use]
    pub fn candidate(&self) -> &str {
        &self.candidate
    }

    /// Returns the token stored in `/epoch` while the term is the current one.
    #[must_use]
    pub fn token(&self) -> Uuid {
        self.token
    }

    /// Returns the first operation of every multi that the leader sends (S3).
    #[must_use]
    pub fn fence(&self) -> Op {
        txn::fence(self.epoch)
    }
}
