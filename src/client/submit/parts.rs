//! The parts of slots that submissions go to.
//!
//! A slot is one list of znodes, like a bucket of records, but jobs of one class and one minute are in one slot. So a client that
//! submits many of them divides them into parts. Each client chooses without reading: the first jobs go to the first part, so that
//! a class with little work has one slot for each minute, and the others to parts that are named by the millisecond in which they
//! begin. So parts are in the order of time, and clients rarely choose the same one. The size of a list is thus about [`PER_PART`]
//! names, and [`FIRST`] for each client in the first part. A segment has one entry, and so counts once.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use bellwether_core::budget::MAX_BUCKET_ENTRIES;
use bellwether_core::job::QueueEntry;
use bellwether_core::ready::{Class, ClassName, rank};

/// Entries of one client in the first part of a slot.
const FIRST: usize = 1_000;

/// Entries of one client in each further part.
const PER_PART: usize = MAX_BUCKET_ENTRIES;

/// Limit of remembered slots. After a forgotten one, the first part is used again.
const REMEMBERED: usize = 4_096;

#[derive(Debug, Default)]
pub(super) struct Parts(Mutex<BTreeMap<(ClassName, i64), Chosen>>);

#[derive(Debug, Clone, Copy)]
struct Chosen {
    part: u16,
    left: usize,
}

impl Parts {
    /// Chooses the part for the entry of a new job or segment.
    pub(super) fn choose(&self, entry: &QueueEntry) -> u16 {
        let rank = rank(entry.priority, entry.submitted_at);
        let slot = (Class::of(&entry.kind, &entry.placement).name(), rank.minute());
        let mut slots = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if slots.len() >= REMEMBERED && !slots.contains_key(&slot) {
            slots.clear();
        }
        let chosen = slots.entry(slot).or_insert(Chosen { part: 0, left: FIRST });
        if chosen.left == 0 {
            // Not that of the full part, even in the same millisecond or if the clock has been set back.
            let part = (rank.millis() + 1).max(chosen.part.saturating_add(1));
            *chosen = Chosen { part, left: PER_PART };
        }
        chosen.left -= 1;
        chosen.part
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use bellwether_core::name::Kind;
    use bellwether_core::time::WallMillis;

    use super::*;

    #[test]
    fn the_jobs_of_a_minute_are_divided_into_parts() {
        let parts = Parts::default();
        let minute = 1_700_000_040_000;
        let entry = |kind: &str, at: u64| QueueEntry {
            submitted_at: WallMillis(minute + at),
            ..QueueEntry::new(Kind::new(kind).unwrap(), 1, 1)
        };
        let mut sizes = BTreeMap::<u16, usize>::new();
        let mut submit = |jobs: usize, at| {
            for _ in 0..jobs {
                *sizes.entry(parts.choose(&entry("sum", at))).or_default() += 1;
            }
        };
        submit(FIRST, 0);
        submit(PER_PART, 7);
        submit(2 * PER_PART, 59_000);
        submit(1, 1);
        let wanted = [(0, FIRST), (8, PER_PART), (59_001, PER_PART), (59_002, PER_PART), (59_003, 1)];
        assert_eq!(sizes.into_iter().collect::<Vec<_>>(), wanted);
        assert_eq!(parts.choose(&entry("sum", 60_000)), 0, "another minute");
        assert_eq!(parts.choose(&entry("mail", 0)), 0, "another class");
    }

    #[test]
    fn a_full_slot_is_remembered_until_too_many_others_follow() {
        let parts = Parts::default();
        let choose = |minute: u64| {
            let entry = QueueEntry::new(Kind::new("sum").unwrap(), 1, 1);
            parts.choose(&QueueEntry { submitted_at: WallMillis(minute * 60_000), ..entry })
        };
        for _ in 0..FIRST {
            assert_eq!(choose(0), 0);
        }
        for minute in 1..REMEMBERED as u64 {
            choose(minute);
        }
        assert_eq!(choose(0), 1, "as many as are remembered");
        choose(REMEMBERED as u64);
        assert_eq!(choose(0), 0, "one more");
    }

    #[test]
    fn the_memory_of_slots_is_bounded() {
        let parts = Parts::default();
        for n in 0..3 * REMEMBERED as u64 {
            let entry = QueueEntry::new(Kind::new("sum").unwrap(), 1, 1);
            parts.choose(&QueueEntry { submitted_at: WallMillis(n * 60_000), ..entry });
            assert!(parts.0.lock().unwrap().len() <= REMEMBERED);
        }
    }
}
