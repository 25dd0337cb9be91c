//! The records of workers and of the leader, and the layout.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::change::NotedV1;
use super::parts::{few, lease, set};
use crate::budget::{MAX_FORMER_IDS, MAX_KINDS, MAX_SLOTS, MAX_TAGS};
use crate::machine::election::campaign::Strategy;
use crate::name::{Kind, NodeId, Tag, WorkerId};
use crate::takeover::Owner;
use crate::time::{WallMillis, as_millis};
use crate::wire::{Layout, WireError};
use crate::worker::{EpochRecord, WorkerInfo, WorkerSettings};

#[derive(Serialize, Deserialize)]
pub struct WorkerInfoV1 {
    node: String,
    host: String,
    #[serde(deserialize_with = "few")]
    kinds: Vec<String>,
    /// Each refers to a position in `kinds`.
    #[serde(deserialize_with = "few")]
    leases: Vec<LeaseV1>,
    slots: u32,
    #[serde(deserialize_with = "few")]
    tags: Vec<String>,
    codec: u16,
    started_at: u64,
    #[serde(deserialize_with = "few")]
    former: Vec<[u8; 16]>,
    owner: Option<[u8; 16]>,
    draining: bool,
    settings: NotedV1<WorkerSettingsV1>,
}

#[derive(Serialize, Deserialize)]
struct WorkerSettingsV1 {
    slots: Option<u32>,
    /// Whether `tags` replaces the tags of the worker.
    replaces_tags: bool,
    #[serde(deserialize_with = "few")]
    tags: Vec<String>,
    #[serde(deserialize_with = "few")]
    paused: Vec<String>,
}

#[derive(Serialize, Deserialize)]
pub struct EpochRecordV1 {
    node: String,
    session: i64,
    token: [u8; 16],
    since: u64,
}

#[derive(Serialize, Deserialize)]
struct LeaseV1 {
    kind: u16,
    lease_ms: u64,
}

#[derive(Serialize, Deserialize)]
pub struct LayoutV1 {
    version: u16,
    election: Option<ElectionV1>,
}

stored_enum!(ElectionV1 = Strategy { Queue, Single });

impl From<&WorkerInfo> for WorkerInfoV1 {
    fn from(info: &WorkerInfo) -> Self {
        Self {
            node: info.node.to_string(),
            host: info.host.clone(),
            kinds: info.kinds.iter().map(ToString::to_string).collect(),
            leases: leases(info),
            slots: info.slots,
            tags: info.tags.iter().map(ToString::to_string).collect(),
            codec: info.codec,
            started_at: info.started_at.0,
            former: info.former.iter().map(|id| id.uuid().into_bytes()).collect(),
            owner: info.owner.map(|owner| owner.0),
            draining: info.draining,
            settings: NotedV1::from(&info.settings),
        }
    }
}

impl TryFrom<WorkerInfoV1> for WorkerInfo {
    type Error = WireError;
    fn try_from(stored: WorkerInfoV1) -> Result<Self, WireError> {
        check_slots(stored.slots)?;
        if stored.former.len() > MAX_FORMER_IDS {
            let given = stored.former.len();
            return Err(WireError::Value(format!(
                "{given} former ids: at most {MAX_FORMER_IDS} are allowed"
            )));
        }
        let kinds = set("kinds", MAX_KINDS, stored.kinds, |kind| Ok(Kind::new(kind)?))?;
        let leases = stored.leases.into_iter().map(|LeaseV1 { kind, lease_ms }| {
            let of = kinds.get(usize::from(kind));
            let of =
                of.ok_or_else(|| WireError::Value(format!("a lease of kind {kind} of {}", kinds.len())))?;
            Ok::<_, WireError>((of.clone(), lease(lease_ms)?))
        });
        Ok(Self {
            node: NodeId::new(stored.node)?,
            host: stored.host,
            leases: leases.collect::<Result<_, _>>()?,
            kinds,
            slots: stored.slots,
            tags: set("tags", MAX_TAGS, stored.tags, |tag| Ok(Tag::new(tag)?))?,
            codec: stored.codec,
            started_at: WallMillis(stored.started_at),
            former: stored.former.into_iter().map(|id| WorkerId::new(Uuid::from_bytes(id))).collect(),
            owner: stored.owner.map(Owner),
            draining: stored.draining,
            settings: stored.settings.try_into()?,
        })
    }
}

fn check_slots(slots: u32) -> Result<(), WireError> {
    if slots > MAX_SLOTS {
        return Err(WireError::Value(format!("{slots} slots: at most {MAX_SLOTS} are allowed")));
    }
    Ok(())
}

impl From<&WorkerSettings> for WorkerSettingsV1 {
    fn from(settings: &WorkerSettings) -> Self {
        let tags = settings.tags.iter().flatten().map(ToString::to_string).collect();
        let paused = settings.paused_kinds.iter().map(ToString::to_string).collect();
        Self { slots: settings.slots, replaces_tags: settings.tags.is_some(), tags, paused }
    }
}

impl TryFrom<WorkerSettingsV1> for WorkerSettings {
    type Error = WireError;
    fn try_from(stored: WorkerSettingsV1) -> Result<Self, WireError> {
        stored.slots.map_or(Ok(()), check_slots)?;
        let tags = set("tags", MAX_TAGS, stored.tags, |tag| Ok(Tag::new(tag)?))?;
        if !stored.replaces_tags && !tags.is_empty() {
            return Err(WireError::Value(format!("{} tags that replace none", tags.len())));
        }
        Ok(Self {
            slots: stored.slots,
            tags: stored.replaces_tags.then_some(tags),
            paused_kinds: set("paused kinds", MAX_KINDS, stored.paused, |kind| Ok(Kind::new(kind)?))?,
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

fn leases(info: &WorkerInfo) -> Vec<LeaseV1> {
    let of = |(kind, lease): (&Kind, &Duration)| {
        let at = info.kinds.binary_search(kind).ok()?;
        let kind = u16::try_from(at).expect("a worker has at most 256 kinds");
        Some(LeaseV1 { kind, lease_ms: as_millis(*lease) })
    };
    info.leases.iter().filter_map(of).collect()
}

impl From<&Layout> for LayoutV1 {
    fn from(layout: &Layout) -> Self {
        let election = layout.election.map(Into::into);
        Self { version: layout.version, election }
    }
}

impl TryFrom<LayoutV1> for Layout {
    type Error = WireError;
    fn try_from(stored: LayoutV1) -> Result<Self, WireError> {
        let election = stored.election.map(Into::into);
        Ok(Self { version: stored.version, election })
    }
}
