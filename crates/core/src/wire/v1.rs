//! Schema version 1, frozen: a released field is never changed, moved or removed. A new version gets a new file.

use std::fmt;
use std::time::Duration;

use serde::de::{Deserializer, Error as _, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{Layout, WireError};
use crate::backoff::Backoff;
use crate::budget::{MAX_COUNT, MAX_ERROR_BYTES, MAX_KINDS, MAX_SLOTS, MAX_TAGS};
use crate::job::{
    Assignment, Attempt, AttemptEnd, AttemptEndKind, ContentType, JobRecord, JobState, Payload, Placement,
    Policy, QueueEntry, TurnIndex, Verdict,
};
use crate::name::{AffinityKey, Kind, Lane, NodeId, Tag, WorkerId};
use crate::time::{WallMillis, as_millis};
use crate::worker::{EpochRecord, WorkerInfo};

#[derive(Serialize, Deserialize)]
pub struct JobRecordV1 {
    kind: String,
    payload: PayloadV1,
    policy: PolicyV1,
    placement: PlacementV1,
    token: [u8; 16],
    submitted_at: u64,
    generation: u32,
    attempts: u32,
    failures: u32,
    losses: u32,
    last: Option<AttemptEndV1>,
    last_error: Option<String>,
    state: JobStateV1,
}

#[derive(Serialize, Deserialize)]
struct PayloadV1 {
    content_type: String,
    #[serde(with = "bytes")]
    bytes: Vec<u8>,
}

#[derive(Serialize, Deserialize)]
struct PolicyV1 {
    max_attempts: u32,
    max_losses: u32,
    backoff_initial_ms: u64,
    backoff_max_ms: u64,
    timeout_ms: Option<u64>,
}

#[derive(Serialize, Deserialize)]
struct PlacementV1 {
    #[serde(deserialize_with = "few")]
    tags: Vec<String>,
    affinity: Option<String>,
    lane: Option<String>,
}

#[derive(Serialize, Deserialize)]
struct AttemptEndV1 {
    number: u32,
    worker: [u8; 16],
    how: AttemptEndKindV1,
    at: u64,
}

#[derive(Serialize, Deserialize)]
enum AttemptEndKindV1 {
    Succeeded,
    Failed,
    Lost,
    Released,
    Cancelled,
}

#[derive(Serialize, Deserialize)]
enum JobStateV1 {
    Open { not_before: Option<u64> },
    Succeeded { result: PayloadV1, at: u64 },
    Cancelled { at: u64 },
    Dead { at: u64 },
}

#[derive(Serialize, Deserialize)]
pub struct QueueEntryV1 {
    kind: String,
    attempt: u32,
    generation: u32,
    placement: PlacementV1,
    not_before: u64,
}

#[derive(Serialize, Deserialize)]
pub struct AssignmentV1 {
    attempt: u32,
    epoch: i32,
    cancel: bool,
    assigned_at: u64,
}

#[derive(Serialize, Deserialize)]
pub struct WorkerInfoV1 {
    node: String,
    host: String,
    #[serde(deserialize_with = "few")]
    kinds: Vec<String>,
    slots: u32,
    #[serde(deserialize_with = "few")]
    tags: Vec<String>,
    codec: u16,
    started_at: u64,
    draining: bool,
}

#[derive(Serialize, Deserialize)]
pub struct EpochRecordV1 {
    node: String,
    session: i64,
    token: [u8; 16],
    since: u64,
}

#[derive(Serialize, Deserialize)]
pub struct TurnV1 {
    index: u32,
}

#[derive(Serialize, Deserialize)]
pub struct LayoutV1 {
    version: u16,
}

/// Bytes as one length-prefixed block instead of a sequence of integers.
mod bytes {
    use std::fmt;

    use serde::de::{Deserializer, Error, Visitor};
    use serde::ser::Serializer;

    pub(super) fn serialize<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(bytes)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
        struct Bytes;
        impl Visitor<'_> for Bytes {
            type Value = Vec<u8>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("bytes")
            }
            fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<Vec<u8>, E> {
                Ok(bytes.to_vec())
            }
            fn visit_byte_buf<E: Error>(self, bytes: Vec<u8>) -> Result<Vec<u8>, E> {
                Ok(bytes)
            }
        }
        deserializer.deserialize_byte_buf(Bytes)
    }
}

/// A list whose length is looked at before there is room made for it: a length that lies costs nothing. No list of this
/// version has more than [`MAX_KINDS`] items; [`set`] knows the bound of each.
fn few<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    struct Few;
    impl<'de> Visitor<'de> for Few {
        type Value = Vec<String>;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "at most {MAX_KINDS} names")
        }
        fn visit_seq<A: SeqAccess<'de>>(self, mut names: A) -> Result<Vec<String>, A::Error> {
            if let Some(length) = names.size_hint().filter(|length| *length > MAX_KINDS) {
                return Err(A::Error::invalid_length(length, &self));
            }
            let mut few = Vec::new();
            while let Some(name) = names.next_element()? {
                few.push(name);
            }
            Ok(few)
        }
    }
    deserializer.deserialize_seq(Few)
}

fn value(error: impl std::fmt::Display) -> WireError {
    WireError::Value(error.to_string())
}

/// A number that is counted on from.
fn count(field: &str, stored: u32) -> Result<u32, WireError> {
    if stored > MAX_COUNT {
        return Err(WireError::Value(format!("{field} {stored}: at most {MAX_COUNT} is allowed")));
    }
    Ok(stored)
}

/// An error text, cut as every build cuts it.
fn error_text(stored: String) -> Result<String, WireError> {
    if stored.len() > MAX_ERROR_BYTES {
        let len = stored.len();
        return Err(WireError::Value(format!(
            "an error of {len} bytes: at most {MAX_ERROR_BYTES} are allowed"
        )));
    }
    Ok(stored)
}

/// A sorted set, as every build writes it: a reader relies on the order.
fn set<T: Ord>(
    field: &str,
    max: usize,
    items: Vec<String>,
    new: fn(String) -> Result<T, WireError>,
) -> Result<Vec<T>, WireError> {
    if items.len() > max {
        return Err(WireError::Value(format!("{} {field}: at most {max} are allowed", items.len())));
    }
    let items = items.into_iter().map(new).collect::<Result<Vec<_>, _>>()?;
    if items.is_sorted_by(|a, b| a < b) {
        Ok(items)
    } else {
        Err(WireError::Value(format!("{field} are not a sorted set")))
    }
}

impl From<&Payload> for PayloadV1 {
    fn from(payload: &Payload) -> Self {
        Self { content_type: payload.content_type().as_str().to_owned(), bytes: payload.bytes().to_vec() }
    }
}

impl TryFrom<PayloadV1> for Payload {
    type Error = WireError;
    fn try_from(stored: PayloadV1) -> Result<Self, WireError> {
        Self::new(ContentType::new(&stored.content_type).map_err(value)?, stored.bytes).map_err(value)
    }
}

impl From<&Policy> for PolicyV1 {
    fn from(policy: &Policy) -> Self {
        Self {
            max_attempts: policy.max_attempts,
            max_losses: policy.max_losses,
            backoff_initial_ms: as_millis(policy.backoff.initial),
            backoff_max_ms: as_millis(policy.backoff.max),
            timeout_ms: policy.timeout.map(as_millis),
        }
    }
}

impl TryFrom<PolicyV1> for Policy {
    type Error = WireError;
    fn try_from(stored: PolicyV1) -> Result<Self, WireError> {
        let policy = Self {
            max_attempts: stored.max_attempts,
            max_losses: stored.max_losses,
            backoff: Backoff {
                initial: Duration::from_millis(stored.backoff_initial_ms),
                max: Duration::from_millis(stored.backoff_max_ms),
            },
            timeout: stored.timeout_ms.map(Duration::from_millis),
        };
        policy.check().map_err(value)?;
        Ok(policy)
    }
}

impl From<&Placement> for PlacementV1 {
    fn from(placement: &Placement) -> Self {
        Self {
            tags: placement.tags.iter().map(ToString::to_string).collect(),
            affinity: placement.affinity.as_ref().map(ToString::to_string),
            lane: placement.lane.as_ref().map(ToString::to_string),
        }
    }
}

impl TryFrom<PlacementV1> for Placement {
    type Error = WireError;
    fn try_from(stored: PlacementV1) -> Result<Self, WireError> {
        Ok(Self {
            tags: set("tags", MAX_TAGS, stored.tags, |tag| Ok(Tag::new(tag)?))?,
            affinity: stored.affinity.map(AffinityKey::new).transpose()?,
            lane: stored.lane.map(Lane::new).transpose()?,
        })
    }
}

impl From<&AttemptEnd> for AttemptEndV1 {
    fn from(end: &AttemptEnd) -> Self {
        let how = match end.how {
            AttemptEndKind::Succeeded => AttemptEndKindV1::Succeeded,
            AttemptEndKind::Failed => AttemptEndKindV1::Failed,
            AttemptEndKind::Lost => AttemptEndKindV1::Lost,
            AttemptEndKind::Released => AttemptEndKindV1::Released,
            AttemptEndKind::Cancelled => AttemptEndKindV1::Cancelled,
        };
        Self { number: end.attempt.number, worker: end.attempt.worker.uuid().into_bytes(), how, at: end.at.0 }
    }
}

impl TryFrom<AttemptEndV1> for AttemptEnd {
    type Error = WireError;
    fn try_from(stored: AttemptEndV1) -> Result<Self, WireError> {
        let how = match stored.how {
            AttemptEndKindV1::Succeeded => AttemptEndKind::Succeeded,
            AttemptEndKindV1::Failed => AttemptEndKind::Failed,
            AttemptEndKindV1::Lost => AttemptEndKind::Lost,
            AttemptEndKindV1::Released => AttemptEndKind::Released,
            AttemptEndKindV1::Cancelled => AttemptEndKind::Cancelled,
        };
        let worker = WorkerId::new(Uuid::from_bytes(stored.worker));
        let number = count("attempt", stored.number)?;
        Ok(Self { attempt: Attempt { number, worker }, how, at: WallMillis(stored.at) })
    }
}

impl From<&JobState> for JobStateV1 {
    fn from(state: &JobState) -> Self {
        match state {
            JobState::Open { not_before } => Self::Open { not_before: not_before.map(|at| at.0) },
            JobState::Terminal { verdict: Verdict::Succeeded(result), at } => {
                Self::Succeeded { result: result.into(), at: at.0 }
            }
            JobState::Terminal { verdict: Verdict::Cancelled, at } => Self::Cancelled { at: at.0 },
            JobState::Terminal { verdict: Verdict::Dead, at } => Self::Dead { at: at.0 },
        }
    }
}

impl TryFrom<JobStateV1> for JobState {
    type Error = WireError;
    fn try_from(stored: JobStateV1) -> Result<Self, WireError> {
        let terminal = |verdict, at| Self::Terminal { verdict, at: WallMillis(at) };
        Ok(match stored {
            JobStateV1::Open { not_before } => Self::Open { not_before: not_before.map(WallMillis) },
            JobStateV1::Succeeded { result, at } => terminal(Verdict::Succeeded(result.try_into()?), at),
            JobStateV1::Cancelled { at } => terminal(Verdict::Cancelled, at),
            JobStateV1::Dead { at } => terminal(Verdict::Dead, at),
        })
    }
}

impl From<&JobRecord> for JobRecordV1 {
    fn from(job: &JobRecord) -> Self {
        Self {
            kind: job.kind.to_string(),
            payload: (&job.payload).into(),
            policy: (&job.policy).into(),
            placement: (&job.placement).into(),
            token: job.token.into_bytes(),
            submitted_at: job.submitted_at.0,
            generation: job.generation,
            attempts: job.attempts,
            failures: job.failures,
            losses: job.losses,
            last: job.last.as_ref().map(Into::into),
            last_error: job.last_error.clone(),
            state: (&job.state).into(),
        }
    }
}

impl TryFrom<JobRecordV1> for JobRecord {
    type Error = WireError;
    fn try_from(stored: JobRecordV1) -> Result<Self, WireError> {
        Ok(Self {
            kind: Kind::new(stored.kind)?,
            payload: stored.payload.try_into()?,
            policy: stored.policy.try_into()?,
            placement: stored.placement.try_into()?,
            token: Uuid::from_bytes(stored.token),
            submitted_at: WallMillis(stored.submitted_at),
            generation: count("generation", stored.generation)?,
            attempts: count("attempts", stored.attempts)?,
            failures: count("failures", stored.failures)?,
            losses: count("losses", stored.losses)?,
            last: stored.last.map(TryInto::try_into).transpose()?,
            last_error: stored.last_error.map(error_text).transpose()?,
            state: stored.state.try_into()?,
        })
    }
}

impl From<&QueueEntry> for QueueEntryV1 {
    fn from(entry: &QueueEntry) -> Self {
        Self {
            kind: entry.kind.to_string(),
            attempt: entry.attempt,
            generation: entry.generation,
            placement: (&entry.placement).into(),
            not_before: entry.not_before.0,
        }
    }
}

impl TryFrom<QueueEntryV1> for QueueEntry {
    type Error = WireError;
    fn try_from(stored: QueueEntryV1) -> Result<Self, WireError> {
        Ok(Self {
            kind: Kind::new(stored.kind)?,
            attempt: count("attempt", stored.attempt)?,
            generation: count("generation", stored.generation)?,
            placement: stored.placement.try_into()?,
            not_before: WallMillis(stored.not_before),
        })
    }
}

impl From<&Assignment> for AssignmentV1 {
    fn from(assignment: &Assignment) -> Self {
        let Assignment { attempt, epoch, cancel, assigned_at } = *assignment;
        Self { attempt, epoch, cancel, assigned_at: assigned_at.0 }
    }
}

impl TryFrom<AssignmentV1> for Assignment {
    type Error = WireError;
    fn try_from(stored: AssignmentV1) -> Result<Self, WireError> {
        let AssignmentV1 { attempt, epoch, cancel, assigned_at } = stored;
        Ok(Self { attempt: count("attempt", attempt)?, epoch, cancel, assigned_at: WallMillis(assigned_at) })
    }
}

impl From<&WorkerInfo> for WorkerInfoV1 {
    fn from(info: &WorkerInfo) -> Self {
        Self {
            node: info.node.to_string(),
            host: info.host.clone(),
            kinds: info.kinds.iter().map(ToString::to_string).collect(),
            slots: info.slots,
            tags: info.tags.iter().map(ToString::to_string).collect(),
            codec: info.codec,
            started_at: info.started_at.0,
            draining: info.draining,
        }
    }
}

impl TryFrom<WorkerInfoV1> for WorkerInfo {
    type Error = WireError;
    fn try_from(stored: WorkerInfoV1) -> Result<Self, WireError> {
        if stored.slots > MAX_SLOTS {
            return Err(WireError::Value(format!("{} slots: at most {MAX_SLOTS} are allowed", stored.slots)));
        }
        Ok(Self {
            node: NodeId::new(stored.node)?,
            host: stored.host,
            kinds: set("kinds", MAX_KINDS, stored.kinds, |kind| Ok(Kind::new(kind)?))?,
            slots: stored.slots,
            tags: set("tags", MAX_TAGS, stored.tags, |tag| Ok(Tag::new(tag)?))?,
            codec: stored.codec,
            started_at: WallMillis(stored.started_at),
            draining: stored.draining,
        })
    }
}

impl From<&EpochRecord> for EpochRecordV1 {
    fn from(epoch: &EpochRecord) -> Self {
        Self {
            node: epoch.node.to_string(),
            session: epoch.session,
            token: epoch.token.into_bytes(),
            since: epoch.since.0,
        }
    }
}

impl TryFrom<EpochRecordV1> for EpochRecord {
    type Error = WireError;
    fn try_from(stored: EpochRecordV1) -> Result<Self, WireError> {
        Ok(Self {
            node: NodeId::new(stored.node)?,
            session: stored.session,
            token: Uuid::from_bytes(stored.token),
            since: WallMillis(stored.since),
        })
    }
}

impl From<&TurnIndex> for TurnV1 {
    fn from(turn: &TurnIndex) -> Self {
        Self { index: turn.0 }
    }
}

impl TryFrom<TurnV1> for TurnIndex {
    type Error = WireError;
    fn try_from(stored: TurnV1) -> Result<Self, WireError> {
        Ok(Self(stored.index))
    }
}

impl From<&Layout> for LayoutV1 {
    fn from(layout: &Layout) -> Self {
        Self { version: layout.version }
    }
}

impl TryFrom<LayoutV1> for Layout {
    type Error = WireError;
    fn try_from(stored: LayoutV1) -> Result<Self, WireError> {
        Ok(Self { version: stored.version })
    }
}
