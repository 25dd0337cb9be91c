use std::collections::VecDeque;

use proptest::prelude::{Just, Strategy, any, prop, prop_assert, prop_assert_eq, prop_oneof, proptest};

use super::*;
use crate::job::{Placement, Priority};
use crate::name::{AffinityKey, JobId, Lane, Tag};
use crate::segment::{SegmentId, jobs_under};
use crate::time::WallMillis;

const MINUTE: u64 = 60_000;

/// The job `n` of a class waits since this minute. Every third job has data.
fn waiting(kind: &str, minute: u64, n: u32) -> Waiting {
    let affinity = if n.is_multiple_of(3) { AffinityKey::new("key").ok() } else { None };
    let entry = QueueEntry {
        placement: Placement { affinity, ..Placement::default() },
        priority: Priority::new(0).unwrap(),
        submitted_at: WallMillis(minute * MINUTE + u64::from(n)),
        ..QueueEntry::new(Kind::new(kind).unwrap(), 1, 1)
    };
    Waiting::new(&JobId::new(format!("j{n}")).unwrap(), entry)
}

/// A job with data.
fn with_data(minute: u64, n: u32) -> Waiting {
    waiting("sum", minute, 3 * n)
}

/// A job without data.
fn plain(minute: u64, n: u32) -> Waiting {
    waiting("sum", minute, 3 * n + 1)
}

/// A server with its watch events and its requests in flight.
struct Bench {
    machine: JobWatcher,
    entries: BTreeMap<ReadyEntry, QueueEntry>,
    /// Slots without entries are kept until the server removes them.
    slots: BTreeSet<(ClassName, Slot)>,
    events: VecDeque<Event>,
    /// Requests with their answers, as of the time when they were sent.
    answers: VecDeque<Event>,
    told: BTreeMap<ReadyEntry, QueueEntry>,
    beyond: BTreeMap<Kind, usize>,
    reads: usize,
    lists: usize,
    /// Lists of slots whose jobs are only counted.
    counts: usize,
}

impl Bench {
    fn new(limit: usize) -> Self {
        Self {
            machine: JobWatcher::with_limit(limit),
            entries: BTreeMap::new(),
            slots: BTreeSet::new(),
            events: VecDeque::new(),
            answers: VecDeque::new(),
            told: BTreeMap::new(),
            beyond: BTreeMap::new(),
            reads: 0,
            lists: 0,
            counts: 0,
        }
    }

    /// A machine that watches an empty namespace.
    fn watching(limit: usize) -> Self {
        let mut bench = Self::new(limit);
        bench.handle(Event::Watched);
        bench.settle();
        bench.lists = 0;
        bench
    }

    fn create(&mut self, waiting: Waiting) {
        let Waiting { at, entry } = waiting;
        if self.entries.contains_key(&at) {
            return;
        }
        if !self.slots.iter().any(|(class, _)| *class == at.class) {
            self.events.push_back(Event::ClassCreated(at.class.clone()));
        }
        if self.slots.insert((at.class.clone(), at.slot)) {
            self.events.push_back(Event::SlotCreated(at.class.clone(), at.slot));
        }
        self.events.push_back(Event::Created(at.clone()));
        self.entries.insert(at, entry);
    }

    fn delete(&mut self, at: &ReadyEntry) {
        if self.entries.remove(at).is_some() {
            self.events.push_back(Event::Deleted(at.clone()));
        }
    }

    /// The server removes empty containers.
    fn remove_containers(&mut self) {
        let is_used = |(class, slot): &(ClassName, Slot)| {
            self.entries.keys().any(|at| (&at.class, at.slot) == (class, *slot))
        };
        let (used, empty): (BTreeSet<_>, BTreeSet<_>) = self.slots.iter().cloned().partition(is_used);
        self.slots = used;
        for (class, slot) in empty {
            self.events.push_back(Event::SlotDeleted(class.clone(), slot));
            let left = self.slots.iter().any(|(of, _)| *of == class);
            if !left && !self.events.contains(&Event::ClassDeleted(class.clone())) {
                self.events.push_back(Event::ClassDeleted(class));
            }
        }
    }

    fn handle(&mut self, event: Event) {
        let mut out = Vec::new();
        self.machine.handle(event, &mut out);
        self.machine.flush(&mut out);
        for effect in out {
            match effect {
                Effect::List { ticket, parents } => {
                    self.lists += parents.len();
                    let lists = Some(parents.into_iter().map(|parent| self.list(parent)).collect());
                    self.answers.push_back(Event::Listed { ticket, lists });
                }
                Effect::Read { ticket, entries } => {
                    assert!(entries.len() <= MAX_READ_BATCH);
                    self.reads += 1;
                    let entries = entries.into_iter().map(|at| (at.clone(), self.entries.get(&at).cloned()));
                    self.answers.push_back(Event::Read { ticket, entries: entries.collect() });
                }
                Effect::Size(slots) => {
                    let size = |(class, slot): (ClassName, Slot)| {
                        let size = self.list_entries(&class, slot).len();
                        (class, slot, size)
                    };
                    self.answers.push_back(Event::Sized(Some(slots.into_iter().map(size).collect())));
                }
                Effect::Count(class, slot) => {
                    self.counts += 1;
                    let jobs = self.list_entries(&class, slot).iter().map(|name| jobs_under(&name.job)).sum();
                    self.answers.push_back(Event::Sized(Some(vec![(class, slot, jobs)])));
                }
                Effect::Queued(jobs) => self.told.extend(jobs.into_iter().map(|job| (job.at, job.entry))),
                Effect::Unqueued(at) => drop(self.told.remove(&at)),
                Effect::Beyond(numbers) => self.beyond.extend(numbers),
            }
        }
    }

    fn list(&self, parent: Parent) -> Listed {
        let slots = |of: &ClassName| {
            self.slots.iter().filter(|(class, _)| class == of).map(|(_, slot)| *slot).collect::<Vec<_>>()
        };
        match parent {
            Parent::Shard(shard) => {
                let classes = self.slots.iter().map(|(class, _)| class).collect::<BTreeSet<_>>();
                let classes = classes.into_iter().filter(|class| class.shard() == shard);
                Listed::Classes(classes.cloned().collect())
            }
            Parent::Class(class) => {
                let slots = slots(&class);
                Listed::Slots(class, (!slots.is_empty()).then_some(slots))
            }
            Parent::Slot(class, slot) => {
                let names = self.list_entries(&class, slot);
                let exists = self.slots.contains(&(class.clone(), slot));
                Listed::Entries(class, slot, exists.then_some(names))
            }
        }
    }

    fn list_entries(&self, class: &ClassName, slot: Slot) -> Vec<RecordEntry> {
        let of_slot = self.entries.keys().filter(|at| at.class == *class && at.slot == slot);
        of_slot.map(|at| at.name.clone()).collect()
    }

    fn hear(&mut self) -> bool {
        let event = self.events.pop_front();
        let heard = event.is_some();
        event.into_iter().for_each(|event| self.handle(event));
        heard
    }

    fn answer(&mut self, is_lost: bool) -> bool {
        let Some(answer) = self.answers.pop_front() else { return false };
        self.handle(match answer {
            Event::Listed { ticket, .. } if is_lost => Event::Listed { ticket, lists: None },
            Event::Read { ticket, entries } if is_lost => {
                Event::ReadFailed { ticket, entries: entries.into_iter().map(|(at, _)| at).collect() }
            }
            Event::Sized(_) if is_lost => Event::Sized(None),
            answer => answer,
        });
        true
    }

    fn skip_sizes(&mut self) {
        while matches!(self.answers.front(), Some(Event::Sized(_))) {
            self.answer(false);
        }
    }

    /// Handles all events and answers.
    fn settle(&mut self) {
        while self.hear() || self.answer(false) {}
    }

    fn told(&self) -> Vec<&ReadyEntry> {
        self.told.keys().collect()
    }
}

#[test]
fn an_entry_in_a_slot_that_was_created_while_it_was_watched_is_reported_without_a_request() {
    let mut bench = Bench::watching(LIMIT);
    let job = plain(7, 1);
    bench.create(job.clone());
    while bench.hear() {}
    assert_eq!(bench.told, BTreeMap::from([(job.at.clone(), job.entry)]));
    assert_eq!((bench.lists, bench.reads), (0, 0));
    bench.delete(&job.at);
    bench.settle();
    assert!(bench.told.is_empty() && bench.machine.is_empty());
}

#[test]
fn an_entry_with_data_is_read_before_it_is_reported() {
    let mut bench = Bench::watching(LIMIT);
    let jobs = [with_data(7, 1), with_data(7, 2), with_data(7, 3)];
    jobs.iter().for_each(|job| bench.create(job.clone()));
    while bench.hear() {}
    assert_eq!((bench.told.len(), bench.reads), (0, 1), "the others wait for the first read");
    assert!(!bench.machine.is_empty());
    bench.answer(false);
    assert_eq!((bench.told.len(), bench.reads), (1, 2));
    bench.settle();
    assert_eq!(bench.told, jobs.into_iter().map(|job| (job.at, job.entry)).collect());
}

#[test]
fn an_entry_that_was_deleted_during_its_read_is_not_reported() {
    let mut bench = Bench::watching(LIMIT);
    let job = with_data(7, 1);
    bench.create(job.clone());
    while bench.hear() {}
    bench.delete(&job.at);
    while bench.hear() {}
    bench.answer(false);
    assert!(bench.told.is_empty() && bench.machine.is_empty());
}

/// An operator has repaired or changed it, or it was created again.
#[test]
fn only_the_answer_to_the_latest_read_of_an_entry_counts() {
    let mut bench = Bench::watching(LIMIT);
    let job = with_data(7, 1);
    bench.create(job.clone());
    while bench.hear() {}
    let newer = QueueEntry { fencing_token: 9, ..job.entry.clone() };
    bench.entries.insert(job.at.clone(), newer.clone());
    bench.events.push_back(Event::Created(job.at.clone()));
    bench.settle();
    assert_eq!(bench.told, BTreeMap::from([(job.at, newer)]));
}

/// Found by the property test below: the assigner did not receive the deletion of the entry.
#[test]
fn a_known_entry_that_is_created_again_and_deleted_before_its_read_is_withdrawn() {
    let mut bench = Bench::watching(LIMIT);
    let job = with_data(7, 1);
    bench.create(job.clone());
    bench.settle();
    assert_eq!(bench.told(), [&job.at]);
    bench.handle(Event::Created(job.at.clone()));
    assert!(bench.told.is_empty(), "its data may be other data");
    bench.delete(&job.at);
    bench.settle();
    assert!(bench.told.is_empty() && bench.machine.is_empty());
}

#[test]
fn a_new_leader_finds_the_waiting_jobs_of_all_classes() {
    let mut bench = Bench::new(LIMIT);
    for n in 0..300 {
        bench.create(waiting(["sum", "mail", "echo"][n as usize % 3], u64::from(n) / 50, n));
    }
    bench.events.clear();
    bench.handle(Event::Watched);
    bench.settle();
    assert_eq!(bench.told, bench.entries);
    assert_eq!(bench.machine.len(), 300);
}

/// Found by the simulator, in an earlier form: the assigner considered the entry assigned, and the job waited forever.
#[test]
fn everything_is_reported_again_after_a_new_watch() {
    let mut bench = Bench::watching(LIMIT);
    let (job, other) = (with_data(7, 1), plain(7, 2));
    [&job, &other].into_iter().for_each(|job| bench.create(job.clone()));
    bench.settle();
    let again = QueueEntry { fencing_token: 3, ..job.entry };
    bench.entries.insert(job.at.clone(), again.clone());
    bench.told.clear();
    bench.handle(Event::Sweep);
    bench.settle();
    assert!(bench.told.is_empty(), "a sweep reports nothing that is known");
    bench.handle(Event::Watched);
    bench.settle();
    assert_eq!(bench.told, BTreeMap::from([(job.at, again), (other.at, other.entry)]));
}

#[test]
fn answers_from_before_a_new_watch_are_ignored() {
    let mut bench = Bench::watching(LIMIT);
    bench.create(with_data(7, 1));
    while bench.hear() {}
    let answers = std::mem::take(&mut bench.answers);
    bench.handle(Event::Watched);
    answers.into_iter().for_each(|answer| bench.handle(answer));
    assert!(bench.told.is_empty());
    bench.settle();
    assert_eq!(bench.told, bench.entries);
}

#[test]
fn a_sweep_corrects_what_no_event_has_reported() {
    let mut bench = Bench::watching(LIMIT);
    let (gone, kept) = (plain(7, 1), plain(7, 2));
    [&gone, &kept].into_iter().for_each(|job| bench.create(job.clone()));
    bench.settle();
    bench.delete(&gone.at);
    for job in [plain(7, 3), plain(6, 4), waiting("mail", 7, 5)] {
        bench.create(job);
    }
    bench.events.clear();
    bench.handle(Event::Sweep);
    bench.settle();
    assert_eq!(bench.told, bench.entries);
}

#[test]
fn an_older_list_does_not_undo_the_changes_that_were_reported_since() {
    let mut bench = Bench::watching(LIMIT);
    let (gone, kept, new) = (plain(7, 1), plain(7, 2), plain(7, 3));
    [&gone, &kept].into_iter().for_each(|job| bench.create(job.clone()));
    bench.settle();
    bench.handle(Event::Sweep);
    assert!(!bench.answers.is_empty(), "the slot is listed");
    bench.delete(&gone.at);
    bench.create(new.clone());
    while bench.hear() {}
    assert_eq!(bench.told(), [&kept.at, &new.at]);
    bench.settle();
    assert_eq!(bench.told(), [&kept.at, &new.at]);
}

#[test]
fn requests_without_an_answer_are_repeated_after_the_next_sweep() {
    // The lists of the shards, of the class and of the slot, and the read of the entry.
    for answered in 0..4 {
        let mut bench = Bench::new(LIMIT);
        bench.create(with_data(7, 1));
        bench.events.clear();
        bench.handle(Event::Watched);
        for _ in 0..answered {
            bench.skip_sizes();
            bench.answer(false);
        }
        bench.skip_sizes();
        bench.answer(true);
        bench.settle();
        assert!(bench.told.is_empty(), "an immediate retry would spin");
        bench.handle(Event::Sweep);
        bench.settle();
        assert_eq!(bench.told, bench.entries, "{answered}");
    }
}

#[test]
fn an_unreadable_entry_is_forgotten_and_does_not_block_others() {
    let mut bench = Bench::watching(LIMIT);
    let (bad, good) = (with_data(7, 1), with_data(7, 2));
    bench.create(bad.clone());
    while bench.hear() {}
    let Some(Event::Read { ticket, .. }) = bench.answers.pop_front() else { panic!("it is read") };
    bench.handle(Event::Read { ticket, entries: vec![(bad.at, None)] });
    assert!(bench.machine.is_empty());
    bench.create(good.clone());
    bench.settle();
    assert_eq!(bench.told(), [&good.at]);
}

#[test]
fn reads_are_full_and_only_a_few_are_in_flight() {
    let mut bench = Bench::new(LIMIT);
    for n in 0..1_000 {
        bench.create(with_data(7, n));
    }
    bench.events.clear();
    bench.handle(Event::Watched);
    while bench.reads == 0 {
        assert!(bench.answer(false));
    }
    let sizes = bench.answers.iter().filter_map(|answer| match answer {
        Event::Read { entries, .. } => Some(entries.len()),
        _ => None,
    });
    assert_eq!(sizes.collect::<Vec<_>>(), [MAX_READ_BATCH; READ_WINDOW]);
}

#[test]
fn the_most_urgent_jobs_are_known_and_the_others_are_counted() {
    let mut bench = Bench::watching(10);
    for n in 0..50 {
        bench.create(plain(u64::from(n) / 7, n));
    }
    bench.settle();
    let first = bench.entries.keys().take(10).cloned().collect::<Vec<_>>();
    assert_eq!(bench.told(), first.iter().collect::<Vec<_>>());
    assert_eq!(bench.beyond, BTreeMap::from([(Kind::new("sum").unwrap(), 40)]));
    // More urgent than all: it displaces the last.
    let urgent = plain(0, 999);
    bench.create(urgent.clone());
    bench.settle();
    assert_eq!((bench.told.len(), bench.told.contains_key(&urgent.at)), (10, true));
    assert!(!bench.told.contains_key(&first[9]));
    for left in (0..51).rev() {
        let first = bench.entries.keys().next().cloned().unwrap();
        bench.delete(&first);
        bench.settle();
        let known = bench.told.len();
        assert!(known > 5 || known == left, "{known} of {left}");
        assert_eq!(bench.told(), bench.entries.keys().take(known).collect::<Vec<_>>());
        assert_eq!(bench.beyond.values().sum::<usize>(), left - known);
    }
}

#[test]
fn each_class_has_a_share_and_a_new_class_is_served_beside_a_long_backlog() {
    let mut bench = Bench::watching(20);
    for n in 0..100 {
        bench.create(waiting("sum", 7, 3 * n + 1));
    }
    bench.settle();
    assert_eq!(bench.told.len(), 20);
    for (n, kind) in ["a", "b", "c"].into_iter().enumerate() {
        bench.create(waiting(kind, 9, u32::try_from(3 * n + 1).unwrap()));
    }
    bench.handle(Event::Sweep);
    bench.settle();
    let of_sum = bench.told.keys().filter(|at| at.class.as_str() == "sum").count();
    assert_eq!((of_sum, bench.told.len()), (5, 8));
}

#[test]
fn at_least_a_few_jobs_of_each_of_many_classes_are_known() {
    let mut bench = Bench::new(20);
    for n in 0..300 {
        bench.create(waiting(&format!("kind-{}", n % 30), 7, n));
    }
    bench.events.clear();
    bench.handle(Event::Watched);
    bench.settle();
    for class in bench.entries.keys().map(|at| &at.class).collect::<BTreeSet<_>>() {
        assert_eq!(bench.told.keys().filter(|at| at.class == *class).count(), LEAST);
    }
}

/// Their turn decides when they run.
#[test]
fn the_jobs_of_lanes_are_known_as_a_whole() {
    let mut bench = Bench::new(4);
    for n in 0..50 {
        let Waiting { entry, at } = with_data(7, n);
        let placement = Placement { lane: Lane::new("l").ok(), ..Placement::default() };
        bench.create(Waiting::new(at.job(), QueueEntry { placement, ..entry }));
    }
    bench.events.clear();
    bench.handle(Event::Watched);
    bench.settle();
    assert_eq!(bench.told.len(), 50);
}

/// They may wait for long: each needs a worker of its own.
#[test]
fn isolated_jobs_do_not_hide_the_others() {
    let mut bench = Bench::new(4);
    for n in 0..50 {
        let Waiting { entry, at } = with_data(7, n);
        let (isolation, attempt) = if n < 20 { (Isolation::Alone, 2) } else { (Isolation::Shared, 1) };
        bench.create(Waiting::new(at.job(), QueueEntry { isolation, attempt, ..entry }));
    }
    bench.events.clear();
    bench.handle(Event::Watched);
    bench.settle();
    let shared = bench.told.values().filter(|entry| entry.isolation == Isolation::Shared).count();
    assert!(shared > 2, "{shared}");
}

/// A takeover reads names of classes and slots, and the first slots.
#[test]
fn a_takeover_does_not_list_the_backlog() {
    let mut bench = Bench::new(100);
    for n in 0..5_000 {
        bench.create(plain(u64::from(n) / 50, n));
    }
    bench.events.clear();
    bench.handle(Event::Watched);
    bench.settle();
    assert_eq!(bench.told(), bench.entries.keys().take(100).collect::<Vec<_>>());
    assert_eq!(bench.lists, usize::from(crate::ready::SHARDS) + 1 + 2, "shards, one class, two slots");
    assert_eq!(bench.beyond.values().sum::<usize>(), 4_900);
}

#[test]
fn classes_of_one_kind_are_counted_together() {
    let mut bench = Bench::watching(4);
    for n in 0..20 {
        let Waiting { entry, at } = with_data(7, n);
        let placement = Placement { tags: vec![Tag::new("gpu").unwrap()], ..Placement::default() };
        bench.create(Waiting::new(at.job(), QueueEntry { placement, ..entry }));
        bench.create(plain(7, n));
    }
    bench.settle();
    let known = bench.told.len();
    assert_eq!(bench.beyond, BTreeMap::from([(Kind::new("sum").unwrap(), 40 - known)]));
    bench.handle(Event::Watched);
    bench.entries.clear();
    bench.slots.clear();
    bench.settle();
    assert_eq!(bench.beyond.values().sum::<usize>(), 0);
}

/// A watched class with four known jobs and six others, all in the slot of minute 7.
fn partly_known() -> Bench {
    let mut bench = Bench::watching(4);
    (0..10).for_each(|n| bench.create(plain(7, n)));
    bench.settle();
    assert_eq!((bench.told.len(), beyond(&bench)), (4, 6));
    bench
}

/// The number of jobs that are only counted.
fn beyond(bench: &Bench) -> usize {
    bench.beyond.values().sum()
}

#[test]
fn no_slot_of_a_class_is_listed_or_counted_before_the_class_is_listed() {
    let mut bench = Bench::new(4);
    bench.create(plain(7, 1));
    bench.events.clear();
    bench.handle(Event::Watched);
    assert!(bench.answer(false), "the shards are listed");
    let lists = bench.lists;
    bench.create(plain(7, 2));
    while bench.hear() {}
    assert_eq!((bench.lists, beyond(&bench)), (lists, 0));
    bench.settle();
    assert_eq!(bench.told, bench.entries);
}

#[test]
fn no_number_is_reported_while_the_next_slot_is_listed() {
    let mut bench = partly_known();
    for at in bench.entries.keys().take(2).cloned().collect::<Vec<_>>() {
        bench.delete(&at);
    }
    bench.create(plain(7, 20));
    while bench.hear() {}
    assert_eq!((bench.answers.len(), beyond(&bench)), (1, 6));
    bench.settle();
    assert_eq!((bench.told.len(), beyond(&bench)), (4, 5));
}

#[test]
fn the_first_job_that_is_not_known_is_counted_until_it_is_deleted() {
    let mut bench = partly_known();
    let first = bench.entries.keys().nth(4).cloned().unwrap();
    bench.delete(&first);
    bench.settle();
    assert_eq!(beyond(&bench), 5);
}

#[test]
fn a_sweep_corrects_a_slot_that_is_known_in_part() {
    let mut bench = partly_known();
    let first = bench.entries.keys().next().cloned().unwrap();
    bench.delete(&first);
    bench.events.clear();
    bench.handle(Event::Sweep);
    bench.settle();
    assert!(!bench.told.contains_key(&first));
}

#[test]
fn a_sweep_finds_a_slot_before_the_known_jobs() {
    let mut bench = partly_known();
    let urgent = plain(6, 50);
    bench.create(urgent.clone());
    bench.events.clear();
    bench.handle(Event::Sweep);
    bench.settle();
    assert!(bench.told.contains_key(&urgent.at));
    assert_eq!((bench.told.len(), beyond(&bench)), (4, 7));
}

#[test]
fn a_sweep_does_not_list_a_slot_after_the_known_jobs() {
    let mut bench = partly_known();
    bench.create(plain(9, 50));
    bench.events.clear();
    bench.lists = 0;
    bench.handle(Event::Sweep);
    bench.settle();
    assert_eq!(
        bench.lists,
        usize::from(crate::ready::SHARDS) + 1 + 1,
        "shards, the class and its known slot"
    );
    assert_eq!(beyond(&bench), 7);
}

#[test]
fn a_number_that_was_read_does_not_count_for_a_slot_with_known_jobs() {
    let size = |bench: &mut Bench| {
        let at = plain(7, 1).at;
        bench.handle(Event::Sized(Some(vec![(at.class, at.slot, 99)])));
    };
    let mut bench = partly_known();
    size(&mut bench);
    assert_eq!(beyond(&bench), 6, "it is known in part");
    let mut bench = Bench::new(4);
    (0..4).for_each(|n| bench.create(plain(7, n)));
    (4..9).for_each(|n| bench.create(plain(9, n)));
    bench.events.clear();
    bench.handle(Event::Watched);
    bench.settle();
    assert_eq!((bench.told.len(), beyond(&bench)), (4, 5));
    size(&mut bench);
    assert_eq!(beyond(&bench), 5, "it is known as a whole");
}

#[test]
fn the_jobs_of_a_deleted_slot_are_withdrawn_and_not_counted_any_more() {
    let after_deletion = |minute| {
        let mut bench = partly_known();
        (10..15).for_each(|n| bench.create(plain(9, n)));
        bench.settle();
        assert_eq!(beyond(&bench), 11);
        let Waiting { at, .. } = plain(minute, 1);
        bench.entries.retain(|entry, _| entry.slot != at.slot);
        bench.slots.remove(&(at.class.clone(), at.slot));
        bench.events.push_back(Event::SlotDeleted(at.class, at.slot));
        bench.settle();
        assert_eq!(bench.told(), bench.entries.keys().take(4).collect::<Vec<_>>());
        beyond(&bench)
    };
    assert_eq!(after_deletion(9), 6);
    assert_eq!(after_deletion(7), 1, "the next slot is listed");
}

#[test]
fn a_class_that_was_created_again_since_it_was_listed_as_absent_is_kept() {
    let mut bench = Bench::watching(LIMIT);
    bench.create(plain(7, 1));
    bench.settle();
    bench.handle(Event::Sweep);
    for answer in std::mem::take(&mut bench.answers) {
        let Event::Listed { ticket, lists: Some(lists) } = answer else { continue };
        let absent = |list| match list {
            Listed::Slots(class, _) => Listed::Slots(class, None),
            other => other,
        };
        bench.handle(Event::Listed { ticket, lists: Some(lists.into_iter().map(absent).collect()) });
    }
    assert_eq!(bench.told, bench.entries);
}

#[test]
fn a_list_reports_no_more_entries_than_the_share() {
    let mut bench = Bench::new(4);
    (0..10).for_each(|n| bench.create(plain(7, n)));
    bench.events.clear();
    bench.handle(Event::Watched);
    let of_slot = |answer: Option<&Event>| {
        let Some(Event::Listed { lists: Some(lists), .. }) = answer else { return false };
        matches!(lists[0], Listed::Entries(..))
    };
    while !of_slot(bench.answers.front()) {
        assert!(bench.answer(false));
    }
    let mut out = Vec::new();
    bench.machine.handle(bench.answers.pop_front().unwrap(), &mut out);
    assert!(matches!(&out[..], [Effect::Queued(jobs)] if jobs.len() == 4), "{out:?}");
}

#[test]
fn after_a_list_each_deleted_job_that_is_not_known_is_counted_off() {
    let mut bench = Bench::new(4);
    (0..10).for_each(|n| bench.create(plain(7, n)));
    bench.events.clear();
    bench.handle(Event::Watched);
    bench.settle();
    for (at, left) in bench.entries.keys().skip(4).cloned().collect::<Vec<_>>().iter().zip((0..6).rev()) {
        bench.delete(at);
        bench.settle();
        assert_eq!((bench.told.len(), beyond(&bench)), (4, left));
    }
}

#[test]
fn an_entry_that_was_created_since_its_slot_was_listed_as_absent_stays_known() {
    let mut bench = Bench::watching(LIMIT);
    let (old, new) = (plain(7, 1), plain(7, 2));
    bench.create(old.clone());
    bench.settle();
    bench.handle(Event::Sweep);
    bench.delete(&old.at);
    bench.create(new.clone());
    while bench.hear() {}
    for answer in std::mem::take(&mut bench.answers) {
        let Event::Listed { ticket, lists: Some(lists) } = answer else { continue };
        let absent = |list| match list {
            Listed::Entries(class, slot, _) => Listed::Entries(class, slot, None),
            other => other,
        };
        bench.handle(Event::Listed { ticket, lists: Some(lists.into_iter().map(absent).collect()) });
    }
    assert_eq!((bench.told(), bench.machine.len()), (vec![&new.at], 1));
    bench.delete(&new.at);
    bench.settle();
    assert!(bench.told.is_empty());
}

#[test]
fn the_list_of_a_slot_that_was_deleted_since_does_not_count() {
    let mut bench = Bench::watching(LIMIT);
    let (old, new) = (plain(7, 1), plain(7, 2));
    bench.create(old.clone());
    bench.settle();
    bench.handle(Event::Sweep);
    bench.delete(&old.at);
    bench.remove_containers();
    bench.create(new.clone());
    while bench.hear() {}
    bench.handle(Event::Sweep);
    while bench.answer(false) {
        assert_eq!(bench.told(), [&new.at]);
    }
}

#[test]
fn lists_that_are_not_answered_wait_for_the_next_sweep_or_the_next_watch() {
    for event in [Event::Sweep, Event::Watched] {
        let mut bench = Bench::new(LIMIT);
        bench.create(plain(7, 1));
        bench.events.clear();
        bench.handle(Event::Watched);
        bench.answer(true);
        assert!(bench.answers.is_empty(), "an immediate retry would spin");
        bench.handle(event);
        bench.settle();
        assert_eq!(bench.told, bench.entries);
    }
}

#[test]
fn a_list_has_znodes_of_one_sort_and_only_a_few_are_in_flight() {
    let mut bench = Bench::watching(LIMIT);
    (0..60).for_each(|n| bench.create(plain(u64::from(n), n)));
    bench.settle();
    bench.handle(Event::Sweep);
    let sizes = bench.answers.iter().map(|answer| match answer {
        Event::Listed { lists: Some(lists), .. } => lists.len(),
        other => panic!("{other:?}"),
    });
    assert_eq!(sizes.collect::<Vec<_>>(), [usize::from(crate::ready::SHARDS), 1, 10, 10]);
    assert_eq!(bench.answers.len(), LIST_WINDOW);
}

#[derive(Debug, Clone)]
enum Step {
    Create { kind: usize, minute: u64, n: u32 },
    Delete(usize),
    RemoveContainers,
    Hear(usize),
    Answer { is_lost: bool },
    Sweep,
    Watch,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let create = (0..3usize, 0..5u64, 0..12u32);
    let step = prop_oneof![
        6 => create.prop_map(|(kind, minute, n)| Step::Create { kind, minute, n }),
        4 => (0..100usize).prop_map(Step::Delete),
        1 => Just(Step::RemoveContainers),
        6 => (1..4usize).prop_map(Step::Hear),
        4 => any::<bool>().prop_map(|lost| Step::Answer { is_lost: lost }),
        1 => Just(Step::Sweep),
        1 => Just(Step::Watch),
    ];
    prop::collection::vec(step, 1..150)
}

proptest! {
    /// Whatever the order of creations, deletions, events, answers and losses: once every request is answered, the assigner
    /// knows the most urgent jobs of each class, as they are stored, and the others are counted.
    #[test]
    fn the_window_converges_to_the_first_entries_of_each_class(limit in 4..40usize, steps in steps()) {
        let mut bench = Bench::new(limit);
        bench.handle(Event::Watched);
        for step in steps.into_iter().chain([Step::Sweep]) {
            match step {
                Step::Create { kind, minute, n } => bench.create(waiting(["a", "b", "c"][kind], minute, n)),
                Step::Delete(n) => {
                    let at = bench.entries.keys().nth(n % bench.entries.len().max(1)).cloned();
                    at.iter().for_each(|at| bench.delete(at));
                }
                Step::RemoveContainers => bench.remove_containers(),
                Step::Hear(count) => {
                    for _ in 0..count {
                        bench.hear();
                    }
                }
                Step::Answer { is_lost } => {
                    bench.answer(is_lost);
                }
                Step::Sweep => bench.handle(Event::Sweep),
                Step::Watch => {
                    bench.events.clear();
                    bench.handle(Event::Watched);
                }
            }
        }
        bench.settle();
        bench.handle(Event::Sweep);
        bench.settle();
        let classes = bench.slots.iter().map(|(class, _)| class.clone()).collect::<BTreeSet<_>>();
        let share = (limit / classes.len().max(1)).max(LEAST);
        for class in classes {
            let stored = bench.entries.iter().filter(|(at, _)| at.class == class).collect::<Vec<_>>();
            let told = bench.told.iter().filter(|(at, _)| at.class == class).collect::<Vec<_>>();
            prop_assert!(told.len() <= share, "{told:?}");
            prop_assert!(told.len() == stored.len() || told.len() > share / 2, "{told:?} of {stored:?}");
            prop_assert_eq!(&told[..], &stored[..told.len()]);
        }
        prop_assert_eq!(bench.told.len() + bench.beyond.values().sum::<usize>(), bench.entries.len());
    }
}

/// Segment `n` has 100 jobs, and no other segment is in its slot.
fn segment(n: u32) -> Waiting {
    let id = SegmentId::new(uuid::Uuid::from_u128(n.into()), 100, 9_000).unwrap();
    let job = waiting("sum", u64::from(n), n);
    let name = RecordEntry { job: id.job(), ..job.at.name };
    Waiting { at: ReadyEntry { name, ..job.at }, entry: job.entry }
}

/// The lists of all slots together may have many megabytes: they took up to a third of the memory of a leader with ten million
/// waiting jobs, at every sweep.
#[test]
fn one_slot_is_counted_at_a_time_and_after_a_lost_answer_the_next_sweep_counts() {
    let mut bench = Bench::new(4);
    (1..=30).for_each(|n| bench.create(segment(n)));
    bench.events.clear();
    bench.handle(Event::Watched);
    bench.settle();
    let in_flight =
        |bench: &Bench| bench.answers.iter().filter(|answer| matches!(answer, Event::Sized(_))).count();
    let counted = |bench: &Bench| bench.beyond.values().sum::<usize>();
    let all = (30 - bench.machine.len()) * 100;
    bench.handle(Event::Sweep);
    while in_flight(&bench) == 0 {
        assert!(bench.answer(false), "the sweep counts");
    }
    let before = counted(&bench);
    while bench.answer(matches!(bench.answers.front(), Some(Event::Sized(_)))) {
        assert!(in_flight(&bench) <= 1);
    }
    assert_eq!(counted(&bench), before, "nothing is counted after a lost answer");
    bench.handle(Event::Sweep);
    while bench.answer(false) {
        assert!(in_flight(&bench) <= 1);
    }
    assert_eq!(counted(&bench), all);
}

/// A new leader counts the jobs of the slots that it does not know by their names, once it has seen a segment.
#[test]
fn a_segment_beyond_the_frontier_counts_as_its_members() {
    let mut bench = Bench::new(4);
    (1..=9).for_each(|n| bench.create(segment(n)));
    bench.events.clear();
    bench.handle(Event::Watched);
    bench.settle();
    bench.handle(Event::Sweep);
    bench.settle();
    let sum = Kind::new("sum").unwrap();
    assert_eq!((bench.machine.len(), bench.beyond.get(&sum)), (3, Some(&600)));
    bench.create(segment(10));
    bench.settle();
    assert_eq!(bench.beyond.get(&sum), Some(&700));
    bench.delete(&segment(9).at);
    bench.settle();
    assert_eq!(bench.beyond.get(&sum), Some(&600));
}

#[test]
fn a_segment_that_a_watch_has_reported_counts_as_its_members_after_a_sweep() {
    let mut bench = Bench::watching(4);
    (1..=9).for_each(|n| bench.create(segment(n)));
    bench.settle();
    let before = beyond(&bench);
    bench.handle(Event::Sweep);
    bench.settle();
    assert_eq!((before, beyond(&bench)), (500, 500));
    assert!(bench.counts > 0);
}

#[test]
fn the_slots_of_a_class_without_segments_are_not_listed_to_count_their_jobs() {
    let mut bench = Bench::watching(10);
    (0..50).for_each(|n| bench.create(plain(u64::from(n) / 7, n)));
    bench.settle();
    for event in [Event::Sweep, Event::Watched, Event::Sweep] {
        bench.handle(event);
        bench.settle();
        assert_eq!((bench.told.len() + beyond(&bench), bench.counts), (50, 0));
    }
}

#[test]
fn a_sweep_replaces_the_slots_that_wait_to_be_counted() {
    let mut bench = Bench::watching(4);
    (1..=30).for_each(|n| bench.create(segment(n)));
    bench.settle();
    let (before, slots) = (beyond(&bench), 30 - bench.machine.len());
    bench.handle(Event::Sweep);
    bench.handle(Event::Sweep);
    bench.settle();
    assert_eq!(beyond(&bench), before);
    assert!((slots - 1..=slots + 1).contains(&bench.counts), "{} of {slots}", bench.counts);
}
