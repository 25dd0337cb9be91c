//! Which kinds are paused.
//!
//! Few are, so that they are listed whenever anything of them changes. One list is in flight at a time: a later answer is
//! always that of a later list.

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
    /// `None` until they were listed.
    pub(super) fn kinds(&self) -> Option<&BTreeSet<Kind>> {
        self.kinds.as_ref()
    }

    pub(super) fn changed(&mut self) {
        self.listing = match self.listing {
            Listing::Fresh | Listing::Stale => Listing::Stale,
            Listing::InFlight { .. } => Listing::InFlight { stale: true },
        };
    }

    /// Whether to list them now.
    pub(super) fn wants_list(&mut self) -> bool {
        let due = self.listing == Listing::Stale;
        if due {
            self.listing = Listing::InFlight { stale: false };
        }
        due
    }

    /// `None`: not answered, and asked again once somebody says that they changed.
    pub(super) fn listed(&mut self, kinds: Option<BTreeSet<Kind>>) {
        let stale = matches!(self.listing, Listing::InFlight { stale: true }) || kinds.is_none();
        self.kinds = kinds.or(self.kinds.take());
        self.listing = if stale { Listing::Stale } else { Listing::Fresh };
    }
}
