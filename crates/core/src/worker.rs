//! The records of workers, of the leader and of paused kinds.

use std::collections::BTreeMap;
use std::time::Duration;

use uuid::Uuid;

use crate::budget::{MAX_SLOTS, MAX_TAGS};
use crate::change::{Author, Note, Noted};
use crate::job::Placement;
use crate::name::{Kind, NodeId, Tag, WorkerId};
use crate::takeover::Owner;
use crate::time::WallMillis;

/// A worker's registration, in its ephemeral znode.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct WorkerInfo {
    /// The node it belongs to.
    pub node: NodeId,
    /// The host that it runs on; only for display.
    pub host: String,
    /// The kinds it has handlers for; sorted, without repeats.
    pub kinds: Vec<Kind>,
    /// The leases of the kinds that override the default lease.
    pub leases: BTreeMap<Kind, Duration>,
    /// How many jobs it runs at a time, as the worker has published it: see [`Self::open_slots`].
    pub slots: u32,
    /// The tags of its configuration; sorted, without repeats: see [`Self::offered_tags`].
    pub tags: Vec<Tag>,
    /// The highest schema version that it reads.
    pub codec: u16,
    /// When it registered, by its wall clock.
    pub started_at: WallMillis,
    /// The worker ids that its process had before, in sessions that expired. Their attempts are handed back and not
    /// lost, because the process is alive. The newest ones, at most [`MAX_FORMER_IDS`](crate::budget::MAX_FORMER_IDS).
    pub former: Vec<WorkerId>,
    /// The owner of a worker that runs jobs for another process.
    pub owner: Option<Owner>,
    /// Set before it leaves: it accepts no new jobs. The change raises the version of the znode, which every assignment
    /// checks, so no later assignment can commit.
    pub draining: bool,
    /// What an operator has changed since the process started. Every writer of the registration keeps it.
    pub settings: Noted<WorkerSettings>,
}

// A new field also belongs into the request `WorkerChange` and the answer `WorkerSettingsDocument`.
/// What an operator changes on a running worker. It is part of the registration, so an assignment under earlier settings
/// cannot commit. The process keeps it for its later registrations, and a restart of the process ends it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
#[must_use]
#[non_exhaustive]
pub struct WorkerSettings {
    /// The number of slots instead of the configured one; 0 takes no jobs.
    pub slots: Option<u32>,
    /// The tags instead of the configured ones; sorted, without repeats.
    pub tags: Option<Vec<Tag>>,
    /// The kinds of which the worker starts no jobs; sorted, without repeats.
    pub paused_kinds: Vec<Kind>,
}

/// Settings of a worker are out of bounds.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WorkerSettingsError {
    /// Too many slots.
    #[error("slots must be 0 to {MAX_SLOTS}, not {0}")]
    Slots(u32),
    /// Too many tags.
    #[error("a worker has at most {MAX_TAGS} tags, not {0}")]
    Tags(usize),
    /// The worker has no handler for a paused kind.
    #[error("the worker has no handler for kind {0}")]
    Kind(Kind),
}

impl WorkerSettings {
    /// Sets the number of slots, 0 to 4096, or `None` for the configured number.
    pub fn slots(self, slots: impl Into<Option<u32>>) -> Self {
        Self { slots: slots.into(), ..self }
    }

    /// Sets the tags, at most 32, or `None` for the configured ones.
    pub fn tags(self, tags: impl Into<Option<Vec<Tag>>>) -> Self {
        Self { tags: tags.into(), ..self }
    }

    /// Sets the kinds of which the worker starts no jobs. It must have a handler for each of them.
    pub fn paused_kinds(self, kinds: Vec<Kind>) -> Self {
        Self { paused_kinds: kinds, ..self }
    }

    /// Whether the worker starts jobs of this kind.
    #[must_use]
    pub fn starts(&self, kind: &Kind) -> bool {
        self.slots != Some(0) && self.paused_kinds.binary_search(kind).is_err()
    }

    /// Sorts the lists, and checks the bounds for a worker with these kinds.
    ///
    /// # Errors
    /// The first bound that does not hold.
    pub fn check(mut self, kinds: &[Kind]) -> Result<Self, WorkerSettingsError> {
        if let Some(slots) = self.slots.filter(|slots| *slots > MAX_SLOTS) {
            return Err(WorkerSettingsError::Slots(slots));
        }
        if let Some(tags) = &mut self.tags {
            tags.sort();
            tags.dedup();
            if tags.len() > MAX_TAGS {
                return Err(WorkerSettingsError::Tags(tags.len()));
            }
        }
        self.paused_kinds.sort();
        self.paused_kinds.dedup();
        match self.paused_kinds.iter().find(|kind| kinds.binary_search(kind).is_err()) {
            Some(kind) => Err(WorkerSettingsError::Kind(kind.clone())),
            None => Ok(self),
        }
    }
}

impl WorkerInfo {
    /// How many jobs it may hold: the published slots, or fewer if an operator has lowered them. More slots count only
    /// after the worker has published them.
    #[must_use]
    pub fn open_slots(&self) -> usize {
        self.settings.value.slots.map_or(self.slots, |slots| slots.min(self.slots)) as usize
    }

    /// The tags that it offers, sorted.
    #[must_use]
    pub fn offered_tags(&self) -> &[Tag] {
        self.settings.value.tags.as_ref().unwrap_or(&self.tags)
    }

    /// Whether it has a handler for the kind.
    #[must_use]
    pub fn has_handler(&self, kind: &Kind) -> bool {
        self.kinds.binary_search(kind).is_ok()
    }

    /// Whether it has a handler for the kind and an operator has not paused the kind on it.
    #[must_use]
    pub fn serves(&self, kind: &Kind) -> bool {
        self.has_handler(kind) && self.settings.value.paused_kinds.binary_search(kind).is_err()
    }

    /// Whether it offers all of these tags.
    #[must_use]
    pub fn offers(&self, tags: &[Tag]) -> bool {
        tags.iter().all(|tag| self.offered_tags().binary_search(tag).is_ok())
    }

    /// Whether it can run jobs of `kind` with this placement.
    #[must_use]
    pub fn can_run(&self, kind: &Kind, placement: &Placement) -> bool {
        self.serves(kind) && self.offers(&placement.tags)
    }
}

/// The record of the leader, in `/epoch`. The version of the znode is the epoch.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct EpochRecord {
    /// The node that claimed it.
    pub node: NodeId,
    /// Its ZooKeeper session: an epoch belongs to a session, never to a host name (S4).
    pub session: i64,
    /// Chosen by the claim; identifies this claim after a lost reply.
    pub token: Uuid,
    /// When it was claimed, by the leader's wall clock.
    pub since: WallMillis,
}

/// The record of a paused kind, in `/pauses/{kind}`. The kind is paused while the znode exists.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PauseRecord {
    /// The author of the pause, if the client named one.
    pub by: Option<Author>,
    /// The note of the author, or an empty one.
    pub note: Note,
    /// When it was paused, by the client's wall clock.
    pub since: WallMillis,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(name: &str) -> Kind {
        Kind::new(name).unwrap()
    }

    fn tag(name: &str) -> Tag {
        Tag::new(name).unwrap()
    }

    fn info(settings: WorkerSettings) -> WorkerInfo {
        WorkerInfo {
            node: NodeId::new("n").unwrap(),
            host: "h".into(),
            kinds: vec![kind("mail"), kind("sum")],
            leases: BTreeMap::new(),
            slots: 4,
            tags: vec![tag("eu")],
            codec: 1,
            started_at: WallMillis(0),
            former: vec![],
            owner: None,
            draining: false,
            settings: Noted::unchanged(settings),
        }
    }

    #[test]
    fn settings_replace_the_configuration_of_a_worker() {
        let usual = info(WorkerSettings::default());
        assert_eq!((usual.open_slots(), usual.offered_tags()), (4, &[tag("eu")][..]));
        assert!(usual.serves(&kind("sum")));
        let changed = info(WorkerSettings {
            slots: Some(2),
            tags: Some(vec![tag("gpu")]),
            paused_kinds: vec![kind("sum")],
        });
        assert_eq!((changed.open_slots(), changed.offered_tags()), (2, &[tag("gpu")][..]));
        assert!(changed.has_handler(&kind("sum")) && !changed.serves(&kind("sum")));
        assert!(changed.serves(&kind("mail")));
        let more = info(WorkerSettings { slots: Some(9), ..WorkerSettings::default() });
        assert_eq!(more.open_slots(), 4, "the worker has not published more slots yet");
    }

    #[test]
    fn settings_are_sorted_and_bounded() {
        let kinds = [kind("mail"), kind("sum")];
        let check = |settings: WorkerSettings| settings.check(&kinds).map_err(|error| error.to_string());
        let sorted = check(WorkerSettings {
            slots: Some(0),
            tags: Some(vec![tag("b"), tag("a"), tag("b")]),
            paused_kinds: vec![kind("sum"), kind("mail"), kind("sum")],
        });
        let expected = WorkerSettings {
            slots: Some(0),
            tags: Some(vec![tag("a"), tag("b")]),
            paused_kinds: kinds.to_vec(),
        };
        assert_eq!(sorted, Ok(expected));
        let slots = WorkerSettings { slots: Some(MAX_SLOTS + 1), ..WorkerSettings::default() };
        assert_eq!(check(slots), Err("slots must be 0 to 4096, not 4097".to_owned()));
        let tags = (0..=MAX_TAGS).map(|n| tag(&n.to_string())).collect();
        let tags = WorkerSettings { tags: Some(tags), ..WorkerSettings::default() };
        assert_eq!(check(tags), Err("a worker has at most 32 tags, not 33".to_owned()));
        let unknown = WorkerSettings { paused_kinds: vec![kind("smu")], ..WorkerSettings::default() };
        assert_eq!(check(unknown), Err("the worker has no handler for kind smu".to_owned()));
    }

    #[test]
    fn settings_at_their_bounds_are_accepted() {
        let tags = (0..MAX_TAGS).map(|n| tag(&n.to_string())).collect();
        let most = WorkerSettings { slots: Some(MAX_SLOTS), tags: Some(tags), paused_kinds: vec![] };
        assert!(most.check(&[]).is_ok());
    }
}
