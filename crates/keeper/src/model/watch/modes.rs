//! Kinds of watches, and the events that fire each kind.

use crate::model::Compat;
use crate::proto::{AddWatchMode, ErrorCode, EventKind, WatcherKind};

/// A set of kinds of watches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::model) struct Modes(u8);

impl Modes {
    pub(super) const NONE: Self = Self(0);
    /// One-shot, on data and existence.
    pub(in crate::model) const DATA: Self = Self(1);
    /// One-shot, on the list of children.
    pub(in crate::model) const CHILD: Self = Self(2);
    const DATA_PERSISTENT: Self = Self(4);
    const CHILD_PERSISTENT: Self = Self(8);
    const DATA_RECURSIVE: Self = Self(16);
    /// Fires only for events of its other half, but can be removed without it.
    const CHILD_RECURSIVE: Self = Self(32);

    pub(super) const ONE_SHOT: Self = Self::DATA.and(Self::CHILD);
    pub(super) const PERSISTENT: Self = Self::DATA_PERSISTENT.and(Self::CHILD_PERSISTENT);
    pub(super) const RECURSIVE: Self = Self::DATA_RECURSIVE.and(Self::CHILD_RECURSIVE);
    pub(super) const DATA_TABLE: Self = Self::DATA.and(Self::DATA_PERSISTENT).and(Self::DATA_RECURSIVE);
    const CHILD_TABLE: Self = Self::CHILD.and(Self::CHILD_PERSISTENT).and(Self::CHILD_RECURSIVE);
    pub(super) const ANY: Self = Self::DATA_TABLE.and(Self::CHILD_TABLE);

    /// Returns the watches set by `addWatch`.
    pub(in crate::model) fn lasting(mode: AddWatchMode, compat: Compat) -> Self {
        match (mode, compat) {
            (AddWatchMode::Persistent, Compat::V3_9 | Compat::V3_8_0) => Self::PERSISTENT,
            (AddWatchMode::PersistentRecursive, Compat::V3_9) => Self::DATA_RECURSIVE,
            (AddWatchMode::PersistentRecursive, Compat::V3_8_0) => Self::RECURSIVE,
        }
    }

    /// Returns the watches that `checkWatches` and `removeWatches` refer to. Up to 3.8 that is a whole table, and
    /// lasting watches have no kind.
    pub(in crate::model) fn of_kind(kind: WatcherKind, compat: Compat) -> Result<Self, ErrorCode> {
        Ok(match (kind, compat) {
            (WatcherKind::Any, Compat::V3_9 | Compat::V3_8_0) => Self::ANY,
            (WatcherKind::Children, Compat::V3_9) => Self::CHILD,
            (WatcherKind::Children, Compat::V3_8_0) => Self::CHILD_TABLE,
            (WatcherKind::Data, Compat::V3_9) => Self::DATA,
            (WatcherKind::Data, Compat::V3_8_0) => Self::DATA_TABLE,
            (WatcherKind::Persistent, Compat::V3_9) => Self::PERSISTENT,
            (WatcherKind::PersistentRecursive, Compat::V3_9) => Self::RECURSIVE,
            (WatcherKind::Persistent | WatcherKind::PersistentRecursive, Compat::V3_8_0) => {
                return Err(ErrorCode::MarshallingError);
            }
        })
    }

    /// Returns the union.
    pub(in crate::model) const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(super) fn common(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    pub(super) fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    pub(super) fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub(super) fn intersects(self, other: Self) -> bool {
        !self.common(other).is_empty()
    }

    /// Returns all watches of the tables that contain these watches.
    pub(super) fn tables(self) -> Self {
        let table = |table| if self.intersects(table) { table } else { Self::NONE };
        table(Self::DATA_TABLE).and(table(Self::CHILD_TABLE))
    }

    /// Returns the watches on the path that fire for this event.
    pub(super) fn that_hear(kind: EventKind) -> Self {
        match kind {
            EventKind::NodeCreated | EventKind::NodeDataChanged => Self::DATA_TABLE,
            EventKind::NodeDeleted => Self::ANY,
            EventKind::NodeChildrenChanged => Self::CHILD.and(Self::CHILD_PERSISTENT),
            // Not an event of a znode.
            EventKind::PersistentWatchRemoved => Self::NONE,
        }
    }

    /// Returns the watches on ancestors that fire for this event. Recursive watches do not fire for lists of children,
    /// which follow from the creations and deletions.
    pub(super) fn that_hear_above(kind: EventKind) -> Self {
        Self::that_hear(kind).common(Self::RECURSIVE)
    }
}
