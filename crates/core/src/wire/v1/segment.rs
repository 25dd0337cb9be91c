//! Segments, their slices, and sets of members.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::job::{PayloadV1, PlacementV1, PolicyV1};
use super::parts::{TraceV1, few, lease, value};
use crate::job::Priority;
use crate::name::{JobId, Kind};
use crate::segment::{Head, MAX_PACKED, Member, MemberId, Members, Pointer, Results, Segment, Slice};
use crate::time::{WallMillis, as_millis};
use crate::wire::WireError;

#[derive(Serialize, Deserialize)]
pub struct SegmentV1 {
    kind: String,
    policy: PolicyV1,
    placement: PlacementV1,
    priority: u8,
    submitted_at: u64,
    token: [u8; 16],
    #[serde(deserialize_with = "few")]
    members: Vec<MemberV1>,
}

#[derive(Serialize, Deserialize)]
struct MemberV1 {
    payload: PayloadV1,
    name: Option<String>,
    expires_at: Option<u64>,
    trace: Option<TraceV1>,
}

#[derive(Serialize, Deserialize)]
pub struct SliceV1 {
    given: u128,
    over: u128,
    cancel: u128,
    begun: u8,
    assigned_at: u64,
    lease_ms: u64,
}

#[derive(Serialize, Deserialize)]
pub struct ResultsV1 {
    #[serde(deserialize_with = "few")]
    results: Vec<(u8, u64, PayloadV1)>,
}

#[derive(Serialize, Deserialize)]
pub struct MembersV1 {
    bits: u128,
}

#[derive(Serialize, Deserialize)]
pub struct PointerV1 {
    member: String,
}

impl From<&Segment> for SegmentV1 {
    fn from(segment: &Segment) -> Self {
        let Head { kind, policy, placement, priority, submitted_at, token } = &segment.head;
        let member = |member: &Member| MemberV1 {
            payload: (&member.payload).into(),
            name: member.name.as_ref().map(ToString::to_string),
            expires_at: member.expires_at.map(|at| at.0),
            trace: member.trace.map(Into::into),
        };
        Self {
            kind: kind.to_string(),
            policy: policy.into(),
            placement: placement.into(),
            priority: priority.get(),
            submitted_at: submitted_at.0,
            token: token.into_bytes(),
            members: segment.members.iter().map(member).collect(),
        }
    }
}

impl TryFrom<SegmentV1> for Segment {
    type Error = WireError;
    fn try_from(stored: SegmentV1) -> Result<Self, WireError> {
        let head = Head {
            kind: Kind::new(stored.kind)?,
            policy: stored.policy.try_into()?,
            placement: stored.placement.try_into()?,
            priority: Priority::new(stored.priority).map_err(value)?,
            submitted_at: WallMillis(stored.submitted_at),
            token: Uuid::from_bytes(stored.token),
        };
        if head.placement.lane.is_some() {
            return Err(WireError::Value("a segment with a lane: its jobs have none".into()));
        }
        if !(1..=usize::from(MAX_PACKED)).contains(&stored.members.len()) {
            let members = stored.members.len();
            return Err(WireError::Value(format!(
                "a segment of {members} jobs: 1 to {MAX_PACKED} are allowed"
            )));
        }
        let member = |member: MemberV1| {
            Ok(Member {
                payload: member.payload.try_into()?,
                name: member.name.map(JobId::new).transpose()?,
                expires_at: member.expires_at.map(WallMillis),
                trace: member.trace.map(TryInto::try_into).transpose()?,
            })
        };
        let members = stored.members.into_iter().map(member).collect::<Result<Vec<_>, WireError>>()?;
        Ok(Self { head, members })
    }
}

impl From<&Slice> for SliceV1 {
    fn from(slice: &Slice) -> Self {
        let Slice { given, over, cancel, begun, assigned_at, lease } = *slice;
        let [given, over, cancel] = [given, over, cancel].map(Members::bits);
        Self { given, over, cancel, begun, assigned_at: assigned_at.0, lease_ms: as_millis(lease) }
    }
}

impl TryFrom<SliceV1> for Slice {
    type Error = WireError;
    fn try_from(stored: SliceV1) -> Result<Self, WireError> {
        let [given, over, cancel] = [members(stored.given)?, members(stored.over)?, members(stored.cancel)?];
        if !given.includes(over.with(cancel)) || stored.begun > MAX_PACKED {
            return Err(WireError::Value("a slice has members that were not assigned".into()));
        }
        let (assigned_at, lease) = (WallMillis(stored.assigned_at), lease(stored.lease_ms)?);
        Ok(Self { given, over, cancel, begun: stored.begun, assigned_at, lease })
    }
}

impl From<&Results> for ResultsV1 {
    fn from(results: &Results) -> Self {
        let result = |(number, at, result): &(u8, WallMillis, _)| (*number, at.0, PayloadV1::from(result));
        Self { results: results.0.iter().map(result).collect() }
    }
}

impl TryFrom<ResultsV1> for Results {
    type Error = WireError;
    fn try_from(stored: ResultsV1) -> Result<Self, WireError> {
        let mut seen = BTreeSet::new();
        let result = |(number, at, result): (u8, u64, PayloadV1)| {
            if number >= MAX_PACKED || !seen.insert(number) {
                return Err(WireError::Value(format!("two results of member {number}, or no such member")));
            }
            Ok((number, WallMillis(at), result.try_into()?))
        };
        Ok(Self(stored.results.into_iter().map(result).collect::<Result<_, _>>()?))
    }
}

impl From<&Members> for MembersV1 {
    fn from(members: &Members) -> Self {
        Self { bits: members.bits() }
    }
}

impl TryFrom<MembersV1> for Members {
    type Error = WireError;
    fn try_from(stored: MembersV1) -> Result<Self, WireError> {
        members(stored.bits)
    }
}

impl From<&Pointer> for PointerV1 {
    fn from(pointer: &Pointer) -> Self {
        Self { member: pointer.0.to_string() }
    }
}

impl TryFrom<PointerV1> for Pointer {
    type Error = WireError;
    fn try_from(stored: PointerV1) -> Result<Self, WireError> {
        let member = stored.member.parse::<MemberId>();
        member.map(Self).map_err(|()| WireError::Value("a pointer to no member of a segment".into()))
    }
}

fn members(bits: u128) -> Result<Members, WireError> {
    Members::from_bits(bits)
        .ok_or_else(|| WireError::Value(format!("a member above {MAX_PACKED} in a set of members")))
}
