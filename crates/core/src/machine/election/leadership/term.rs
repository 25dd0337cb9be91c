//! The permission to lead.

use uuid::Uuid;

use crate::txn::{self, Claim, Op};

/// One leadership of one session: what a leader's every write is fenced with.
///
/// Its fields are private and only [`super::Leadership`] makes one, from a claim that ZooKeeper applied: whoever
/// holds a term has held the epoch.
///
/// ```compile_fail,E0451
/// # use bellwether_core::machine::election::leadership::Term;
/// fn forge(term: Term) -> Term {
///     Term { epoch: term.epoch() + 1, ..term }
/// }
/// ```
///
/// Epochs of two terms never alias: a `Set` of `/epoch` is applied to one version once, and a claim passes over
/// every epoch that its process has seen should an operator have deleted the znode (S4).
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
            candidate: claim.candidate().to_owned(),
            token: claim.token(),
        }
    }

    /// The version of `/epoch`.
    #[must_use]
    pub fn epoch(&self) -> i32 {
        self.epoch
    }

    /// The ZooKeeper session that it belongs to and ends with.
    #[must_use]
    pub fn session(&self) -> i64 {
        self.session
    }

    /// The path of the candidate znode.
    #[must_use]
    pub fn candidate(&self) -> &str {
        &self.candidate
    }

    /// Stands in `/epoch` while the term is the current one.
    #[must_use]
    pub fn token(&self) -> Uuid {
        self.token
    }

    /// The first operation of every multi that the leader sends (S3).
    #[must_use]
    pub fn fence(&self) -> Op {
        txn::fence(self.epoch)
    }
}
