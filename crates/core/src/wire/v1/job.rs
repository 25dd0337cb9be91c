//! The job's record.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::change::ChangeV1;
use super::parts::{TraceV1, bytes, count, error_text, few, set, value};
use crate::backoff::Backoff;
use crate::budget::{MAX_FORMER_IDS, MAX_MEMBERS, MAX_PAST_ATTEMPTS, MAX_PAST_ERROR_BYTES, MAX_TAGS};
use crate::job::{
    Attempt, AttemptEnd, AttemptOutcome, ContentType, JobRecord, JobState, Membership, PastAttempt, Payload,
    Placement, Policy, Priority, Progress, Role, Verdict,
};
use crate::name::{AffinityKey, GroupId, Kind, Lane, Tag, WorkerId};
use crate::time::{WallMillis, as_millis};
use crate::wire::WireError;

#[derive(Serialize, Deserialize)]
pub struct JobRecordV1 {
    kind: String,
    payload: PayloadV1,
    policy: PolicyV1,
    placement: PlacementV1,
    priority: u8,
    expires_at: Option<u64>,
    membership: Option<MembershipV1>,
    token: [u8; 16],
    submitted_at: u64,
    generation: u32,
    attempts: u32,
    failures: u32,
    losses: u32,
    #[serde(deserialize_with = "few")]
    lost_workers: Vec<[u8; 16]>,
    excused: u32,
    last: Option<AttemptEndV1>,
    last_error: Option<String>,
    progress: Option<ProgressV1>,
    spawned: bool,
    trace: Option<TraceV1>,
    state: JobStateV1,
    assigned_at: Option<u64>,
    #[serde(deserialize_with = "few")]
    history: Vec<PastAttemptV1>,
    changed: Option<ChangeV1>,
    part: u16,
    released: bool,
}

#[derive(Serialize, Deserialize)]
pub(super) struct PayloadV1 {
    content_type: String,
    #[serde(with = "bytes")]
    bytes: Vec<u8>,
}

#[derive(Serialize, Deserialize)]
pub(super) struct PolicyV1 {
    max_attempts: u32,
    max_losses: u32,
    backoff_initial_ms: u64,
    backoff_max_ms: u64,
    timeout_ms: Option<u64>,
    lease_ms: Option<u64>,
    auto_renew: Option<bool>,
    dead_letter: bool,
}

#[derive(Serialize, Deserialize)]
pub(super) struct PlacementV1 {
    #[serde(deserialize_with = "few")]
    tags: Vec<String>,
    affinity: Option<String>,
    lane: Option<String>,
}

#[derive(Serialize, Deserialize)]
struct AttemptEndV1 {
    number: u32,
    worker: [u8; 16],
    how: AttemptOutcomeV1,
    at: u64,
}

#[derive(Serialize, Deserialize)]
struct PastAttemptV1 {
    generation: u32,
    end: AttemptEndV1,
    assigned_at: Option<u64>,
    error: Option<String>,
}

stored_enum!(
    AttemptOutcomeV1 = AttemptOutcome {
        Succeeded,
        Failed,
        Lost,
        Released,
        Cancelled,
        Invalid,
        Snoozed,
        LeaseExpired,
        Expired
    }
);

#[derive(Serialize, Deserialize)]
enum JobStateV1 {
    Open { not_before: Option<u64> },
    Succeeded { result: PayloadV1, at: u64 },
    Cancelled { at: u64 },
    Dead { at: u64 },
}

#[derive(Serialize, Deserialize)]
pub(super) struct MembershipV1 {
    group: String,
    role: RoleV1,
    counted: bool,
}

#[derive(Serialize, Deserialize)]
enum RoleV1 {
    Member(u32),
    Join,
    Finish,
}

#[derive(Serialize, Deserialize)]
pub(super) struct ProgressV1 {
    percent: Option<u8>,
    message: String,
    #[serde(with = "bytes")]
    checkpoint: Vec<u8>,
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
            lease_ms: policy.lease.map(as_millis),
            auto_renew: policy.auto_renew,
            dead_letter: policy.dead_letter,
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
            lease: stored.lease_ms.map(Duration::from_millis),
            auto_renew: stored.auto_renew,
            dead_letter: stored.dead_letter,
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
        let how = end.how.into();
        Self { number: end.attempt.number, worker: end.attempt.worker.uuid().into_bytes(), how, at: end.at.0 }
    }
}

impl TryFrom<AttemptEndV1> for AttemptEnd {
    type Error = WireError;
    fn try_from(stored: AttemptEndV1) -> Result<Self, WireError> {
        let how = stored.how.into();
        let worker = WorkerId::new(Uuid::from_bytes(stored.worker));
        let number = count("attempt", stored.number)?;
        Ok(Self { attempt: Attempt { number, worker }, how, at: WallMillis(stored.at) })
    }
}

impl From<&PastAttempt> for PastAttemptV1 {
    fn from(past: &PastAttempt) -> Self {
        Self {
            generation: past.generation,
            end: (&past.end).into(),
            assigned_at: past.assigned_at.map(|at| at.0),
            error: past.error.clone(),
        }
    }
}

impl TryFrom<PastAttemptV1> for PastAttempt {
    type Error = WireError;
    fn try_from(stored: PastAttemptV1) -> Result<Self, WireError> {
        if let Some(len) = stored.error.as_ref().map(String::len).filter(|len| *len > MAX_PAST_ERROR_BYTES) {
            let most = MAX_PAST_ERROR_BYTES;
            return Err(WireError::Value(format!(
                "a listed error of {len} bytes: at most {most} are allowed"
            )));
        }
        Ok(Self {
            generation: count("generation", stored.generation)?,
            end: stored.end.try_into()?,
            assigned_at: stored.assigned_at.map(WallMillis),
            error: stored.error,
        })
    }
}

/// The listed attempts, of which there are at most [`MAX_PAST_ATTEMPTS`].
fn history(stored: Vec<PastAttemptV1>) -> Result<Vec<PastAttempt>, WireError> {
    let listed = stored.len();
    if listed > MAX_PAST_ATTEMPTS {
        let most = MAX_PAST_ATTEMPTS;
        return Err(WireError::Value(format!("{listed} listed attempts: at most {most} are allowed")));
    }
    stored.into_iter().map(TryInto::try_into).collect()
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
            priority: job.priority.get(),
            expires_at: job.expires_at.map(|at| at.0),
            membership: job.membership.as_ref().map(Into::into),
            token: job.token.into_bytes(),
            submitted_at: job.submitted_at.0,
            generation: job.generation,
            attempts: job.attempts,
            failures: job.failures,
            losses: job.losses,
            lost_workers: job.lost_workers.iter().map(|id| id.uuid().into_bytes()).collect(),
            excused: job.excused,
            last: job.last.as_ref().map(Into::into),
            last_error: job.last_error.clone(),
            progress: job.progress.as_ref().map(Into::into),
            spawned: job.spawned,
            trace: job.trace.map(Into::into),
            state: (&job.state).into(),
            assigned_at: job.assigned_at.map(|at| at.0),
            history: job.history.iter().map(Into::into).collect(),
            changed: job.changed.as_ref().map(Into::into),
            part: job.part,
            released: job.released,
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
            priority: Priority::new(stored.priority).map_err(value)?,
            expires_at: stored.expires_at.map(WallMillis),
            membership: stored.membership.map(TryInto::try_into).transpose()?,
            token: Uuid::from_bytes(stored.token),
            submitted_at: WallMillis(stored.submitted_at),
            generation: count("generation", stored.generation)?,
            attempts: count("attempts", stored.attempts)?,
            failures: count("failures", stored.failures)?,
            losses: count("losses", stored.losses)?,
            lost_workers: lost_workers(stored.lost_workers, stored.losses)?,
            excused: count("excused losses", stored.excused)?,
            last: stored.last.map(TryInto::try_into).transpose()?,
            last_error: stored.last_error.map(error_text).transpose()?,
            progress: stored.progress.map(TryInto::try_into).transpose()?,
            spawned: stored.spawned,
            trace: stored.trace.map(TryInto::try_into).transpose()?,
            state: stored.state.try_into()?,
            assigned_at: stored.assigned_at.map(WallMillis),
            history: history(stored.history)?,
            changed: stored.changed.map(TryInto::try_into).transpose()?,
            part: stored.part,
            released: stored.released,
        })
    }
}

/// The workers of losses, of which each is counted: an excuse takes back a count.
fn lost_workers(stored: Vec<[u8; 16]>, losses: u32) -> Result<Vec<WorkerId>, WireError> {
    let given = stored.len();
    if given > MAX_FORMER_IDS {
        return Err(WireError::Value(format!("{given} lost workers: at most {MAX_FORMER_IDS} are allowed")));
    }
    if u32::try_from(given).is_ok_and(|given| given > losses) {
        return Err(WireError::Value(format!("{given} lost workers for {losses} losses")));
    }
    Ok(stored.into_iter().map(|id| WorkerId::new(Uuid::from_bytes(id))).collect())
}

impl From<&Membership> for MembershipV1 {
    fn from(membership: &Membership) -> Self {
        let role = match membership.role {
            Role::Member(number) => RoleV1::Member(number),
            Role::Join => RoleV1::Join,
            Role::Finish => RoleV1::Finish,
        };
        Self { group: membership.group.to_string(), role, counted: membership.counted }
    }
}

impl TryFrom<MembershipV1> for Membership {
    type Error = WireError;
    fn try_from(stored: MembershipV1) -> Result<Self, WireError> {
        let role = match stored.role {
            RoleV1::Member(number) if number >= MAX_MEMBERS => {
                return Err(WireError::Value(format!("member {number}: at most {MAX_MEMBERS} are allowed")));
            }
            RoleV1::Member(number) => Role::Member(number),
            RoleV1::Join => Role::Join,
            RoleV1::Finish => Role::Finish,
        };
        Ok(Self { group: GroupId::new(stored.group)?, role, counted: stored.counted })
    }
}

impl From<&Progress> for ProgressV1 {
    fn from(progress: &Progress) -> Self {
        Self {
            percent: progress.percent(),
            message: progress.message().to_owned(),
            checkpoint: progress.checkpoint().to_vec(),
        }
    }
}

impl TryFrom<ProgressV1> for Progress {
    type Error = WireError;
    fn try_from(stored: ProgressV1) -> Result<Self, WireError> {
        let said = Self::default().with_message(stored.percent, stored.message).map_err(value)?;
        said.with_checkpoint(stored.checkpoint).map_err(value)
    }
}
