use proptest::prelude::{Just, TestCaseError, any, prop, prop_assert, prop_assert_eq, prop_oneof, proptest};
use proptest::strategy::Strategy as Generator;
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;
use uuid::Uuid;

use super::*;
use crate::change::Noted;
use crate::job::{Isolation, Placement, QueueEntry};
use crate::name::{AffinityKey, Kind, NodeId, StrategyName, Tag};
use crate::outcome::Reason;
use crate::path;
use crate::placement::BuiltInStrategy;
use crate::trace::TraceContext;
use crate::txn::Op;
use crate::worker::{WorkerInfo, WorkerSettings};

fn job(n: u32) -> JobId {
    JobId::new(format!("j{n}")).unwrap()
}

fn worker(n: u128) -> WorkerId {
    WorkerId::new(Uuid::from_u128(n))
}

fn info(slots: u32) -> WorkerInfo {
    WorkerInfo {
        node: NodeId::new("n").unwrap(),
        host: "h".into(),
        kinds: vec![Kind::new("sum").unwrap()],
        leases: BTreeMap::new(),
        slots,
        tags: vec![Tag::new("eu").unwrap()],
        codec: 1,
        started_at: WallMillis(0),
        former: vec![],
        owner: None,
        draining: false,
        settings: Noted::default(),
    }
}

fn strategy(set: StrategyName) -> Event {
    let strategy = StrategySetting::Named(set);
    Event::Settings(Some(Settings { strategy, ..Settings::default() }))
}

fn entry() -> QueueEntry {
    let placement = Placement::default();
    QueueEntry { placement, ..QueueEntry::new(Kind::new("sum").unwrap(), 1, 1) }
}

/// Where the entry of this job is.
fn at(n: u32) -> ReadyEntry {
    Waiting::new(&job(n), entry()).at
}

/// One in eight jobs runs alone, and one apart.
fn isolation_of(job: &JobId) -> Isolation {
    match job.as_str()[1..].parse::<u32>().unwrap() % 8 {
        3 => Isolation::Alone,
        6 => Isolation::Apart,
        _ => Isolation::Shared,
    }
}

fn entry_of(job: &JobId) -> QueueEntry {
    QueueEntry { isolation: isolation_of(job), ..entry() }
}

/// The answer to the first list of an empty inbox.
fn empty(n: u128) -> Event {
    Event::InboxRead(worker(n), Some(InboxContents::default()))
}

/// Names of this many jobs.
fn names(jobs: usize) -> Vec<String> {
    (0..jobs).map(|n| format!("held-{n}")).collect()
}

/// The sum of the waiting jobs of each kind.
pub(super) fn counted(assigner: &Assigner) -> usize {
    let kinds = assigner.waiting_kinds().collect::<BTreeSet<_>>();
    kinds.into_iter().map(|kind| assigner.waiting_of(kind)).sum()
}

/// The assignments that a batch creates.
fn assignments(batch: &Batch<Job>) -> Vec<Assignment> {
    let data = batch.ops().filter_map(|op| match op {
        Op::Create { data, .. } => crate::wire::decode::<Assignment>(data).ok(),
        _ => None,
    });
    data.collect()
}

struct Bench(Assigner);

impl Bench {
    fn new(strategy: BuiltInStrategy) -> Self {
        Self::with(OwnStrategies::default(), strategy.into())
    }

    fn with(own: OwnStrategies, set: StrategyName) -> Self {
        let mut bench = Self(Assigner::new(7, own, 1));
        assert_eq!(bench.handle(strategy(set)), []);
        bench
    }

    fn handle(&mut self, event: Event) -> Vec<Effect> {
        let mut out = Vec::new();
        self.0.handle(Millis(0), WallMillis(0), event, &mut out);
        assert_eq!(counted(&self.0), self.0.waiting(), "the counts by kind are all waiting jobs");
        out
    }

    /// Adds a worker whose empty inbox has been listed.
    fn worker(&mut self, n: u128, info: WorkerInfo) -> Vec<Effect> {
        assert_eq!(self.handle(Event::Worker(worker(n), info, 0)), [Effect::ReadInbox(worker(n))]);
        self.handle(empty(n))
    }

    fn queue(&mut self, jobs: impl IntoIterator<Item = u32>) -> Vec<Effect> {
        self.handle(Event::Queued(jobs.into_iter().map(|n| Waiting::new(&job(n), entry())).collect()))
    }

    fn queue_entry(&mut self, n: u32, entry: QueueEntry) -> Vec<Effect> {
        self.handle(Event::Queued(vec![Waiting::new(&job(n), entry)]))
    }
}

fn batch(effects: &[Effect]) -> Batch<Job> {
    let batches = effects.iter().filter_map(|effect| match effect {
        Effect::Commit(batch) => Some(batch.clone()),
        Effect::ReadInbox(_)
        | Effect::ListInbox(_)
        | Effect::Resolve(_)
        | Effect::ListLanes { .. }
        | Effect::ReadTurns { .. }
        | Effect::ReadSettings
        | Effect::Fallback(_)
        | Effect::Overdue(_)
        | Effect::FencedOut
        | Effect::Assigned { .. } => None,
    });
    let batches = batches.collect::<Vec<_>>();
    assert_eq!(batches.len(), 1, "{effects:?}");
    batches.into_iter().next().unwrap()
}

fn commits(effects: &[Effect]) -> usize {
    effects.iter().filter(|effect| matches!(effect, Effect::Commit(_))).count()
}

fn placed(batch: &Batch<Job>) -> Vec<(JobId, WorkerId)> {
    batch.keys().map(|job| (job.id.clone(), job.worker)).collect()
}

fn rejected(at: usize, reason: Reason) -> Outcome<()> {
    Outcome::Rejected(Rejection { at, reason })
}

#[test]
fn a_job_is_assigned_as_soon_as_a_worker_registers() {
    let mut bench = Bench::new(BuiltInStrategy::LeastLoaded);
    assert_eq!(bench.queue([1]), []);
    let sent = bench.worker(1, info(1));
    assert_eq!(placed(&batch(&sent)), [(job(1), worker(1))]);
}

/// An operator changed the access to the inbox, or filled it.
#[test]
fn a_worker_whose_inbox_cannot_be_listed_gets_no_jobs_and_the_others_do() {
    let mut bench = Bench::new(BuiltInStrategy::LeastLoaded);
    bench.handle(Event::Worker(worker(1), info(4), 0));
    bench.handle(Event::Worker(worker(2), info(4), 0));
    assert_eq!(bench.handle(Event::InboxRefused(worker(1))), [], "the other inbox is not listed yet");
    bench.handle(empty(2));
    let out = bench.queue([1, 2]);
    assert_eq!(placed(&batch(&out)), [(job(1), worker(2)), (job(2), worker(2))]);
    assert_eq!(bench.0.unlisted(), 1);
    assert_eq!(bench.handle(Event::InboxChanged(worker(1))), [], "a change of that inbox costs nothing");
    bench.handle(Event::Committed(batch(&out), Outcome::Applied(())));
    let out = bench.handle(Event::Resume);
    assert!(out.contains(&Effect::ReadInbox(worker(1))), "a sweep lists it again: {out:?}");
    let out = bench.queue([3]);
    assert_eq!(placed(&batch(&out)), [(job(3), worker(2))], "planning goes on meanwhile");
    bench.handle(Event::Committed(batch(&out), Outcome::Applied(())));
    bench.handle(empty(1));
    assert_eq!(placed(&batch(&bench.queue([4]))), [(job(4), worker(1))]);
    assert_eq!(bench.0.unlisted(), 0);
}

/// A later list is refused: the isolation of the jobs in the inbox is unknown until it is read again.
#[test]
fn a_worker_whose_listed_inbox_is_refused_later_is_read_again_before_it_gets_jobs() {
    let mut bench = Bench::new(BuiltInStrategy::LeastLoaded);
    bench.worker(1, info(1));
    bench.handle(Event::InboxChanged(worker(1)));
    assert_eq!(bench.handle(Event::Relist), [Effect::ListInbox(worker(1))]);
    bench.handle(Event::InboxRefused(worker(1)));
    assert_eq!(bench.queue([1]), []);
    assert_eq!(bench.handle(Event::Resume), [Effect::ReadInbox(worker(1))]);
}

/// The free slot of a hung worker would attract every job.
#[test]
fn a_hung_worker_gets_no_jobs_until_it_registers_again_or_a_sweep_after_a_minute() {
    for registers in [true, false] {
        let mut bench = Bench::new(BuiltInStrategy::LeastLoaded);
        bench.worker(1, info(1));
        bench.handle(Event::Hangs(worker(1)));
        assert_eq!(commits(&bench.queue([1])), 0);
        let again = Event::Worker(worker(1), info(1), 0);
        assert_eq!(commits(&bench.handle(again)), 0, "the same registration, read again");
        assert_eq!(commits(&bench.handle(Event::Resume)), 0, "the sweep is too early");
        let sent = if registers {
            bench.handle(Event::Worker(worker(1), info(1), 1))
        } else {
            let mut out = Vec::new();
            let later = Millis(0) + capacity::SHUNNED;
            bench.0.handle(later, WallMillis(0), Event::Resume, &mut out);
            out
        };
        assert_eq!(placed(&batch(&sent)), [(job(1), worker(1))], "registers: {registers}");
    }
}

#[test]
fn a_worker_that_hung_while_it_was_out_of_service_gets_jobs_when_it_registers() {
    let mut bench = Bench::new(BuiltInStrategy::LeastLoaded);
    bench.worker(1, info(9));
    let sent = batch(&bench.queue([1]));
    bench.handle(Event::Committed(sent, rejected(1, Reason::BadVersion)));
    bench.handle(Event::Hangs(worker(1)));
    let sent = batch(&bench.handle(Event::Worker(worker(1), info(9), 1)));
    assert_eq!(placed(&sent), [(job(1), worker(1))]);
}

#[test]
fn a_worker_that_offers_no_slots_yet_is_listed_once() {
    let mut bench = Bench::new(BuiltInStrategy::LeastLoaded);
    assert_eq!(bench.worker(1, info(0)), []);
    assert_eq!(bench.handle(Event::Worker(worker(1), info(0), 1)), []);
    assert_eq!(bench.handle(Event::Worker(worker(1), info(1), 2)), [Effect::ReadInbox(worker(1))]);
}

#[test]
fn every_batch_begins_with_the_epoch_and_its_workers_versions() {
    let mut bench = Bench::new(BuiltInStrategy::LeastLoaded);
    bench.worker(1, info(1));
    let sent = batch(&bench.queue([1]));
    let ops = sent.ops().collect::<Vec<_>>();
    assert_eq!(ops[0], &Op::Check { path: "/epoch".into(), version: 7 });
    assert_eq!(ops[1], &Op::Check { path: crate::path::worker(worker(1)), version: 0 });
    assert_eq!(ops.len(), 4);
}

#[test]
fn a_worker_gets_no_more_than_its_slots_until_its_inbox_shows_room() {
    let mut bench = Bench::new(BuiltInStrategy::LeastLoaded);
    bench.worker(1, info(2));
    let sent = bench.queue([1, 2, 3]);
    assert_eq!(batch(&sent).len(), 2);
    assert_eq!(commits(&bench.handle(Event::Committed(batch(&sent), Outcome::Applied(())))), 0);
    // One job was done: the inbox changed, is listed, and contains one job.
    let listed = bench.handle(Event::InboxChanged(worker(1)));
    assert_eq!(listed, [Effect::ListInbox(worker(1))]);
    let sent = bench.handle(Event::Inbox(worker(1), Some(names(1))));
    assert_eq!(placed(&batch(&sent)), [(job(3), worker(1))]);
}

#[test]
fn jobs_planned_after_a_list_was_requested_count_in_addition_to_it() {
    let mut bench = Bench::new(BuiltInStrategy::LeastLoaded);
    bench.worker(1, info(3));
    let first = batch(&bench.queue([1, 2]));
    bench.handle(Event::Committed(first, Outcome::Applied(())));
    assert_eq!(bench.handle(Event::InboxChanged(worker(1))), [Effect::ListInbox(worker(1))]);
    let second = batch(&bench.queue([3]));
    assert_eq!(placed(&second), [(job(3), worker(1))]);
    // The list contains the first two jobs but not the third, which was sent after it.
    assert_eq!(commits(&bench.handle(Event::Inbox(worker(1), Some(names(2))))), 0);
    assert_eq!(commits(&bench.queue([4])), 0, "3 of 3 slots are taken");
}

#[test]
fn finished_jobs_are_seen_within_a_second_even_when_no_job_waits() {
    let mut bench = Bench::new(BuiltInStrategy::LeastLoaded);
    bench.worker(1, info(9));
    let sent = batch(&bench.queue([1]));
    assert_eq!(bench.0.slots(), (9, 1));
    assert!(!bench.0.awaits_relist());
    assert_eq!(bench.handle(Event::InboxChanged(worker(1))), []);
    assert!(bench.0.awaits_relist());
    assert_eq!(bench.handle(Event::Relist), [], "an assignment is on its way");
    bench.handle(Event::Committed(sent, Outcome::Applied(())));
    assert!(bench.0.awaits_relist());
    assert_eq!(bench.handle(Event::Relist), [Effect::ListInbox(worker(1))]);
    assert!(!bench.0.awaits_relist());
    bench.handle(Event::Inbox(worker(1), Some(names(0))));
    assert_eq!(bench.0.slots(), (9, 0));
}

#[test]
fn only_a_worker_that_fills_up_is_listed_at_once() {
    for (jobs, listed) in [(1, vec![]), (2, vec![Effect::ListInbox(worker(1))])] {
        let mut bench = Bench::new(BuiltInStrategy::LeastLoaded);
        bench.worker(1, info(3));
        bench.queue(0..jobs);
        assert_eq!(bench.handle(Event::InboxChanged(worker(1))), listed, "{jobs} of 3");
    }
}

#[test]
fn a_full_batch_is_sent_while_another_one_is_in_flight() {
    let mut bench = Bench::new(BuiltInStrategy::LeastLoaded);
    bench.worker(1, info(1_000));
    let many = u32::try_from(BATCH).unwrap();
    assert_eq!(commits(&bench.queue([0])), 1);
    assert_eq!(commits(&bench.queue(1..many)), 0, "one job is missing");
    assert_eq!(commits(&bench.queue([many])), 1);
}

#[test]
fn after_a_list_without_an_answer_no_job_is_planned_until_the_session_is_back() {
    for first in [true, false] {
        let mut bench = Bench::new(BuiltInStrategy::LeastLoaded);
        bench.worker(1, info(9));
        if first {
            bench.handle(Event::Worker(worker(2), info(9), 0));
            bench.handle(Event::InboxRead(worker(2), None));
            bench.handle(Event::WorkerGone(worker(2)));
        } else {
            bench.handle(Event::InboxChanged(worker(1)));
            bench.handle(Event::Inbox(worker(1), None));
        }
        assert_eq!(bench.queue([1]), [], "the first list of the worker: {first}");
        assert_eq!(placed(&batch(&bench.handle(Event::Resume))), [(job(1), worker(1))]);
    }
}

#[test]
fn a_job_without_a_capable_worker_does_not_block_the_others() {
    let mut bench = Bench::new(BuiltInStrategy::LeastLoaded);
    bench.worker(1, info(9));
    let unknown = QueueEntry { kind: Kind::new("unknown").unwrap(), ..entry() };
    let gpu = Placement { tags: vec![Tag::new("gpu").unwrap()], ..Placement::default() };
    assert_eq!(bench.queue_entry(1, unknown), []);
    assert_eq!(bench.queue_entry(2, QueueEntry { placement: gpu, ..entry() }), []);
    let eu = Placement { tags: vec![Tag::new("eu").unwrap()], ..Placement::default() };
    let sent = bench.queue_entry(3, QueueEntry { placement: eu, ..entry() });
    assert_eq!(placed(&batch(&sent)), [(job(3), worker(1))]);
    assert_eq!(bench.0.waiting(), 2);
}

#[test]
fn a_draining_worker_gets_no_jobs() {
    let mut bench = Bench::new(BuiltInStrategy::LeastLoaded);
    bench.worker(1, WorkerInfo { draining: true, ..info(9) });
    assert_eq!(bench.queue([1]), []);
}

/// S24
#[test]
fn an_assignment_obeys_the_settings_of_an_operator() {
    let sum = Kind::new("sum").unwrap();
    let gpu = Tag::new("gpu").unwrap();
    let settings = |slots, tags, paused_kinds| Noted::unchanged(WorkerSettings { slots, tags, paused_kinds });
    let mut bench = Bench::new(BuiltInStrategy::LeastLoaded);
    bench.worker(1, info(9));
    let set = |bench: &mut Bench, version, settings| {
        bench.handle(Event::Worker(worker(1), WorkerInfo { settings, ..info(9) }, version))
    };
    assert_eq!(set(&mut bench, 1, settings(None, None, vec![sum.clone()])), []);
    assert_eq!(bench.queue([1]), [], "its kind is paused on the worker");
    assert_eq!(set(&mut bench, 2, settings(Some(0), None, vec![])), []);
    let sent = batch(&set(&mut bench, 3, settings(Some(2), None, vec![])));
    assert_eq!(placed(&sent), [(job(1), worker(1))]);
    assert!(sent.ops().any(|op| op.path() == path::worker(worker(1)) && op.version() == Some(3)));
    bench.handle(Event::Committed(sent, Outcome::Applied(())));
    let sent = batch(&bench.queue([2, 3]));
    assert_eq!(placed(&sent).len(), 1, "two slots");
    bench.handle(Event::Committed(sent, Outcome::Applied(())));
    let tagged = Placement { tags: vec![gpu.clone()], ..Placement::default() };
    assert_eq!(bench.queue_entry(4, QueueEntry { placement: tagged, ..entry() }), []);
    let sent = batch(&set(&mut bench, 4, settings(Some(3), Some(vec![gpu]), vec![])));
    assert_eq!(placed(&sent).len(), 1, "three slots; the worker offers the tag now");
}

#[test]
fn a_rejected_epoch_ends_the_term() {
    let mut bench = Bench::new(BuiltInStrategy::LeastLoaded);
    bench.worker(1, info(9));
    let sent = batch(&bench.queue([1]));
    let after = bench.handle(Event::Committed(sent, rejected(0, Reason::BadVersion)));
    assert_eq!(after, [Effect::FencedOut]);
    assert_eq!(bench.queue([2]), [], "no job is planned after the end of the term");
}

#[test]
fn a_rejected_entry_is_taken_out_and_the_rest_is_sent_again() {
    let mut bench = Bench::new(BuiltInStrategy::LeastLoaded);
    bench.worker(1, info(9));
    let sent = batch(&bench.queue([1, 2, 3]));
    // Operations: epoch, worker, then two per job: index 4 is job 2's entry.
    let after = bench.handle(Event::Committed(sent, rejected(4, Reason::NoNode)));
    let again = placed(&batch(&after));
    assert_eq!(again, [(job(1), worker(1)), (job(3), worker(1))]);
    assert_eq!(bench.0.slots(), (9, 2));
}

#[test]
fn a_rejected_worker_gets_no_jobs_until_it_registers_again() {
    let mut bench = Bench::new(BuiltInStrategy::RoundRobin);
    bench.worker(1, info(9));
    bench.worker(2, info(9));
    let sent = batch(&bench.queue([1, 2]));
    assert_eq!(placed(&sent).len(), 2);
    let after = bench.handle(Event::Committed(sent, rejected(2, Reason::BadVersion)));
    assert_eq!(placed(&batch(&after)), [(job(1), worker(1)), (job(2), worker(1))]);
    bench.handle(Event::Worker(worker(2), info(9), 1));
    assert_eq!(bench.0.slots().0, 18);
}

/// The registry reports the new registration before the transaction is answered.
#[test]
fn a_worker_whose_new_registration_is_known_before_the_rejection_stays() {
    let mut bench = Bench::new(BuiltInStrategy::LeastLoaded);
    bench.worker(1, info(9));
    let sent = batch(&bench.queue([1]));
    assert_eq!(commits(&bench.handle(Event::Worker(worker(1), info(5), 1))), 0);
    let after = bench.handle(Event::Committed(sent, rejected(1, Reason::BadVersion)));
    assert_eq!(placed(&batch(&after)), [(job(1), worker(1))]);
    assert_eq!(bench.0.slots(), (5, 1));
}

#[test]
fn an_unknown_batch_is_resolved_by_reading_after_the_resume() {
    let mut bench = Bench::new(BuiltInStrategy::LeastLoaded);
    bench.worker(1, info(4));
    let sent = batch(&bench.queue([1, 2]));
    assert_eq!(bench.handle(Event::Committed(sent, Outcome::Unknown)), []);
    assert_eq!(bench.queue([3]), [], "no job is planned while the session is disturbed");
    let resumed = bench.handle(Event::Resume);
    assert!(resumed.contains(&Effect::Resolve(vec![at(1), at(2)])), "{resumed:?}");
    bench.handle(Event::Committed(batch(&resumed), Outcome::Applied(())));
    let after = bench.handle(Event::Resolved(Some(vec![(at(1), false), (at(2), true)])));
    assert_eq!(placed(&batch(&after)), [(job(2), worker(1))]);
    assert_eq!(bench.0.slots(), (4, 3), "each job takes one slot");
}

#[test]
fn a_job_requeued_while_its_assignment_was_unknown_is_planned_with_its_new_attempt() {
    let mut bench = Bench::new(BuiltInStrategy::LeastLoaded);
    bench.worker(1, info(4));
    let sent = batch(&bench.queue([1]));
    bench.handle(Event::Committed(sent, Outcome::Unknown));
    bench.handle(Event::Resume);
    let again = QueueEntry { attempt: 2, ..entry() };
    let after = batch(&bench.queue_entry(1, again));
    assert_eq!(after.keys().map(Job::attempt).collect::<Vec<_>>(), [2]);
    // The read was answered late: the first entry was deleted after it.
    assert_eq!(bench.handle(Event::Resolved(Some(vec![(at(1), true)]))), []);
    bench.handle(Event::Committed(after, Outcome::Applied(())));
}

#[test]
fn a_rejection_of_the_whole_request_does_not_end_the_term() {
    let mut bench = Bench::new(BuiltInStrategy::LeastLoaded);
    bench.worker(1, info(9));
    let sent = batch(&bench.queue([1]));
    let throttled = rejected(0, Reason::Refused("throttled".into()));
    assert_eq!(
        bench.handle(Event::Committed(sent, throttled)),
        [],
        "the batch is not sent again immediately"
    );
    assert_eq!(placed(&batch(&bench.handle(Event::Resume))), [(job(1), worker(1))]);
}

#[test]
fn a_job_without_access_does_not_block_the_others() {
    let mut bench = Bench::new(BuiltInStrategy::LeastLoaded);
    bench.worker(1, info(9));
    let sent = batch(&bench.queue([1, 2]));
    let after = bench.handle(Event::Committed(sent, rejected(2, Reason::NoAuth)));
    assert_eq!(placed(&batch(&after)), [(job(2), worker(1))]);
}

#[test]
fn unsent_jobs_wait_for_the_resume_in_their_old_order() {
    let mut bench = Bench::new(BuiltInStrategy::LeastLoaded);
    bench.worker(1, info(2));
    let sent = batch(&bench.queue([1, 2]));
    bench.queue([3]);
    assert_eq!(bench.handle(Event::Committed(sent, rejected(0, Reason::NotSent))), []);
    let resumed = bench.handle(Event::Resume);
    assert_eq!(placed(&batch(&resumed)), [(job(1), worker(1)), (job(2), worker(1))]);
}

#[test]
fn jobs_accumulate_while_a_batch_is_in_flight_and_full_batches_are_sent_immediately() {
    let mut bench = Bench::new(BuiltInStrategy::LeastLoaded);
    bench.worker(1, info(4_000));
    let first = bench.queue([0]);
    assert_eq!(commits(&first), 1);
    assert_eq!(commits(&bench.queue(1..50)), 0);
    let full = bench.queue(50..500);
    assert_eq!(commits(&full), WINDOW - 1);
    let next = bench.handle(Event::Committed(batch(&first), Outcome::Applied(())));
    assert_eq!(commits(&next), 1);
}

#[test]
fn round_robin_takes_turns() {
    let mut bench = Bench::new(BuiltInStrategy::RoundRobin);
    for n in 1..=3 {
        bench.worker(n, info(9));
    }
    let workers =
        placed(&batch(&bench.queue(0..6))).into_iter().map(|(_, worker)| worker).collect::<Vec<_>>();
    assert_eq!(workers, [1, 2, 3, 1, 2, 3].map(worker));
}

#[test]
fn least_loaded_fills_by_share() {
    let mut bench = Bench::new(BuiltInStrategy::LeastLoaded);
    bench.worker(1, info(2));
    bench.worker(2, info(4));
    let sent = placed(&batch(&bench.queue(0..3)));
    assert_eq!(sent.iter().filter(|(_, id)| *id == worker(2)).count(), 2);
}

#[test]
fn rendezvous_keeps_a_key_on_its_worker_and_moves_only_when_it_is_full() {
    let mut bench = Bench::new(BuiltInStrategy::Rendezvous);
    for n in 1..=5 {
        bench.worker(n, info(3));
    }
    let placement =
        Placement { affinity: Some(AffinityKey::new("customer-7").unwrap()), ..Placement::default() };
    let jobs = (0..4)
        .map(|n| Waiting::new(&job(n), QueueEntry { placement: placement.clone(), ..entry() }))
        .collect();
    let sent = placed(&batch(&bench.handle(Event::Queued(jobs))));
    let favourite = sent[0].1;
    let on_it = sent.iter().filter(|(_, worker)| *worker == favourite).count();
    assert_eq!(on_it, 3, "{sent:?}");
}

#[test]
fn no_job_is_assigned_until_the_inbox_of_every_known_worker_is_listed() {
    let mut bench = Bench::new(BuiltInStrategy::Rendezvous);
    bench.handle(Event::Worker(worker(1), info(3), 0));
    bench.handle(Event::Worker(worker(2), info(3), 0));
    bench.queue(0..1);
    assert_eq!(bench.handle(empty(1)), []);
    let sent = placed(&batch(&bench.handle(empty(2))));
    assert_eq!(sent.len(), 1);
}

#[test]
fn random_reaches_every_worker() {
    let mut bench = Bench::new(BuiltInStrategy::Random);
    for n in 1..=4 {
        bench.worker(n, info(100));
    }
    let sent = placed(&batch(&bench.queue(0..80)));
    let reached = sent.into_iter().map(|(_, worker)| worker).collect::<BTreeSet<_>>();
    assert_eq!(reached.len(), 4);
}

#[derive(Debug, Clone)]
enum Step {
    Submit(u8),
    Finish(u8),
    Answer(u8),
    /// The next list of an inbox is refused.
    Refuse,
    Relist,
    Break,
    /// Another leader takes over.
    Elect,
}

fn steps() -> impl Generator<Value = Vec<Step>> {
    let step = prop_oneof![
        (1u8..6).prop_map(Step::Submit),
        any::<u8>().prop_map(Step::Finish),
        (0u8..10).prop_map(Step::Answer),
        Just(Step::Refuse),
        Just(Step::Relist),
        Just(Step::Break),
        Just(Step::Elect),
    ];
    prop::collection::vec(step, 1..120)
}

/// A ZooKeeper model with one queue and two inboxes, which answers in order and may lose its answers.
#[derive(Default)]
struct Model {
    queue: BTreeSet<JobId>,
    inboxes: BTreeMap<WorkerId, BTreeSet<JobId>>,
    answers: VecDeque<Event>,
    glances: BTreeSet<WorkerId>,
}

impl Model {
    fn carry_out(&mut self, effects: Vec<Effect>, slots: usize) -> Result<(), TestCaseError> {
        for effect in effects {
            match effect {
                Effect::Commit(batch) => {
                    let missing = batch.keys().position(|job| !self.queue.contains(&job.id));
                    let outcome = match missing {
                        Some(group) => {
                            let fence = batch.ops().filter(|op| matches!(op, Op::Check { .. })).count();
                            rejected(fence + 2 * group, Reason::NoNode)
                        }
                        None => {
                            for job in batch.keys() {
                                self.queue.remove(&job.id);
                                let inbox = self.inboxes.entry(job.worker).or_default();
                                prop_assert!(inbox.insert(job.id.clone()));
                                prop_assert!(inbox.len() <= slots, "more jobs than slots: {:?}", inbox);
                                let alone = inbox.iter().any(|job| isolation_of(job) == Isolation::Alone);
                                prop_assert!(!alone || inbox.len() == 1, "S20: not alone: {:?}", inbox);
                                self.touched(job.worker);
                            }
                            Outcome::Applied(())
                        }
                    };
                    self.answers.push_back(Event::Committed(batch, outcome));
                }
                Effect::ReadInbox(id) => {
                    let held = self.held(id);
                    let isolated = held.iter().map(|job| (job.clone(), isolation_of(job)));
                    let isolated =
                        isolated.filter(|(_, isolation)| *isolation != Isolation::Shared).collect();
                    let names = held.iter().map(ToString::to_string).collect();
                    let contents = InboxContents { names, isolated };
                    self.glances.insert(id);
                    self.answers.push_back(Event::InboxRead(id, Some(contents)));
                }
                Effect::ListInbox(id) => {
                    let held = self.held(id).iter().map(ToString::to_string).collect();
                    self.glances.insert(id);
                    self.answers.push_back(Event::Inbox(id, Some(held)));
                }
                Effect::Resolve(entries) => {
                    let read = entries.into_iter().map(|at| {
                        let there = self.queue.contains(at.job());
                        (at, there)
                    });
                    self.answers.push_back(Event::Resolved(Some(read.collect())));
                }
                Effect::ListLanes { .. } | Effect::ReadTurns { .. } => {
                    prop_assert!(false, "this test has no lanes")
                }
                Effect::ReadSettings | Effect::Fallback(_) | Effect::Overdue(_) => {
                    prop_assert!(false, "no job expires and no kind is paused")
                }
                Effect::FencedOut => prop_assert!(false, "no other leader claims"),
                Effect::Assigned { .. } => {}
            }
        }
        Ok(())
    }

    fn held(&self, id: WorkerId) -> BTreeSet<JobId> {
        self.inboxes.get(&id).cloned().unwrap_or_default()
    }

    /// A watch fires once.
    fn touched(&mut self, id: WorkerId) {
        if self.glances.remove(&id) {
            self.answers.push_back(Event::InboxChanged(id));
        }
    }

    fn refuse(&mut self) {
        for answer in &mut self.answers {
            if let Event::InboxRead(id, Some(_)) | Event::Inbox(id, Some(_)) = answer {
                *answer = Event::InboxRefused(*id);
                return;
            }
        }
    }

    /// The connection breaks: every pending answer is lost.
    fn lose(&mut self) -> Vec<Event> {
        let lost = std::mem::take(&mut self.answers).into_iter().filter_map(|answer| match answer {
            Event::Committed(batch, _) => Some(Event::Committed(batch, Outcome::Unknown)),
            Event::InboxRead(id, _) => Some(Event::InboxRead(id, None)),
            Event::Inbox(id, _) => Some(Event::Inbox(id, None)),
            Event::InboxRefused(id) => Some(Event::InboxRead(id, None)),
            Event::Resolved(_) => Some(Event::Resolved(None)),
            Event::InboxChanged(id) => Some(Event::InboxChanged(id)),
            Event::Queued(_)
            | Event::Unqueued(_)
            | Event::Beyond(_)
            | Event::Worker(..)
            | Event::WorkerGone(_)
            | Event::LanesWatched
            | Event::TurnGone(..)
            | Event::LanesListed { .. }
            | Event::TurnsRead { .. }
            | Event::Hangs(_)
            | Event::SettingsChanged
            | Event::Settings(_)
            | Event::Tick
            | Event::Relist
            | Event::Resume => None,
        });
        lost.collect()
    }
}

proptest! {
    /// Whatever is lost, under one leader after the other: no worker ever holds more jobs than slots, no job is in two
    /// inboxes, a job that runs alone is alone (S20), and once answers arrive and jobs finish, no job is left waiting.
    #[test]
    fn slots_are_never_exceeded_and_no_job_is_forgotten(steps in steps()) {
        const SLOTS: u32 = 4;
        let mut bench = Bench::new(BuiltInStrategy::LeastLoaded);
        let mut model = Model::default();
        let mut submitted = 0;
        for n in [1, 2] {
            let effects = bench.handle(Event::Worker(worker(n), info(SLOTS), 0));
            model.carry_out(effects, SLOTS as usize)?;
        }
        let settle = (0..400).flat_map(|n| [Step::Answer(9), Step::Finish(n as u8)]);
        for step in steps.into_iter().chain([Step::Break]).chain(settle) {
            match step {
                Step::Submit(count) => {
                    let new = (submitted..submitted + u32::from(count)).collect::<Vec<_>>();
                    submitted += u32::from(count);
                    model.queue.extend(new.iter().map(|n| job(*n)));
                    let new = new.into_iter().map(|n| Waiting::new(&job(n), entry_of(&job(n)))).collect();
                    let effects = bench.handle(Event::Queued(new));
                    model.carry_out(effects, SLOTS as usize)?;
                }
                Step::Refuse => model.refuse(),
                Step::Relist => {
                    let effects = bench.handle(Event::Relist);
                    model.carry_out(effects, SLOTS as usize)?;
                }
                Step::Finish(n) => {
                    let held = model.inboxes.iter().flat_map(|(id, jobs)| jobs.iter().map(|job| (*id, job.clone())));
                    let held = held.collect::<Vec<_>>();
                    if let Some((id, job)) = held.get(usize::from(n) % held.len().max(1)) {
                        model.inboxes.get_mut(id).unwrap().remove(job);
                        model.touched(*id);
                    }
                }
                Step::Answer(count) => {
                    for _ in 0..count {
                        let Some(answer) = model.answers.pop_front() else { break };
                        let effects = bench.handle(answer);
                        model.carry_out(effects, SLOTS as usize)?;
                    }
                }
                Step::Break => {
                    // The first answer that was not sent shows that the session is disturbed.
                    let mut effects = bench.handle(Event::InboxRead(worker(99), None));
                    for lost in model.lose() {
                        effects.extend(bench.handle(lost));
                    }
                    prop_assert!(effects.is_empty(), "there are no effects while the session is disturbed: {:?}", effects);
                    let effects = bench.handle(Event::Resume);
                    model.carry_out(effects, SLOTS as usize)?;
                }
                Step::Elect => {
                    (bench, model.answers) = (Bench::new(BuiltInStrategy::LeastLoaded), VecDeque::new());
                    let queued = model.queue.iter().map(|job| Waiting::new(job, entry_of(job))).collect();
                    let events = [1, 2].map(|n| Event::Worker(worker(n), info(SLOTS), 0));
                    for event in events.into_iter().chain([Event::Queued(queued)]) {
                        let effects = bench.handle(event);
                        model.carry_out(effects, SLOTS as usize)?;
                    }
                }
            }
        }
        prop_assert_eq!(bench.0.waiting(), 0);
        prop_assert!(model.queue.is_empty(), "still queued: {:?}", model.queue);
    }
}

fn batches(effects: Vec<Effect>) -> Vec<Batch<Job>> {
    let batches = effects.into_iter().filter_map(|effect| match effect {
        Effect::Commit(batch) => Some(batch),
        _ => None,
    });
    batches.collect()
}

#[test]
fn an_assignment_has_the_attempt_of_its_entry_and_the_lease_of_the_job_or_its_kind() {
    let kind = || Kind::new("sum").unwrap();
    let of_kind = BTreeMap::from([(kind(), Duration::from_secs(60))]);
    let own = Some(Duration::from_secs(30));
    let trace = TraceContext::new([1; 16], [2; 8], 1).ok();
    assert!(trace.is_some());
    for (lease, leases, expected) in [
        (own, of_kind.clone(), Duration::from_secs(30)),
        (None, of_kind, Duration::from_secs(60)),
        (None, BTreeMap::new(), DEFAULT_LEASE),
    ] {
        let mut bench = Bench::new(BuiltInStrategy::LeastLoaded);
        bench.worker(1, WorkerInfo { leases, ..info(4) });
        let waiting = QueueEntry {
            generation: 2,
            fencing_token: 6,
            lease,
            isolation: Isolation::Apart,
            trace,
            ..QueueEntry::new(kind(), 3, 6)
        };
        let sent = batches(bench.queue_entry(1, waiting));
        let [assigned] = &assignments(&sent[0])[..] else { panic!("{sent:?}") };
        let told = sent[0].keys().map(|job| (job.attempt(), job.trace().copied())).collect::<Vec<_>>();
        assert_eq!(told, [(3, trace)], "for the spans of the leader");
        let expected = Assignment {
            generation: 2,
            fencing_token: 6,
            lease: expected,
            isolation: Isolation::Apart,
            ..Assignment::new(3, 7, WallMillis(0))
        };
        assert_eq!(*assigned, expected);
    }
}

#[test]
fn batches_are_full_and_only_a_few_are_in_flight() {
    let mut bench = Bench::new(BuiltInStrategy::LeastLoaded);
    bench.worker(1, info(4_000));
    let jobs = BATCH * (WINDOW + 2);
    let sent = batches(bench.queue(0..u32::try_from(jobs).unwrap()));
    assert_eq!(sent.iter().map(Batch::len).collect::<Vec<_>>(), [BATCH; WINDOW]);
}

#[test]
fn live_workers_and_isolated_jobs_are_counted() {
    let mut bench = Bench::new(BuiltInStrategy::LeastLoaded);
    assert_eq!((bench.0.workers(), bench.0.isolated()), (0, 0));
    for n in [1, 2] {
        bench.worker(n, WorkerInfo { kinds: vec![], ..info(4) });
    }
    for n in 0..3 {
        bench.queue_entry(n, QueueEntry { isolation: Isolation::Alone, ..entry() });
    }
    assert_eq!((bench.0.workers(), bench.0.isolated()), (2, 3));
}

/// A retry without a pause would spin while the session is disturbed.
#[test]
fn an_unanswered_list_is_not_repeated_before_the_session_resumes() {
    let mut bench = Bench::new(BuiltInStrategy::LeastLoaded);
    assert_eq!(bench.handle(Event::Worker(worker(1), info(4), 0)), [Effect::ReadInbox(worker(1))]);
    assert_eq!(bench.handle(Event::InboxRead(worker(1), None)), []);
}
