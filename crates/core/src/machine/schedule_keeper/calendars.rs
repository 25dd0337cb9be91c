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

#[cfg(test)]
mod tests {
    use super::*;

    use std::time::Duration;

    #[test]
    fn calendars_are_shared_and_unused_ones_are_removed_when_there_are_many() {
        let every = |seconds: usize| When::every(Duration::from_secs(seconds as u64)).unwrap();
        let mut calendars = Calendars::default();
        let used = calendars.of(&every(1)).unwrap();
        assert!(Arc::ptr_eq(&used.0, &calendars.of(&every(1)).unwrap().0));
        for seconds in 2..=HELD {
            calendars.of(&every(seconds)).unwrap();
        }
        assert_eq!(calendars.0.len(), HELD);
        calendars.of(&every(HELD + 1)).unwrap();
        assert_eq!(calendars.0.keys().collect::<Vec<_>>(), [&every(1), &every(HELD + 1)]);
        assert_eq!(used, calendars.of(&every(1)).unwrap());
    }
}
