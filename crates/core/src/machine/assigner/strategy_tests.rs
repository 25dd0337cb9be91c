use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use uuid::Uuid;

use super::*;
use crate::change::Noted;
use crate::job::{Placement, Priority, QueueEntry};
use crate::name::{AffinityKey, Kind, NodeId, StrategyName, Tag};
use crate::placement::{BuiltInStrategy, Fallback, PlacementJob, PlacementStrategy, PlacementWorker};
use crate::worker::WorkerInfo;

fn worker(n: u128) -> WorkerId {
    WorkerId::new(Uuid::from_u128(n))
}

fn name(name: &str) -> StrategyName {
    StrategyName::new(name).unwrap()
}

fn set(name: StrategyName) -> Event {
    let strategy = StrategySetting::Named(name);
    Event::Settings(Some(Settings { strategy, ..Settings::default() }))
}

/// Always answers with this position, and counts its calls.
struct Fixed(usize, Arc<AtomicUsize>);

impl PlacementStrategy for Fixed {
    fn choose(&self, _: &PlacementJob<'_>, _: &[PlacementWorker<'_>]) -> usize {
        self.1.fetch_add(1, Ordering::Relaxed);
        self.0
    }
}

/// Chooses the first worker, and keeps what it was shown.
#[derive(Clone, Default)]
struct Records(Arc<std::sync::Mutex<Vec<String>>>);

impl PlacementStrategy for Records {
    fn choose(&self, job: &PlacementJob<'_>, workers: &[PlacementWorker<'_>]) -> usize {
        let PlacementWorker { host, tags, used, slots, .. } = &workers[0];
        let tags = tags.iter().map(Tag::as_str).collect::<Vec<_>>();
        let shown = format!(
            "{} {:?} {} {} on {host} {tags:?} {used}/{slots}",
            job.id, job.affinity, job.priority, job.attempt
        );
        self.0.lock().unwrap().push(shown);
        0
    }
}

struct Panics;

impl PlacementStrategy for Panics {
    fn choose(&self, job: &PlacementJob<'_>, _: &[PlacementWorker<'_>]) -> usize {
        panic!("no worker for {}", job.id)
    }
}

/// Two workers with four slots each; the own strategies `last`, `beyond` and `panics`.
struct Bench {
    machine: Assigner,
    jobs: u32,
    calls: Arc<AtomicUsize>,
}

impl Bench {
    fn new() -> Self {
        let (mut own, calls) = (OwnStrategies::default(), Arc::new(AtomicUsize::new(0)));
        own.add(name("last"), Arc::new(Fixed(1, Arc::clone(&calls)))).unwrap();
        own.add(name("beyond"), Arc::new(Fixed(2, Arc::clone(&calls)))).unwrap();
        own.add(name("panics"), Arc::new(Panics)).unwrap();
        let mut bench = Self { machine: Assigner::new(7, own, 1), jobs: 0, calls };
        for n in [1, 2] {
            let info = WorkerInfo {
                node: NodeId::new("n").unwrap(),
                host: "h".into(),
                kinds: vec![Kind::new("sum").unwrap()],
                leases: BTreeMap::new(),
                slots: 4,
                tags: vec![],
                codec: 1,
                started_at: WallMillis(0),
                former: vec![],
                owner: None,
                draining: false,
                settings: Noted::default(),
            };
            bench.handle(Event::Worker(worker(n), info, 0));
            bench.handle(Event::InboxRead(worker(n), Some(InboxContents::default())));
        }
        bench
    }

    fn handle(&mut self, event: Event) -> Vec<Effect> {
        let mut out = Vec::new();
        self.machine.handle(Millis(0), WallMillis(0), event, &mut out);
        out
    }

    /// Queues this many jobs. Returns their workers and the warnings.
    fn queue(&mut self, jobs: u32) -> (Vec<WorkerId>, Vec<Fallback>) {
        let first = self.jobs;
        self.jobs += jobs;
        let entry = QueueEntry::new(Kind::new("sum").unwrap(), 1, 1);
        let queued =
            (first..self.jobs).map(|n| Waiting::new(&JobId::new(format!("j{n}")).unwrap(), entry.clone()));
        let effects = self.handle(Event::Queued(queued.collect()));
        let (mut workers, mut warnings) = (Vec::new(), Vec::new());
        for effect in effects {
            match effect {
                Effect::Commit(batch) => {
                    workers.extend(batch.keys().map(Job::worker));
                    self.handle(Event::Committed(batch, Outcome::Applied(())));
                }
                Effect::Fallback(why) => warnings.push(why),
                _ => {}
            }
        }
        (workers, warnings)
    }
}

#[test]
fn a_running_leader_follows_a_change_of_the_strategy() {
    let mut bench = Bench::new();
    bench.handle(set(BuiltInStrategy::RoundRobin.into()));
    assert_eq!(bench.queue(2).0, [1, 2].map(worker));
    assert_eq!(bench.handle(set(name("last"))), []);
    assert_eq!(bench.queue(2).0, [2, 2].map(worker));
    // Without a setting: the default.
    assert_eq!(bench.handle(Event::Settings(Some(Settings::default()))), []);
    assert_eq!(bench.queue(1).0, [1].map(worker));
}

#[test]
fn an_unknown_strategy_is_replaced_by_the_default_with_one_warning() {
    let mut bench = Bench::new();
    let unknown = Fallback::Unknown(name("fullest"));
    assert_eq!(bench.handle(set(name("fullest"))), [Effect::Fallback(unknown)]);
    assert_eq!(bench.handle(set(name("fullest"))), [], "the next sweep reads the same setting");
    assert!(bench.machine.uses_fallback());
    assert_eq!(bench.queue(2).0, [1, 2].map(worker));
    bench.handle(set(name("last")));
    assert!(!bench.machine.uses_fallback());
    assert_eq!(bench.queue(1).0, [2].map(worker));
}

#[test]
fn an_unreadable_setting_is_replaced_by_the_default_with_a_warning() {
    let mut bench = Bench::new();
    let strategy = StrategySetting::Unreadable("not a Bellwether record".into());
    let warned = bench.handle(Event::Settings(Some(Settings { strategy, ..Settings::default() })));
    assert_eq!(warned, [Effect::Fallback(Fallback::Unreadable("not a Bellwether record".into()))]);
    assert_eq!(bench.queue(2).0, [1, 2].map(worker));
}

#[test]
fn a_strategy_that_panics_loses_no_job_and_is_not_called_again() {
    let mut bench = Bench::new();
    bench.handle(set(name("panics")));
    let (workers, warnings) = bench.queue(4);
    assert_eq!(workers, [1, 2, 1, 2].map(worker), "the default assigns all of them");
    assert_eq!(warnings, [Fallback::Panicked(name("panics"))]);
    assert!(bench.machine.uses_fallback());
    bench.handle(set(name("panics")));
    assert_eq!(bench.queue(2).1, [], "a sweep does not bring it back");
}

#[test]
fn a_strategy_that_chooses_no_offered_worker_is_not_called_again() {
    let mut bench = Bench::new();
    bench.handle(set(name("beyond")));
    let (workers, warnings) = bench.queue(4);
    assert_eq!(workers, [1, 2, 1, 2].map(worker));
    let beyond = Fallback::NoWorker { strategy: name("beyond"), at: 2, workers: 2 };
    assert_eq!(warnings, [beyond]);
    assert_eq!(bench.calls.load(Ordering::Relaxed), 1);
}

#[test]
fn an_own_strategy_is_offered_only_workers_that_can_take_the_job() {
    let mut bench = Bench::new();
    bench.handle(set(name("last")));
    let (workers, warnings) = bench.queue(6);
    let [one, two] = [1, 2].map(worker);
    assert_eq!(workers, [two, two, two, two, one, one], "position 1 is wrong when one worker is left");
    assert_eq!(warnings, [Fallback::NoWorker { strategy: name("last"), at: 1, workers: 1 }]);
}

#[test]
fn an_own_strategy_sees_the_job_and_the_load_of_each_worker() {
    let (mut own, records) = (OwnStrategies::default(), Records::default());
    own.add(name("records"), Arc::new(records.clone())).unwrap();
    let mut bench = Bench { machine: Assigner::new(7, own, 1), jobs: 0, calls: Arc::default() };
    let info = WorkerInfo {
        node: NodeId::new("n").unwrap(),
        host: "h".into(),
        kinds: vec![Kind::new("sum").unwrap()],
        leases: BTreeMap::new(),
        slots: 4,
        tags: vec![Tag::new("eu").unwrap()],
        codec: 1,
        started_at: WallMillis(0),
        former: vec![],
        owner: None,
        draining: false,
        settings: Noted::default(),
    };
    bench.handle(Event::Worker(worker(1), info, 0));
    bench.handle(Event::InboxRead(
        worker(1),
        Some(InboxContents { names: vec!["a".to_owned(), "b".to_owned()], ..InboxContents::default() }),
    ));
    bench.handle(set(name("records")));
    let affinity = Some(AffinityKey::new("customer-7").unwrap());
    let entry = QueueEntry {
        placement: Placement { affinity, ..Placement::default() },
        priority: Priority::HIGHEST,
        ..QueueEntry::new(Kind::new("sum").unwrap(), 3, 1)
    };
    bench.handle(Event::Queued(vec![Waiting::new(&JobId::new("a").unwrap(), entry)]));
    let priority = Priority::HIGHEST.get();
    let expected = format!("a Some(\"customer-7\") {priority} 3 on h [\"eu\"] 2/4");
    assert_eq!(*records.0.lock().unwrap(), [expected]);
}
