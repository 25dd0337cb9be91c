//! Segments and the results of their members.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::job::{PayloadV1, PlacementV1, PolicyV1};
use super::parts::{TraceV1, few, value};
use crate::job::Priority;
use crate::name::{Kind, WorkerId};
use crate::segment::{Head, MAX_PACKED, Member, Results, Segment};
use crate::time::WallMillis;
use crate::wire::WireError;

#[derive(Serialize, Deserialize)]
pub struct SegmentV1 {
    kind: String,
    policy: PolicyV1,
    placement: PlacementV1,
    priority: u8,
    submitted_at: u64,
    part: u16,
    token: [u8; 16],
    #[serde(deserialize_with = "few")]
    members: Vec<MemberV1>,
}

#[derive(Serialize, Deserialize)]
struct MemberV1 {
    payload: PayloadV1,
    trace: Option<TraceV1>,
}

#[derive(Serialize, Deserialize)]
pub struct ResultsV1 {
    worker: [u8; 16],
    assigned_at: u64,
    #[serde(deserialize_with = "few")]
    results: Vec<(u8, u64, PayloadV1)>,
}

impl From<&Segment> for SegmentV1 {
    fn from(segment: &Segment) -> Self {
        let Head { kind, policy, placement, priority, submitted_at, part, token } = &segment.head;
        let member = |member: &Member| MemberV1 {
            payload: (&member.payload).into(),
            trace: member.trace.map(Into::into),
        };
        Self {
            kind: kind.to_string(),
            policy: policy.into(),
            placement: placement.into(),
            priority: priority.get(),
            submitted_at: submitted_at.0,
            part: *part,
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
            part: stored.part,
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
                trace: member.trace.map(TryInto::try_into).transpose()?,
            })
        };
        let members = stored.members.into_iter().map(member).collect::<Result<Vec<_>, WireError>>()?;
        Ok(Self { head, members })
    }
}

impl From<&Results> for ResultsV1 {
    fn from(Results { worker, assigned_at, results }: &Results) -> Self {
        let result = |(number, at, result): &(u8, WallMillis, _)| (*number, at.0, PayloadV1::from(result));
        Self {
            worker: worker.uuid().into_bytes(),
            assigned_at: assigned_at.0,
            results: results.iter().map(result).collect(),
        }
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
        Ok(Self {
            worker: WorkerId::new(Uuid::from_bytes(stored.worker)),
            assigned_at: WallMillis(stored.assigned_at),
            results: stored.results.into_iter().map(result).collect::<Result<_, _>>()?,
        })
    }
}
