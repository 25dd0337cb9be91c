//! A group's record.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::change::ChangeV1;
use super::job::MembershipV1;
use super::parts::{TraceV1, count, few};
use crate::budget::{MAX_DEPTH, MAX_GROUPS_OF_PARENT, MAX_MEMBERS};
use crate::group::{FirstGroup, GroupRecord, Idle, Parent, Stage, Stop};
use crate::name::{GroupId, JobId, Kind, Lane};
use crate::time::WallMillis;
use crate::wire::WireError;

#[derive(Serialize, Deserialize)]
pub struct GroupRecordV1 {
    kind: String,
    total: Option<u32>,
    fail_fast: bool,
    join: bool,
    closed: bool,
    parent: Option<ParentV1>,
    stage: StageV1,
    stopped: Option<StopV1>,
    token: [u8; 16],
    created_at: u64,
    trace: Option<TraceV1>,
    idle: Option<IdleV1>,
    #[serde(deserialize_with = "few")]
    further: Vec<String>,
    changed: Option<ChangeV1>,
}

#[derive(Serialize, Deserialize)]
struct IdleV1 {
    members: u32,
    since: Option<u64>,
}

#[derive(Serialize, Deserialize)]
struct ParentV1 {
    job: String,
    kind: String,
    generation: u32,
    finish: bool,
    first: Option<FirstGroupV1>,
    membership: Option<MembershipV1>,
    depth: u32,
    lane: Option<String>,
    #[serde(deserialize_with = "few")]
    outer_lanes: Vec<String>,
}

#[derive(Serialize, Deserialize)]
struct FirstGroupV1 {
    group: String,
    number: u32,
}

#[derive(Serialize, Deserialize)]
enum StageV1 {
    Open,
    Joining,
    Finishing,
    Done { at: u64 },
}

#[derive(Serialize, Deserialize)]
enum StopV1 {
    Member(u32),
    Parent,
    Outer,
    Abandoned,
}

fn bound(field: &str, stored: u32, max: u32) -> Result<u32, WireError> {
    if stored > max {
        return Err(WireError::Value(format!("{field} {stored}: at most {max} is allowed")));
    }
    Ok(stored)
}

fn length<T>(field: &str, stored: &[T], max: usize) -> Result<(), WireError> {
    let bounded = |length| u32::try_from(length).unwrap_or(u32::MAX);
    bound(field, bounded(stored.len()), bounded(max)).map(|_| ())
}

/// One group is the first one.
fn further(stored: Vec<String>) -> Result<Vec<Kind>, WireError> {
    length("number of further groups", &stored, MAX_GROUPS_OF_PARENT - 1)?;
    Ok(stored.into_iter().map(Kind::new).collect::<Result<_, _>>()?)
}

/// At most one lane per job around the parent.
fn outer_lanes(stored: Vec<String>) -> Result<Vec<Lane>, WireError> {
    length("number of outer lanes", &stored, MAX_DEPTH as usize)?;
    Ok(stored.into_iter().map(Lane::new).collect::<Result<_, _>>()?)
}

impl From<&GroupRecord> for GroupRecordV1 {
    fn from(group: &GroupRecord) -> Self {
        Self {
            kind: group.kind.to_string(),
            total: group.total,
            fail_fast: group.fail_fast,
            join: group.join,
            closed: group.closed,
            parent: group.parent.as_ref().map(Into::into),
            stage: match group.stage {
                Stage::Open => StageV1::Open,
                Stage::Joining => StageV1::Joining,
                Stage::Finishing => StageV1::Finishing,
                Stage::Done { at } => StageV1::Done { at: at.0 },
            },
            stopped: group.stopped.map(|stop| match stop {
                Stop::Member(number) => StopV1::Member(number),
                Stop::Parent => StopV1::Parent,
                Stop::Outer => StopV1::Outer,
                Stop::Abandoned => StopV1::Abandoned,
            }),
            token: group.token.into_bytes(),
            created_at: group.created_at.0,
            trace: group.trace.map(Into::into),
            idle: group
                .idle
                .map(|Idle { members, since }| IdleV1 { members, since: since.map(|since| since.0) }),
            further: group.further.iter().map(Kind::to_string).collect(),
            changed: group.changed.as_ref().map(Into::into),
        }
    }
}

impl TryFrom<GroupRecordV1> for GroupRecord {
    type Error = WireError;
    fn try_from(stored: GroupRecordV1) -> Result<Self, WireError> {
        let stopped = match stored.stopped {
            None => None,
            Some(StopV1::Member(number)) => Some(Stop::Member(bound("member", number, MAX_MEMBERS)?)),
            Some(StopV1::Parent) => Some(Stop::Parent),
            Some(StopV1::Outer) => Some(Stop::Outer),
            Some(StopV1::Abandoned) => Some(Stop::Abandoned),
        };
        Ok(Self {
            kind: Kind::new(stored.kind)?,
            total: stored.total.map(|total| bound("total", total, MAX_MEMBERS)).transpose()?,
            fail_fast: stored.fail_fast,
            join: stored.join,
            closed: stored.closed,
            parent: stored.parent.map(TryInto::try_into).transpose()?,
            stage: match stored.stage {
                StageV1::Open => Stage::Open,
                StageV1::Joining => Stage::Joining,
                StageV1::Finishing => Stage::Finishing,
                StageV1::Done { at } => Stage::Done { at: WallMillis(at) },
            },
            stopped,
            token: Uuid::from_bytes(stored.token),
            created_at: WallMillis(stored.created_at),
            trace: stored.trace.map(TryInto::try_into).transpose()?,
            idle: stored.idle.map(|IdleV1 { members, since }| Idle { members, since: since.map(WallMillis) }),
            further: further(stored.further)?,
            changed: stored.changed.map(TryInto::try_into).transpose()?,
        })
    }
}

impl From<&Parent> for ParentV1 {
    fn from(parent: &Parent) -> Self {
        Self {
            job: parent.job.to_string(),
            kind: parent.kind.to_string(),
            generation: parent.generation,
            finish: parent.finish,
            first: parent.first.as_ref().map(|FirstGroup { group, number }| FirstGroupV1 {
                group: group.to_string(),
                number: *number,
            }),
            membership: parent.membership.as_ref().map(Into::into),
            depth: parent.depth,
            lane: parent.lane.as_ref().map(Lane::to_string),
            outer_lanes: parent.outer_lanes.iter().map(Lane::to_string).collect(),
        }
    }
}

impl TryFrom<ParentV1> for Parent {
    type Error = WireError;
    fn try_from(stored: ParentV1) -> Result<Self, WireError> {
        Ok(Self {
            job: JobId::new(stored.job)?,
            kind: Kind::new(stored.kind)?,
            generation: count("generation", stored.generation)?,
            finish: stored.finish,
            first: stored.first.map(TryInto::try_into).transpose()?,
            membership: stored.membership.map(TryInto::try_into).transpose()?,
            depth: bound("depth", stored.depth, MAX_DEPTH)?,
            lane: stored.lane.map(Lane::new).transpose()?,
            outer_lanes: outer_lanes(stored.outer_lanes)?,
        })
    }
}

impl TryFrom<FirstGroupV1> for FirstGroup {
    type Error = WireError;
    fn try_from(FirstGroupV1 { group, number }: FirstGroupV1) -> Result<Self, WireError> {
        let last = u32::try_from(MAX_GROUPS_OF_PARENT - 2).expect("the bound is small");
        Ok(Self { group: GroupId::new(group)?, number: bound("number of a further group", number, last)? })
    }
}
