//! The paused kinds.
//!
//! There are few, so all of them are listed on every change. Only one list is in flight at a time, so a later answer
//! always belongs to a later list.

use std::collections::BTreeSet;

use crate::name::Kind;

#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(super) struct Pauses {
    kinds: Option<BTreeSet<Kind>>,
    listing: Listing,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
enum Listing {
    #[default]
    Fresh,
    Stale,
    InFlight {
        stale: bool,
    },
}

impl Pauses {
    /// Returns the paused kinds; `None` until the first list.
    pub(super) fn kinds(&self) -> Option<&BTreeSet<Kind>> {
        self.kinds.as_ref()
    }

    pub(super) fn changed(&mut self) {
        self.listing = match self.listing {
            Listing::Fresh | Listing::Stale => Listing::Stale,
            Listing::InFlight { .. } => Listing::InFlight { stale: true },
        };
    }

    /// Whether to list the paused kinds now.
    pub(super) fn wants_list(&mut self) -> bool {
        let due = self.listing == Listing::Stale;
        if due {
            self.listing = Listing::InFlight { stale: false };
        }
        due
    }

    /// Handles a list. `None` means no answer: the next change or sweep lists them again.
    pub(super) fn listed(&mut self, kinds: Option<BTreeSet<Kind>>) {
        let stale = matches!(self.listing, Listing::InFlight { stale: true }) || kinds.is_none();
        self.kinds = kinds.or(self.kinds.take());
        self.listing = if stale { Listing::Stale } else { Listing::Fresh };
    }
}
