//! The claim of an epoch: what makes the first candidate a leader.

use uuid::Uuid;

use super::Op;
use crate::budget::MAX_TXN_OPS;
use crate::name::NodeId;
use crate::path;
use crate::time::WallMillis;
use crate::wire::encode;
use crate::worker::EpochRecord;

/// Raises `/epoch` to a version that no leader this process knows of ever had, if our candidate still stands.
///
/// A `Set` of version v makes exactly version v + 1 or fails, so the epoch is known before the reply comes and
/// the reply's Stat, which some servers leave blank in a multi, is not needed. One `Set` is the rule. More are
/// needed when an operator deleted `/epoch`: its version would begin at 0 again, and a stale leader's token would
/// one day be valid again; so the versions that were used are passed over, in steps that fit a multi.
///
/// Epoch 0 is never claimed: a namespace may be laid out with `/epoch` or without it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Claim {
    candidate: String,
    session: i64,
    token: Uuid,
    from: Option<i32>,
    epoch: i32,
    target: i32,
}

/// A step of a claim: what an operation of [`Claim::ops`] does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClaimStep {
    /// Checks the candidate.
    CheckCandidate,
    /// Makes `/epoch`, or raises it.
    RaiseEpoch,
}

impl Claim {
    /// Plans a claim. `found` is the version of `/epoch`, if it is there; `highest` the highest epoch known to
    /// have been claimed. `None` when the epochs are used up, after 2³¹ claims.
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

    /// The version of `/epoch` once the claim is applied.
    #[must_use]
    pub fn epoch(&self) -> i32 {
        self.epoch
    }

    /// Whether that is an epoch to lead with, or only a step past epochs that were used.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.epoch == self.target
    }

    /// The candidate that must still stand.
    #[must_use]
    pub fn candidate(&self) -> &str {
        &self.candidate
    }

    /// The session that the candidate belongs to.
    #[must_use]
    pub fn session(&self) -> i64 {
        self.session
    }

    /// Tells this claim from every other.
    #[must_use]
    pub fn token(&self) -> Uuid {
        self.token
    }

    /// What the operation at this position of [`Claim::ops`] does. The first is the check, and the rest is about `/epoch`.
    #[must_use]
    pub fn step(at: usize) -> ClaimStep {
        if at == 0 { ClaimStep::CheckCandidate } else { ClaimStep::RaiseEpoch }
    }

    /// The operations of the one multi, by a node at a time. The first is the check of the candidate, which
    /// nobody ever writes to: its version is 0.
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
    fn epochs_that_were_used_are_passed_over_when_the_znode_was_deleted() {
        assert_eq!(claim(None, 3).epoch(), 4);
        assert_eq!(shape(&claim(None, 3)).len(), 2 + 4);
    }

    #[test]
    fn a_long_way_is_gone_in_steps_that_fit_a_multi() {
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
