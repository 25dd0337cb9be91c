//! The claim of an epoch, which turns the first candidate into a leader.

use uuid::Uuid;

use super::Op;
use crate::budget::MAX_TXN_OPS;
use crate::name::NodeId;
use crate::path;
use crate::time::WallMillis;
use crate::wire::encode;
use crate::worker::EpochRecord;

/// Raises `/epoch` to a version that no leader known to this process has ever had, if the candidate still exists.
///
/// A `Set` of version v creates exactly version v + 1 or fails. So the epoch is known before the reply arrives, and the
/// Stat of the reply, which some servers leave blank in a multi, is not needed. Normally one `Set` is enough. More are
/// needed after an operator deleted `/epoch`: its version would start at 0 again, and the token of a stale leader would
/// become valid again. So the used versions are skipped, in steps that fit a multi.
///
/// Epoch 0 is never claimed: a namespace may be created with `/epoch` or without it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Claim {
    candidate: String,
    session: i64,
    token: Uuid,
    from: Option<i32>,
    epoch: i32,
    target: i32,
}

/// The purpose of an operation of [`Claim::ops`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClaimStep {
    /// Checks the candidate.
    CheckCandidate,
    /// Creates `/epoch`, or raises its version.
    RaiseEpoch,
}

impl Claim {
    /// Plans a claim. `found` is the version of `/epoch`, if it exists; `highest` is the highest epoch known to
    /// have been claimed. `None` when all epochs are used, after 2³¹ claims.
    #[must_use]
    pub fn plan(
        candidate: String,
        session: i64,
        token: Uuid,
        found: Option<i32>,
        highest: i32,
    ) -> Option<Self> {
        const MOST_SETS: i32 = (MAX_TXN_OPS - 2) as i32;
        let base = found.unwrap_or(0);
        let target = base.max(highest).checked_add(1)?;
        Some(Self {
            candidate,
            session,
            token,
            from: found,
            epoch: target.min(base.saturating_add(MOST_SETS)),
            target,
        })
    }

    /// The version of `/epoch` after the claim was applied.
    #[must_use]
    pub fn epoch(&self) -> i32 {
        self.epoch
    }

    /// Whether [`Self::epoch`] is an epoch to lead with, and not only a step past used epochs.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.epoch == self.target
    }

    /// The candidate that must still exist.
    #[must_use]
    pub fn candidate(&self) -> &str {
        &self.candidate
    }

    /// The session that the candidate belongs to.
    #[must_use]
    pub fn session(&self) -> i64 {
        self.session
    }

    /// The unique token of this claim.
    #[must_use]
    pub fn token(&self) -> Uuid {
        self.token
    }

    /// The purpose of the operation at this position of [`Claim::ops`]. The first is the check; the others write
    /// `/epoch`.
    #[must_use]
    pub fn step(at: usize) -> ClaimStep {
        if at == 0 { ClaimStep::CheckCandidate } else { ClaimStep::RaiseEpoch }
    }

    /// The operations of the multi. The first is the check of the candidate: its version is 0, because its data is
    /// never set.
    #[must_use]
    pub fn ops(&self, node: &NodeId, since: WallMillis) -> Vec<Op> {
        let data =
            encode(&EpochRecord { node: node.clone(), session: self.session, token: self.token, since });
        let mut ops = vec![Op::Check { path: self.candidate.clone(), version: 0 }];
        if self.from.is_none() {
            ops.push(Op::create(path::EPOCH.to_owned(), data.clone()));
        }
        ops.extend((self.from.unwrap_or(0)..self.epoch).map(|version| Op::Set {
            path: path::EPOCH.to_owned(),
            data: data.clone(),
            version,
        }));
        ops
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(found: Option<i32>, highest: i32) -> Claim {
        Claim::plan("/election/c".into(), 7, Uuid::from_u128(1), found, highest).unwrap()
    }

    fn shape(claim: &Claim) -> Vec<String> {
        let node = NodeId::new("a").unwrap();
        let kind = |op: &Op| match op {
            Op::Check { path, version } => format!("check {path} {version}"),
            Op::Create { path, .. } => format!("create {path}"),
            Op::Set { path, version, .. } => format!("set {path} {version}"),
            Op::Delete { path, .. } => format!("delete {path}"),
        };
        claim.ops(&node, WallMillis(0)).iter().map(kind).collect()
    }

    #[test]
    fn a_claim_checks_the_candidate_and_raises_the_epoch_by_one() {
        assert_eq!(shape(&claim(Some(4), 2)), ["check /election/c 0", "set /epoch 4"]);
        assert_eq!(claim(Some(4), 2).epoch(), 5);
    }

    #[test]
    fn the_first_claim_of_a_namespace_makes_epoch_one() {
        let shape = shape(&claim(None, 0));
        assert_eq!(shape, ["check /election/c 0", "create /epoch", "set /epoch 0"]);
        assert_eq!(claim(None, 0).epoch(), 1);
    }

    #[test]
    fn used_epochs_are_skipped_after_the_znode_was_deleted() {
        assert_eq!(claim(None, 3).epoch(), 4);
        assert_eq!(shape(&claim(None, 3)).len(), 2 + 4);
    }

    #[test]
    fn many_skipped_epochs_take_several_multis() {
        let step = claim(None, 1_000_000);
        assert_eq!(shape(&step).len(), MAX_TXN_OPS);
        assert_eq!((step.epoch(), step.is_complete()), (498, false));
        assert_eq!(claim(Some(step.epoch()), 1_000_000).epoch(), 996);
    }

    #[test]
    fn used_up_epochs_are_not_wrapped() {
        let token = Uuid::from_u128(1);
        assert_eq!(Claim::plan("/c".into(), 7, token, Some(i32::MAX), 0), None);
    }
}
