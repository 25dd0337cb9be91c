//! The settings that an operator changes while the leader assigns: the paused kinds and the placement strategy.
//!
//! They are few, so all of them are read on every change. Only one read is in flight at a time, so a later answer always
//! belongs to a later read.

use std::collections::BTreeSet;

use crate::name::{Kind, StrategyName};

/// The settings, as they were read.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Settings {
    /// The paused kinds.
    pub paused: BTreeSet<Kind>,
    /// The placement strategy.
    pub strategy: StrategySetting,
}

/// The setting of the placement strategy.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub enum StrategySetting {
    /// No strategy is set.
    #[default]
    Absent,
    /// The strategy with this name.
    Named(StrategyName),
    /// The setting cannot be read.
    Unreadable(String),
}

/// The paused kinds, and whether the settings must be read again.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(super) struct Known {
    paused: Option<BTreeSet<Kind>>,
    reading: Reading,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
enum Reading {
    #[default]
    Fresh,
    Stale,
    InFlight {
        stale: bool,
    },
}

impl Known {
    /// Returns the paused kinds; `None` until the settings are read for the first time.
    pub(super) fn paused(&self) -> Option<&BTreeSet<Kind>> {
        self.paused.as_ref()
    }

    pub(super) fn changed(&mut self) {
        self.reading = match self.reading {
            Reading::Fresh | Reading::Stale => Reading::Stale,
            Reading::InFlight { .. } => Reading::InFlight { stale: true },
        };
    }

    /// Whether to read the settings now.
    pub(super) fn wants_read(&mut self) -> bool {
        let due = self.reading == Reading::Stale;
        if due {
            self.reading = Reading::InFlight { stale: false };
        }
        due
    }

    /// Handles the paused kinds that were read. `None` means no answer: the next change or sweep reads them again.
    pub(super) fn read(&mut self, paused: Option<BTreeSet<Kind>>) {
        let stale = matches!(self.reading, Reading::InFlight { stale: true }) || paused.is_none();
        self.paused = paused.or(self.paused.take());
        self.reading = if stale { Reading::Stale } else { Reading::Fresh };
    }
}
