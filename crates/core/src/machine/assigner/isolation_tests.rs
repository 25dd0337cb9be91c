//! S20: jobs that have lost workers are isolated from other jobs.

use std::collections::BTreeMap;
use std::time::Duration;

use uuid::Uuid;

use super::*;
use crate::change::Noted;
use crate::job::Isolation::{self, Alone, Apart, Shared};
use crate::job::QueueEntry;
use crate::name::{Kind, NodeId};
use crate::worker::WorkerInfo;

const NOW: WallMillis = WallMillis(1_000_000);

fn job(name: &str) -> JobId {
    JobId::new(name).unwrap()
}

fn worker(n: u128) -> WorkerId {
    WorkerId::new(Uuid::from_u128(n))
}

fn kind(name: &str) -> Kind {
    Kind::new(name).unwrap()
}

fn info() -> WorkerInfo {
    WorkerInfo {
        node: NodeId::new("n").unwrap(),
        host: "h".into(),
        kinds: vec![kind("other"), kind("sum")],
        leases: BTreeMap::new(),
        slots: 3,
        tags: vec![],
        codec: 1,
        started_at: WallMillis(0),
        former: vec![],
        owner: None,
        draining: false,
        settings: Noted::default(),
    }
}

/// An assigner that knows its workers' inboxes immediately.
struct Bench {
    machine: Assigner,
    now: Millis,
    inboxes: BTreeMap<WorkerId, BTreeMap<JobId, Isolation>>,
    submitted: u64,
    entries: BTreeMap<JobId, ReadyEntry>,
}

impl Bench {
    /// Adds workers with three slots, the first of which has these jobs.
    fn with_jobs(workers: u128, held: &[(&str, Isolation)]) -> Self {
        let machine = Assigner::new(7, OwnStrategies::default(), 1);
        let inboxes = (1..=workers).map(|n| (worker(n), BTreeMap::new())).collect();
        let mut bench = Self { machine, now: Millis(0), inboxes, submitted: 0, entries: BTreeMap::new() };
        bench.inboxes.insert(worker(1), held.iter().map(|(name, how)| (job(name), *how)).collect());
        bench.handle(Event::Settings(Some(Settings::default())));
        for n in 1..=workers {
            bench.handle(Event::Worker(worker(n), info(), 0));
        }
        bench
    }

    /// The worker publishes this number of slots.
    fn offer(&mut self, n: u128, slots: u32, version: i32) {
        self.handle(Event::Worker(worker(n), WorkerInfo { slots, ..info() }, version));
    }

    fn new(workers: u128) -> Self {
        Self::with_jobs(workers, &[])
    }

    /// Handles an event and everything that follows from it.
    fn handle(&mut self, event: Event) {
        let (mut events, mut out) = (vec![event], Vec::new());
        while let Some(event) = events.pop() {
            self.machine.handle(self.now, NOW, event, &mut out);
            for effect in std::mem::take(&mut out) {
                match effect {
                    Effect::Commit(batch) => {
                        for job in batch.keys() {
                            let isolation = job.waiting.class.isolation();
                            self.inboxes.get_mut(&job.worker).unwrap().insert(job.id.clone(), isolation);
                        }
                        events.push(Event::Committed(batch, Outcome::Applied(())));
                    }
                    Effect::ReadInbox(id) => {
                        let held = &self.inboxes[&id];
                        let isolated = held.clone().into_iter().filter(|(_, how)| *how != Shared).collect();
                        let names = held.keys().map(ToString::to_string).collect();
                        let contents = InboxContents { names, isolated };
                        events.push(Event::InboxRead(id, Some(contents)));
                    }
                    Effect::ListInbox(id) => {
                        let names = self.inboxes[&id].keys().map(ToString::to_string).collect();
                        events.push(Event::Inbox(id, Some(names)));
                    }
                    Effect::Assigned { .. } => {}
                    other => panic!("{other:?}"),
                }
            }
        }
    }

    fn submit_kind(&mut self, of: &str, name: &str, isolation: Isolation) {
        self.submitted += 1;
        let entry = QueueEntry {
            isolation,
            submitted_at: WallMillis(self.submitted),
            ..QueueEntry::new(kind(of), 1, 1)
        };
        let waiting = Waiting::new(&job(name), entry);
        self.entries.insert(job(name), waiting.at.clone());
        self.handle(Event::Queued(vec![waiting]));
    }

    /// The entry of a waiting job is deleted.
    fn unqueue(&mut self, name: &str) {
        let at = self.entries.remove(&job(name)).expect("it was submitted");
        self.handle(Event::Unqueued(at));
    }

    fn submit(&mut self, name: &str, isolation: Isolation) {
        self.submit_kind("sum", name, isolation);
    }

    /// A job ends.
    fn end(&mut self, name: &str) {
        let id = *self.inboxes.iter().find(|(_, held)| held.contains_key(&job(name))).unwrap().0;
        self.inboxes.get_mut(&id).unwrap().remove(&job(name));
        self.handle(Event::InboxChanged(id));
    }

    fn on(&self, n: u128) -> Vec<&str> {
        self.inboxes[&worker(n)].keys().map(JobId::as_str).collect()
    }
}

#[test]
fn jobs_with_a_loss_run_on_different_workers_together_with_jobs_without_a_loss() {
    let mut bench = Bench::new(2);
    for name in ["a", "b", "c"] {
        bench.submit(name, Apart);
    }
    for name in ["x", "y"] {
        bench.submit(name, Shared);
    }
    assert_eq!((bench.on(1), bench.on(2)), (vec!["a", "x"], vec!["b", "y"]));
    assert_eq!(bench.machine.isolated(), 1);
    bench.end("a");
    assert_eq!(bench.on(1), ["c", "x"], "the worker is listed although it has free slots");
}

#[test]
fn a_job_with_a_loss_joins_others_after_a_bounded_wait() {
    let mut bench = Bench::new(2);
    for name in ["a", "b", "c", "d", "e"] {
        bench.submit(name, Apart);
    }
    bench.now = Millis(0) + (APART_WAIT - Duration::from_millis(1));
    bench.handle(Event::Resume);
    assert_eq!((bench.on(1), bench.on(2)), (vec!["a"], vec!["b"]));
    bench.now = Millis(0) + APART_WAIT;
    bench.handle(Event::Resume);
    assert_eq!((bench.on(1), bench.on(2)), (vec!["a", "c", "e"], vec!["b", "d"]), "spread evenly");
}

#[test]
fn a_job_that_runs_alone_has_its_worker_to_itself() {
    let mut bench = Bench::new(2);
    bench.submit("a", Alone);
    for name in ["x", "y"] {
        bench.submit(name, Shared);
    }
    bench.submit("b", Apart);
    bench.submit("z", Shared);
    assert_eq!((bench.on(1), bench.on(2)), (vec!["a"], vec!["b", "x", "y"]));
    bench.end("a");
    assert_eq!(bench.on(1), ["z"]);
}

#[test]
fn a_new_leader_knows_which_jobs_run_alone_or_apart() {
    let mut bench = Bench::with_jobs(1, &[("a", Alone)]);
    bench.submit("x", Shared);
    bench.submit("b", Apart);
    assert_eq!(bench.on(1), ["a"]);
    let mut bench = Bench::with_jobs(1, &[("a", Apart)]);
    bench.submit("b", Apart);
    bench.submit("x", Shared);
    assert_eq!(bench.on(1), ["a", "x"]);
    let mut bench = Bench::with_jobs(1, &[("a", Shared)]);
    bench.submit("b", Alone);
    assert_eq!(bench.on(1), ["a"]);
}

/// Neither the isolated job nor the others starve: a worker drains for it, and later jobs use the other one.
#[test]
fn a_worker_is_reserved_for_a_job_that_runs_alone() {
    let mut bench = Bench::new(2);
    for name in ["u", "v", "w", "x"] {
        bench.submit(name, Shared);
    }
    bench.submit("a", Alone);
    for name in ["y", "z"] {
        bench.submit(name, Shared);
    }
    let (reserved, other) = if bench.on(1).len() == 2 { (1, 2) } else { (2, 1) };
    assert_eq!((bench.on(reserved).len(), bench.on(other).len()), (2, 3), "y or z waits");
    for name in bench.on(reserved).into_iter().map(str::to_owned).collect::<Vec<_>>() {
        bench.end(&name);
    }
    assert_eq!(bench.on(reserved), ["a"]);
    bench.end("a");
    assert_eq!(bench.on(reserved).len(), 1, "the last job follows");
}

#[test]
fn the_same_worker_stays_reserved_and_jobs_before_it_in_rank_still_use_it() {
    let mut bench = Bench::with_jobs(2, &[("p", Shared)]);
    for name in ["u", "v"] {
        bench.submit(name, Shared);
    }
    bench.end("p");
    assert_eq!((bench.on(1), bench.on(2)), (vec!["v"], vec!["u"]));
    bench.submit("a", Alone);
    // Now the other worker has fewer jobs, but the one that was reserved first stays so.
    let early = QueueEntry { submitted_at: WallMillis(0), ..QueueEntry::new(kind("sum"), 1, 1) };
    bench.handle(Event::Queued(vec![Waiting::new(&job("early"), early)]));
    assert_eq!(bench.on(1), ["early", "v"]);
    for name in ["x", "y"] {
        bench.submit(name, Shared);
    }
    assert_eq!((bench.on(1), bench.on(2)), (vec!["early", "v"], vec!["u", "x", "y"]));
}

#[test]
fn at_most_half_the_workers_are_reserved() {
    for (workers, free) in [(1, 0), (2, 1), (3, 2), (4, 2)] {
        let mut bench = Bench::new(workers);
        for n in 0..workers {
            bench.submit(&format!("held-{n}"), Shared);
        }
        bench.submit("a", Alone);
        bench.submit_kind("other", "b", Alone);
        for n in 0..2 * workers {
            bench.submit(&format!("later-{n}"), Shared);
        }
        let full = (1..=workers).filter(|n| bench.on(*n).len() == 3).count();
        assert_eq!(full, free, "{workers} workers");
    }
}

#[test]
fn a_reservation_ends_with_its_job() {
    let mut bench = Bench::with_jobs(1, &[("p", Shared)]);
    bench.submit("a", Alone);
    bench.submit("x", Shared);
    assert_eq!(bench.on(1), ["p"]);
    bench.unqueue("a");
    assert_eq!(bench.on(1), ["p", "x"]);
}

#[test]
fn a_worker_without_slots_is_not_reserved() {
    let mut bench = Bench::new(2);
    bench.offer(1, 0, 1);
    bench.submit("u", Shared);
    bench.submit("a", Alone);
    bench.submit("x", Shared);
    assert_eq!(bench.on(2), ["u"], "the worker with slots is reserved");
    bench.end("u");
    assert_eq!(bench.on(2), ["a"]);
}

#[test]
fn a_reservation_that_has_ended_is_not_preferred_later() {
    let mut bench = Bench::new(2);
    for name in ["u", "v"] {
        bench.submit(name, Shared);
    }
    bench.submit("a", Alone);
    bench.unqueue("a");
    bench.submit("w", Shared);
    let [busier, other] = if bench.on(1).len() == 2 { [1, 2] } else { [2, 1] };
    bench.submit("a", Alone);
    bench.submit("x", Shared);
    assert_eq!(
        (bench.on(busier).len(), bench.on(other).len()),
        (3, 1),
        "the worker with fewer jobs is reserved"
    );
}

/// The job that runs alone was not considered in that round.
#[test]
fn a_reservation_is_kept_while_full_batches_go_before_it() {
    let mut bench = Bench::new(2);
    bench.offer(1, 300, 1);
    bench.offer(2, 100, 1);
    for name in ["u", "v"] {
        bench.submit(name, Shared);
    }
    bench.submit("a", Alone);
    let early = |n| {
        let entry = QueueEntry { submitted_at: WallMillis(0), ..QueueEntry::new(kind("sum"), 1, 1) };
        Waiting::new(&job(&format!("early-{n}")), entry)
    };
    bench.handle(Event::Queued((0..BATCH).map(early).collect()));
    let [first, second] = [bench.on(1).len(), bench.on(2).len()];
    assert!(first > second, "{first} and {second}");
    bench.submit("x", Shared);
    assert_eq!(bench.on(2).len(), second + 1, "the first worker stays reserved");
}

/// Seed 8022 of the simulator: the second batch was rejected because the first had taken the job's entry, and the job
/// that is assigned was no longer counted.
#[test]
fn a_rejected_second_plan_of_an_assigned_job_leaves_the_first_one_counted() {
    let mut bench = Bench::new(1);
    let entry = QueueEntry::new(kind("sum"), 1, 1);
    let mut committed = |event| {
        let mut out = Vec::new();
        bench.machine.handle(bench.now, NOW, event, &mut out);
        out.into_iter().filter_map(|effect| match effect {
            Effect::Commit(batch) => Some(batch),
            _ => None,
        })
    };
    let queued = || Event::Queued(vec![Waiting::new(&job("a"), entry.clone())]);
    let first = committed(queued()).next().unwrap();
    assert!(committed(queued()).next().is_none(), "it waits for the first batch");
    let second = committed(Event::Committed(first, Outcome::Applied(()))).next().unwrap();
    let rejected = Rejection { at: 2, reason: Reason::NoNode };
    let none = committed(Event::Committed(second, Outcome::Rejected(rejected))).next();
    assert!(none.is_none());
    let alone = QueueEntry { isolation: Alone, ..entry.clone() };
    let third = committed(Event::Queued(vec![Waiting::new(&job("b"), alone)])).next();
    assert!(third.is_none(), "the worker has a job");
}

#[test]
fn the_attempts_that_a_worker_took_over_before_it_offered_slots_are_known() {
    let mut bench = Bench::new(1);
    bench.offer(1, 0, 1);
    // The leader learns of the moves only from the inbox.
    bench.inboxes.insert(worker(1), BTreeMap::from([(job("a"), Apart), (job("x"), Shared)]));
    bench.offer(1, 3, 2);
    bench.submit("b", Apart);
    bench.submit("y", Shared);
    bench.submit("z", Shared);
    assert_eq!(bench.on(1), ["a", "x", "y"], "one slot was free, and not for another isolated job");
}

#[test]
fn a_job_alone_that_was_taken_over_keeps_its_worker_to_itself() {
    let mut bench = Bench::new(1);
    bench.offer(1, 0, 1);
    bench.inboxes.insert(worker(1), BTreeMap::from([(job("a"), Alone)]));
    bench.offer(1, 3, 2);
    bench.submit("x", Shared);
    assert_eq!(bench.on(1), ["a"]);
}

/// The list was requested before the moves, and is answered after the first offer.
#[test]
fn a_list_from_before_the_first_offer_does_not_count() {
    for stale in [false, true] {
        let mut machine = Assigner::new(7, OwnStrategies::default(), 1);
        let mut out = Vec::new();
        let mut handle = |event| {
            machine.handle(Millis(0), NOW, event, &mut out);
            std::mem::take(&mut out)
        };
        let offer = |slots, version| Event::Worker(worker(1), WorkerInfo { slots, ..info() }, version);
        handle(Event::Settings(Some(Settings::default())));
        assert!(matches!(&handle(offer(0, 0))[..], [Effect::ReadInbox(_)]));
        assert!(matches!(&handle(offer(3, 1))[..], []), "one list at a time");
        if stale {
            handle(Event::InboxChanged(worker(1)));
        }
        handle(Event::Queued(vec![Waiting::new(&job("x"), QueueEntry::new(kind("sum"), 1, 1))]));
        let empty = InboxContents::default();
        let told = handle(Event::InboxRead(worker(1), Some(empty)));
        assert!(matches!(&told[..], [Effect::ReadInbox(_)]), "{told:?}");
        let alone = BTreeMap::from([(job("a"), Alone)]);
        let told = handle(Event::InboxRead(
            worker(1),
            Some(InboxContents { names: vec!["a".to_owned()], isolated: alone }),
        ));
        assert!(!told.iter().any(|effect| matches!(effect, Effect::Commit(_))), "{told:?}");
    }
}
