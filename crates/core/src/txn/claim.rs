//! The claim of an epoch, which turns a candidate into a leader, and the beats that keep it the leader.

use uuid::Uuid;

use super::{ANY_VERSION, Lifetime, Op, fence};
use crate::budget::MAX_TXN_OPS;
use crate::name::NodeId;
use crate::path;
use crate::time::WallMillis;
use crate::wire::encode;
use crate::worker::EpochRecord;

/// The place from which a candidate claims.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Seat {
    /// The first candidate: no other precedes it.
    First {
        /// Its znode.
        candidate: String,
    },
    /// The second or third candidate of the strategy `queue`. Its claim deletes all candidates that precede it.
    Queued {
        /// Its znode.
        candidate: String,
        /// The znodes of those that precede it, the first candidate first.
        silent: Vec<String>,
    },
    /// Any other candidate of the strategy `single`. Its claim replaces `/leader`, which a silent leader owns, by its own.
    Replacement,
}

impl Seat {
    /// The znode of the candidate, once the claim is applied.
    #[must_use]
    pub fn candidate(&self) -> &str {
        match self {
            Self::First { candidate } | Self::Queued { candidate, .. } => candidate,
            Self::Replacement => path::LEADER,
        }
    }

    /// The place of the candidate after the claim.
    #[must_use]
    pub fn after(&self) -> Self {
        Self::First { candidate: self.candidate().to_owned() }
    }

    /// Returns the number of candidates between the first one and this one.
    #[must_use]
    pub fn waits_for(&self) -> u32 {
        match self {
            Self::First { .. } | Self::Replacement => 0,
            Self::Queued { silent, .. } => u32::try_from(silent.len()).unwrap_or(u32::MAX).saturating_sub(1),
        }
    }

    /// The purposes of [`Seat::ops`].
    fn steps(&self) -> Vec<ClaimStep> {
        match self {
            Self::First { .. } => vec![ClaimStep::CheckCandidate],
            Self::Queued { silent, .. } => {
                let silent = silent.iter().map(|_| ClaimStep::ReplaceSilent);
                [ClaimStep::CheckCandidate].into_iter().chain(silent).collect()
            }
            Self::Replacement => vec![ClaimStep::ReplaceSilent; 2],
        }
    }

    /// Checks the claimant's candidate, and deletes the silent ones. The version of a candidate is 0, because its data is
    /// never set.
    fn ops(&self, node: &NodeId) -> Vec<Op> {
        let check = |candidate: &str| Op::Check { path: candidate.to_owned(), version: 0 };
        match self {
            Self::First { candidate } => vec![check(candidate)],
            Self::Queued { candidate, silent } => {
                [check(candidate)].into_iter().chain(silent.iter().cloned().map(Op::delete)).collect()
            }
            Self::Replacement => {
                let (path, data) = (path::LEADER.to_owned(), node.as_str().as_bytes().to_vec());
                let create = Op::Create { path, data, lifetime: Lifetime::Ephemeral };
                vec![Op::delete(path::LEADER.to_owned()), create]
            }
        }
    }
}

/// Raises `/epoch` to a version that no leader known to this process has ever had, if the candidate still exists.
///
/// A `Set` of version v creates exactly version v + 1 or fails. So the epoch is known before the reply arrives, and the
/// Stat of the reply, which some servers leave blank in a multi, is not needed. Normally one `Set` is enough. More are
/// needed after an operator deleted `/epoch`: its version would start at 0 again, and the token of a stale leader would
/// become valid again. So the used versions are skipped, in steps that fit a multi.
///
/// The claim also sets `/leading` at the version that was read. So it is rejected if the leader has beaten since then, and
/// it is the first beat of the new term. `/leading` contains the epoch ([`claimed_epoch`]). So a claim also skips the used
/// epochs that its process has not seen, unless an operator deleted both znodes.
///
/// Epoch 0 is never claimed: a namespace may be created with `/epoch` or without it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Claim {
    seat: Seat,
    session: i64,
    token: Uuid,
    from: Option<i32>,
    /// The version of `/leading` that was read; `None` if it was absent.
    leading: Option<i32>,
    epoch: i32,
    target: i32,
}

/// The purpose of an operation of [`Claim::ops`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClaimStep {
    /// Checks the claimant's candidate.
    CheckCandidate,
    /// Deletes the candidate of the silent leader, or replaces it.
    ReplaceSilent,
    /// Creates `/epoch`, or raises its version.
    RaiseEpoch,
    /// Creates or sets `/leading`.
    Beat,
}

/// What a claimant has read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Found {
    /// The version of `/epoch`, if it exists.
    pub epoch: Option<i32>,
    /// The version of `/leading`, if it exists.
    pub leading: Option<i32>,
}

impl Claim {
    /// Plans a claim. `highest` is the highest epoch known to have been claimed. `None` when all epochs are used, after
    /// 2³¹ claims.
    #[must_use]
    pub fn plan(seat: Seat, session: i64, token: Uuid, found: Found, highest: i32) -> Option<Self> {
        // Besides them: three for the seat, the creation of `/epoch`, and `/leading`.
        const MOST_SETS: i32 = (MAX_TXN_OPS - 5) as i32;
        let base = found.epoch.unwrap_or(0);
        let target = base.max(highest).checked_add(1)?;
        let epoch = target.min(base.saturating_add(MOST_SETS));
        let Found { epoch: from, leading } = found;
        Some(Self { seat, session, token, from, leading, epoch, target })
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

    /// The place from which it claims.
    #[must_use]
    pub fn seat(&self) -> &Seat {
        &self.seat
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

    /// The purpose of the operation at this position of [`Claim::ops`].
    #[must_use]
    pub fn step(&self, at: usize) -> ClaimStep {
        let seat = self.seat.steps();
        match at.checked_sub(seat.len()) {
            None => seat[at],
            Some(at) if at < self.raises() => ClaimStep::RaiseEpoch,
            Some(_) => ClaimStep::Beat,
        }
    }

    fn raises(&self) -> usize {
        let sets = self.epoch - self.from.unwrap_or(0);
        usize::try_from(sets).expect("an epoch is only raised") + usize::from(self.from.is_none())
    }

    /// The operations of the multi.
    #[must_use]
    pub fn ops(&self, node: &NodeId, since: WallMillis) -> Vec<Op> {
        let data =
            encode(&EpochRecord { node: node.clone(), session: self.session, token: self.token, since });
        let mut ops = self.seat.ops(node);
        if self.from.is_none() {
            ops.push(Op::create(path::EPOCH.to_owned(), data.clone()));
        }
        ops.extend((self.from.unwrap_or(0)..self.epoch).map(|version| Op::Set {
            path: path::EPOCH.to_owned(),
            data: data.clone(),
            version,
        }));
        ops.push(match self.leading {
            None => Op::create(path::LEADING.to_owned(), leading(self.target)),
            Some(version) => Op::Set { path: path::LEADING.to_owned(), data: leading(self.target), version },
        });
        ops
    }
}

/// The highest epoch that a claim takes from `/leading`. A damaged znode must not use up all epochs, and no namespace has had
/// so many leaders.
const MOST_RECORDED: i32 = 1_000_000;

/// The content of `/leading`, as text: the highest epoch that its writer knows to be claimed.
fn leading(epoch: i32) -> Vec<u8> {
    epoch.to_string().into_bytes()
}

/// The epoch that the content of `/leading` names. 0, which is never claimed, if it names none.
#[must_use]
pub fn claimed_epoch(data: &[u8]) -> i32 {
    let named = std::str::from_utf8(data).ok().and_then(|text| text.parse().ok());
    named.filter(|epoch| (0..=MOST_RECORDED).contains(epoch)).unwrap_or(0)
}

/// The purpose of an operation of [`beat`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BeatStep {
    /// Checks the epoch.
    CheckEpoch,
    /// Checks the leader's candidate.
    CheckCandidate,
    /// Sets `/leading`.
    Set,
}

impl BeatStep {
    /// The purpose of the operation at this position.
    #[must_use]
    pub fn at(at: usize) -> Self {
        match at {
            0 => Self::CheckEpoch,
            1 => Self::CheckCandidate,
            _ => Self::Set,
        }
    }
}

/// Shows that the leader of this epoch lives. Sets any version of `/leading`: the epoch is the fence, and a beat that is
/// applied twice or late only makes the candidates wait longer.
#[must_use]
pub fn beat(epoch: i32, candidate: String) -> Vec<Op> {
    let set = Op::Set { path: path::LEADING.to_owned(), data: leading(epoch), version: ANY_VERSION };
    vec![fence(epoch), Op::Check { path: candidate, version: 0 }, set]
}

/// Fails if another node has claimed since `/leading` had this version; `None` if it was absent.
///
/// The owner of `/leader` deletes it behind this fence. Without it, a delete that arrives late could delete the znode of a
/// leader that has replaced it, because both have the same path and version.
#[must_use]
pub fn unclaimed_since(version: Option<i32>) -> Op {
    let path = path::LEADING.to_owned();
    match version {
        Some(version) => Op::Check { path, version },
        None => Op::create(path, leading(0)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: &str = "/election/c";

    fn first() -> Seat {
        Seat::First { candidate: FIRST.to_owned() }
    }

    fn third() -> Seat {
        let silent = ["/election/a", "/election/b"].map(str::to_owned).to_vec();
        Seat::Queued { candidate: FIRST.to_owned(), silent }
    }

    fn claim_of(seat: Seat, epoch: Option<i32>, highest: i32) -> Claim {
        Claim::plan(seat, 7, Uuid::from_u128(1), Found { epoch, leading: Some(9) }, highest).unwrap()
    }

    fn claim(epoch: Option<i32>, highest: i32) -> Claim {
        claim_of(first(), epoch, highest)
    }

    fn shape(claim: &Claim) -> Vec<String> {
        let node = NodeId::new("a").unwrap();
        let kind = |op: &Op| match op {
            Op::Check { path, version } => format!("check {path} {version}"),
            Op::Create { path, lifetime: Lifetime::Ephemeral, .. } => format!("create ephemeral {path}"),
            Op::Create { path, .. } => format!("create {path}"),
            Op::Set { path, version, .. } => format!("set {path} {version}"),
            Op::Delete { path, .. } => format!("delete {path}"),
        };
        claim.ops(&node, WallMillis(0)).iter().map(kind).collect()
    }

    fn steps(claim: &Claim) -> Vec<ClaimStep> {
        (0..shape(claim).len()).map(|at| claim.step(at)).collect()
    }

    #[test]
    fn a_claim_checks_the_candidate_raises_the_epoch_by_one_and_beats() {
        let claim = claim(Some(4), 2);
        assert_eq!(shape(&claim), ["check /election/c 0", "set /epoch 4", "set /leading 9"]);
        assert_eq!(steps(&claim), [ClaimStep::CheckCandidate, ClaimStep::RaiseEpoch, ClaimStep::Beat]);
        assert_eq!(claim.epoch(), 5);
    }

    #[test]
    fn a_claim_of_a_later_candidate_deletes_those_before_it() {
        let claim = claim_of(third(), Some(4), 2);
        let deletes = ["check /election/c 0", "delete /election/a", "delete /election/b"];
        assert_eq!(shape(&claim)[..3], deletes);
        assert_eq!(shape(&claim)[3..], ["set /epoch 4", "set /leading 9"]);
        let expected = [ClaimStep::CheckCandidate, ClaimStep::ReplaceSilent, ClaimStep::ReplaceSilent];
        assert_eq!(steps(&claim)[..3], expected);
        assert_eq!(steps(&claim)[3..], [ClaimStep::RaiseEpoch, ClaimStep::Beat]);
        assert_eq!(claim.seat().after(), first());
    }

    #[test]
    fn a_claim_of_the_strategy_single_replaces_the_leaders_znode() {
        let claim = claim_of(Seat::Replacement, Some(4), 2);
        let expected = ["delete /leader", "create ephemeral /leader", "set /epoch 4", "set /leading 9"];
        assert_eq!(shape(&claim), expected);
        assert_eq!(claim.seat().after(), Seat::First { candidate: "/leader".to_owned() });
    }

    #[test]
    fn the_first_claim_of_a_namespace_makes_epoch_one() {
        let absent = Found { epoch: None, leading: None };
        let claim = Claim::plan(first(), 7, Uuid::from_u128(1), absent, 0).unwrap();
        let expected = ["check /election/c 0", "create /epoch", "set /epoch 0", "create /leading"];
        assert_eq!(shape(&claim), expected);
        assert_eq!(steps(&claim)[1..], [ClaimStep::RaiseEpoch, ClaimStep::RaiseEpoch, ClaimStep::Beat]);
        assert_eq!(claim.epoch(), 1);
    }

    #[test]
    fn used_epochs_are_skipped_after_the_znode_was_deleted() {
        assert_eq!(claim(None, 3).epoch(), 4);
        assert_eq!(shape(&claim(None, 3)).len(), 3 + 4);
    }

    #[test]
    fn many_skipped_epochs_take_several_multis() {
        let step = claim_of(third(), None, 1_000_000);
        assert_eq!(shape(&step).len(), MAX_TXN_OPS);
        assert_eq!((step.epoch(), step.is_complete()), (495, false));
        assert_eq!(claim(Some(step.epoch()), 1_000_000).epoch(), 990);
    }

    /// S4
    #[test]
    fn a_claim_and_a_beat_write_the_epoch_into_the_znode_of_the_beats() {
        let written = |ops: Vec<Op>| match ops.last() {
            Some(Op::Set { path, data, .. } | Op::Create { path, data, .. }) if path == path::LEADING => {
                claimed_epoch(data)
            }
            other => panic!("{other:?}"),
        };
        let of = |claim: Claim| claim.ops(&NodeId::new("a").unwrap(), WallMillis(0));
        assert_eq!(written(of(claim(Some(4), 2))), 5);
        assert_eq!(written(of(claim(None, 700))), 701, "not only a step past used epochs");
        assert_eq!(written(beat(5, FIRST.to_owned())), 5);
    }

    #[test]
    fn a_damaged_znode_of_the_beats_names_no_epoch() {
        for (data, epoch) in
            [("12", 12), ("1000000", 1_000_000), ("1000001", 0), ("-3", 0), ("", 0), ("7f", 0)]
        {
            assert_eq!(claimed_epoch(data.as_bytes()), epoch, "{data:?}");
        }
        assert_eq!(claimed_epoch(&[0xff, 0x31]), 0);
    }

    #[test]
    fn used_up_epochs_are_not_wrapped() {
        let (token, found) = (Uuid::from_u128(1), Found { epoch: Some(i32::MAX), leading: None });
        assert_eq!(Claim::plan(first(), 7, token, found, 0), None);
    }
}
