//! Calendars shared by schedules: most of 10,000 schedules use a few expressions, and a calendar takes some kilobytes.

use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};
use std::ops::Deref;
use std::sync::Arc;

use crate::schedule::{Calendar, SpecError, When};

/// Number of calendars above which unused ones are removed.
const HELD: usize = 1_024;

/// A schedule's calendar. It is derived from the record, so values that are compared are always equal.
#[derive(Debug, Clone)]
pub(super) struct Rules(Arc<Calendar>);

impl Deref for Rules {
    type Target = Calendar;
    fn deref(&self) -> &Calendar {
        &self.0
    }
}

impl PartialEq for Rules {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Rules {}

impl Hash for Rules {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(super) struct Calendars(BTreeMap<When, Rules>);

impl Calendars {
    pub(super) fn of(&mut self, when: &When) -> Result<Rules, SpecError> {
        if let Some(rules) = self.0.get(when) {
            return Ok(rules.clone());
        }
        if self.0.len() >= HELD {
            self.0.retain(|_, rules| Arc::strong_count(&rules.0) > 1);
        }
        let rules = Rules(Arc::new(when.calendar()?));
        self.0.insert(when.clone(), rules.clone());
        Ok(rules)
    }
}
