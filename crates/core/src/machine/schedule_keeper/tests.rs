use std::time::Duration;

use super::*;
use crate::budget::{MAX_READ_BATCH, MAX_SCHEDULE_PAYLOAD_BYTES};
use crate::group::{GroupRecord, Stage as GroupStage};
use crate::job::{JobRecord, Payload, Placement, Policy, Priority};
use crate::name::{JobId, Kind};
use crate::outcome::{Outcome, Reason, Rejection};
use crate::path;
use crate::schedule::{Misfire, Overlap, ScheduleRecord, ScheduleSpec, Template, When, tick_id};
use crate::trace::TraceContext;
use crate::txn::{Batch, Op};

fn id(name: &str) -> ScheduleId {
    ScheduleId::new(name).unwrap()
}

const START: WallMillis = WallMillis(1_000_000_000);

fn at(seconds: u64) -> WallMillis {
    START + Duration::from_secs(seconds)
}

fn spec(overlap: Overlap) -> ScheduleSpec {
    let template = Template {
        kind: Kind::new("report").unwrap(),
        payload: Payload::json(*b"1").unwrap(),
        policy: Policy::default(),
        placement: Placement::default(),
        priority: Priority::default(),
        expires_after: None,
        job_id: None,
    };
    ScheduleSpec {
        when: When::every(Duration::from_secs(10)).unwrap(),
        misfire: Misfire::Once,
        grace: Duration::from_secs(60),
        overlap,
        template,
    }
}

fn every_ten(overlap: Overlap) -> Found {
    let record = ScheduleRecord::new(spec(overlap), START);
    Found::Record(Stamp { created: 1, version: 0 }, Box::new(record))
}

struct Stage {
    keeper: ScheduleKeeper,
    now: WallMillis,
}

impl Stage {
    fn new() -> Self {
        Self { keeper: ScheduleKeeper::new(7), now: START }
    }

    fn feed(&mut self, event: Event) -> Vec<Effect> {
        let mut out = Vec::new();
        self.keeper.handle(self.now, event, &mut out);
        out
    }

    /// A keeper that knows this schedule, after the first list.
    fn knowing(overlap: Overlap) -> Self {
        let mut stage = Self::new();
        assert_eq!(stage.feed(Event::Resync), [Effect::List]);
        let listed = Event::Listed { removals: 3, schedules: vec![id("a")] };
        assert_eq!(stage.feed(listed), [Effect::Read(vec![id("a")])]);
        assert_eq!(stage.feed(Event::Read(vec![(id("a"), every_ten(overlap))])), []);
        stage
    }

    fn tick(&mut self, seconds: u64) -> Vec<Effect> {
        self.now = at(seconds);
        self.feed(Event::Tick)
    }
}

fn batch(effects: &[Effect]) -> Batch<Key> {
    let [.., Effect::Commit(batch)] = effects else { panic!("{effects:?}") };
    batch.clone()
}

fn rejected(batch: Batch<Key>, at: usize, reason: Reason) -> Event {
    Event::Committed(batch, Outcome::Rejected(Rejection { at, reason }))
}

/// S3, S8: the epoch, then the removals, then the schedule at its version, then the job.
#[test]
fn a_tick_is_one_multi_with_its_fences() {
    let mut stage = Stage::knowing(Overlap::Allow);
    assert_eq!((stage.keeper.len(), stage.keeper.is_empty()), (1, false));
    assert!(stage.keeper.knows(&id("a"), Stamp { created: 1, version: 0 }));
    assert!(!stage.keeper.knows(&id("a"), Stamp { created: 1, version: 1 }));
    assert_eq!(stage.keeper.next_due(), Some(at(10)));
    assert_eq!(stage.tick(9), []);
    let batch = batch(&stage.tick(10));
    let ops = batch.ops().cloned().collect::<Vec<_>>();
    let job = tick_id(&id("a"), at(10));
    assert_eq!(ops[0], Op::Check { path: path::EPOCH.into(), version: 7 });
    assert_eq!(ops[1], Op::Check { path: path::SCHEDULES.into(), version: 3 });
    assert!(matches!(&ops[2], Op::Set { path, version: 0, .. } if *path == path::schedule(&id("a"))));
    assert!(matches!(&ops[3], Op::Create { path, .. } if *path == path::record(&job)));
    assert!(matches!(path::parse(ops[4].path()), path::Place::Ready(entry) if *entry.job() == job));
    assert_eq!(ops.len(), 5);
    let done = stage.feed(Event::Committed(batch, Outcome::Applied(())));
    assert_eq!(done, [Effect::Ticked(id("a"), at(10))]);
    // The hint of its own write causes no read.
    assert_eq!(stage.feed(Event::Changed(id("a"))), []);
    assert_eq!(stage.keeper.next_due(), Some(at(20)));
    // The next tick uses the version written by this one.
    assert!(self::batch(&stage.tick(20)).ops().any(|op| matches!(op, Op::Set { version: 1, .. })));
}

/// S8: tracing a tick neither moves an operation nor changes the events that the machine receives.
#[test]
fn tracing_the_job_of_a_tick_changes_no_other_operation() {
    for (overlap, flags) in [(Overlap::Allow, 1), (Overlap::Queue, 1), (Overlap::Allow, 0)] {
        let trace = TraceContext::new([7; 16], [8; 8], flags).unwrap();
        let mut stage = Stage::knowing(overlap);
        let plain = batch(&stage.tick(10));
        let mut traced = plain.clone();
        traced.rewrite(|key, ops| {
            assert_eq!(key.schedule, id("a"));
            txn::trace_tick(ops, trace);
        });
        let mut changed = Vec::new();
        for (before, after) in plain.ops().zip(traced.ops()) {
            assert_eq!(before.subject(), after.subject());
            if before != after {
                changed.push(after.subject());
            }
        }
        assert_eq!(plain.ops().count(), traced.ops().count());
        let entry = (flags == 1).then_some(txn::Subject::Entry);
        assert_eq!(changed, [txn::Subject::Record].into_iter().chain(entry).collect::<Vec<_>>());
        let of = |batch: &Batch<Key>| txn::job_of_tick(&batch.ops().cloned().collect::<Vec<_>>()).unwrap();
        let (made, record) = of(&plain);
        assert_eq!(of(&traced), (made, JobRecord { trace: Some(trace), ..record }));
        let done = stage.feed(Event::Committed(traced, Outcome::Applied(())));
        assert_eq!(done, [Effect::Ticked(id("a"), at(10))]);
    }
}

#[test]
fn a_skipped_tick_creates_no_job() {
    let mut ops = txn::set_schedule(&id("a"), 3, &ScheduleRecord::new(spec(Overlap::Allow), START));
    let before = ops.clone();
    assert_eq!(txn::job_of_tick(&ops), None);
    txn::trace_tick(&mut ops, TraceContext::new([7; 16], [8; 8], 1).unwrap());
    assert_eq!(ops, before);
}

#[test]
fn a_claim_by_another_leader_ends_the_keepers_term() {
    let mut stage = Stage::knowing(Overlap::Allow);
    let batch = batch(&stage.tick(10));
    assert_eq!(stage.feed(rejected(batch, 0, Reason::BadVersion)), [Effect::FencedOut]);
    assert_eq!(stage.tick(20), [], "the keeper does nothing after its term");
}

#[test]
fn after_a_removal_all_schedules_are_read_again_before_the_next_tick() {
    let mut stage = Stage::knowing(Overlap::Allow);
    let batch = batch(&stage.tick(10));
    let out = stage.feed(rejected(batch, 1, Reason::BadVersion));
    assert_eq!(out, [Effect::List, Effect::Read(vec![id("a")])]);
    assert_eq!(stage.feed(Event::Read(vec![(id("a"), every_ten(Overlap::Allow))])), [], "an outdated answer");
    let listed = Event::Listed { removals: 4, schedules: vec![id("a")] };
    assert_eq!(stage.feed(listed), [Effect::Read(vec![id("a")])]);
    assert!(!stage.keeper.knows(&id("a"), Stamp { created: 1, version: 0 }));
    let out = stage.feed(Event::Read(vec![(id("a"), every_ten(Overlap::Allow))]));
    let removals = Op::Check { path: path::SCHEDULES.into(), version: 4 };
    assert!(self::batch(&out).ops().any(|op| *op == removals));
}

#[test]
fn a_tick_with_an_existing_job_is_skipped_as_taken() {
    let mut stage = Stage::knowing(Overlap::Allow);
    let batch = batch(&stage.tick(10));
    let again = self::batch(&stage.feed(rejected(batch, 3, Reason::NodeExists)));
    assert!(again.ops().all(|op| !matches!(op, Op::Create { .. })));
    let ticks = Missed { from: at(10), through: at(10), count: 1 };
    let taken = Effect::Skipped(id("a"), Skipped { reason: SkipReason::Taken, ticks });
    assert_eq!(stage.feed(Event::Committed(again, Outcome::Applied(()))), [taken]);
}

#[test]
fn a_tick_is_skipped_while_the_last_job_is_open() {
    let mut stage = Stage::knowing(Overlap::Forbid);
    let first = batch(&stage.tick(10));
    stage.feed(Event::Committed(first, Outcome::Applied(())));
    let out = stage.tick(20);
    let [Effect::ReadJobs(jobs)] = &out[..] else { panic!("{out:?}") };
    assert_eq!(jobs[0].1, tick_id(&id("a"), at(10)));
    let ended = PriorJob::of(report("1").cancel(START), 5, None);
    let over = batch(&stage.feed(Event::JobsRead(vec![(jobs[0].0.clone(), ended)])));
    let check = Op::Check { path: path::record(&jobs[0].1), version: 5 };
    assert!(over.ops().any(|op| *op == check), "the batch checks that the last job is terminal");
    // The last job was retried concurrently: it is read again.
    let out = stage.feed(rejected(over, 3, Reason::BadVersion));
    let [Effect::ReadJobs(jobs)] = &out[..] else { panic!("{out:?}") };
    let open = PriorJob::of(report("1"), 5, None);
    let open = batch(&stage.feed(Event::JobsRead(vec![(jobs[0].0.clone(), open)])));
    let done = stage.feed(Event::Committed(open, Outcome::Applied(())));
    assert!(
        matches!(&done[..], [Effect::Skipped(_, Skipped { reason: SkipReason::Overlap, .. })]),
        "{done:?}"
    );
}

/// A job of the kind and payload that the schedules submit, or with another payload.
fn report(payload: &str) -> JobRecord {
    let payload = Payload::json(payload.as_bytes()).unwrap();
    JobRecord::new(Kind::new("report").unwrap(), payload, uuid::Uuid::from_u128(9), START)
}

/// S8: a parent is in progress until its sub-jobs have ended.
#[test]
fn a_job_is_open_while_its_sub_jobs_are() {
    let ended = JobRecord { spawned: true, ..report("1") }.cancel(START);
    let group = |stage| {
        let group = GroupRecord::new(Kind::new("sum").unwrap(), uuid::Uuid::nil(), START);
        Some(Ok(GroupRecord { stage, ..group }))
    };
    for stage in [GroupStage::Open, GroupStage::Joining, GroupStage::Finishing] {
        assert!(matches!(PriorJob::of(ended.clone(), 5, group(stage)), PriorJob::Open(_)), "{stage:?}");
    }
    let done = group(GroupStage::Done { at: START });
    assert!(matches!(PriorJob::of(ended.clone(), 5, done), PriorJob::Over(5, _)));
    assert!(matches!(PriorJob::of(ended.clone(), 5, None), PriorJob::Over(5, _)), "its group was removed");
    let unreadable = Some(Err(crate::wire::WireError::Value("x".into())));
    assert_eq!(PriorJob::of(ended, 5, unreadable), PriorJob::Unreadable);
}

/// A keeper whose schedule has a job id, the key of its first tick, and the job that the tick waits for.
fn with_job_id() -> (Stage, Key) {
    let mut stage = Stage::new();
    stage.feed(Event::Resync);
    stage.feed(Event::Listed { removals: 3, schedules: vec![id("a")] });
    let mut spec = spec(Overlap::Allow);
    spec.template.job_id = Some(JobId::new("reindex").unwrap());
    let record = Box::new(ScheduleRecord::new(spec, START));
    let found = Found::Record(Stamp { created: 1, version: 0 }, record);
    assert_eq!(stage.feed(Event::Read(vec![(id("a"), found)])), []);
    let out = stage.tick(10);
    let [Effect::ReadJobs(jobs)] = &out[..] else { panic!("{out:?}") };
    assert_eq!(jobs[0].1.as_str(), "reindex");
    let key = jobs[0].0.clone();
    (stage, key)
}

/// S8, S11: the record is created, or set at the version at which the job had ended.
#[test]
fn a_tick_with_a_job_id_creates_the_job_or_opens_it_again() {
    let job = JobId::new("reindex").unwrap();
    let (mut stage, key) = with_job_id();
    let created = batch(&stage.feed(Event::JobsRead(vec![(key, PriorJob::Absent)])));
    let record = |op: &Op| op.path() == path::record(&job);
    assert!(created.ops().any(|op| record(op) && matches!(op, Op::Create { .. })));
    // A client submitted it at the same time: its record is read.
    let out = stage.feed(rejected(created, 3, Reason::NodeExists));
    let [Effect::ReadJobs(jobs)] = &out[..] else { panic!("{out:?}") };
    let ended = PriorJob::of(report("1").cancel(START), 5, None);
    let reopened = batch(&stage.feed(Event::JobsRead(vec![(jobs[0].0.clone(), ended.clone())])));
    assert!(reopened.ops().any(|op| record(op) && matches!(op, Op::Set { version: 5, .. })));
    let ops = reopened.ops().cloned().collect::<Vec<_>>();
    let (made, record) = txn::job_of_tick(&ops).unwrap();
    assert_eq!((made, record.generation, record.is_terminal()), (job, 2, false));
    let mut traced = ops.clone();
    txn::trace_tick(&mut traced, TraceContext::new([7; 16], [8; 8], 1).unwrap());
    let paths = |ops: &[Op]| ops.iter().map(|op| (op.path().to_owned(), op.version())).collect::<Vec<_>>();
    assert_eq!(paths(&traced), paths(&ops));
    // A client opened it again at the same time: its record is read.
    let out = stage.feed(rejected(reopened, 3, Reason::BadVersion));
    let [Effect::ReadJobs(jobs)] = &out[..] else { panic!("{out:?}") };
    let again = batch(&stage.feed(Event::JobsRead(vec![(jobs[0].0.clone(), ended)])));
    let done = stage.feed(Event::Committed(again, Outcome::Applied(())));
    assert_eq!(done, [Effect::Ticked(id("a"), at(10))]);
}

#[test]
fn a_tick_is_skipped_while_the_job_with_its_id_is_open_or_is_another_job() {
    for (there, reason) in [
        (PriorJob::of(report("1"), 5, None), SkipReason::JobOpen),
        (PriorJob::Unreadable, SkipReason::JobOpen),
        (PriorJob::of(report("2"), 5, None), SkipReason::Conflict),
        (PriorJob::of(report("2").cancel(START), 5, None), SkipReason::Conflict),
    ] {
        let (mut stage, key) = with_job_id();
        let skipped = batch(&stage.feed(Event::JobsRead(vec![(key, there)])));
        assert!(skipped.ops().all(|op| !op.path().starts_with(path::JOBS)), "no job is written");
        let ticks = Missed { from: at(10), through: at(10), count: 1 };
        let effect = Effect::Skipped(id("a"), Skipped { reason, ticks });
        assert_eq!(stage.feed(Event::Committed(skipped, Outcome::Applied(()))), [effect]);
    }
}

#[test]
fn a_lane_that_cannot_be_created_waits_for_the_next_list() {
    let mut stage = Stage::knowing(Overlap::Queue);
    let mut out = stage.tick(10);
    for _ in 1..MAX_UNEXPLAINED {
        assert_eq!(stage.feed(rejected(batch(&out), 5, Reason::NoNode)), [Effect::Read(vec![id("a")])]);
        out = stage.feed(Event::Read(vec![(id("a"), Found::Same)]));
    }
    assert_eq!(stage.feed(rejected(batch(&out), 5, Reason::NoNode)), []);
    assert_eq!(stage.tick(11), [], "the schedule is not retried in a loop");
    assert_eq!(stage.feed(Event::Resync), [Effect::List]);
    let listed = Event::Listed { removals: 3, schedules: vec![id("a")] };
    assert_eq!(stage.feed(listed), [Effect::Read(vec![id("a")])]);
    let tried = stage.feed(Event::Read(vec![(id("a"), Found::Same)]));
    assert!(matches!(&tried[..], [Effect::Commit(_)]), "{tried:?}");
}

#[test]
fn a_schedule_added_after_the_list_was_made_is_not_forgotten() {
    let mut stage = Stage::new();
    stage.feed(Event::Resync);
    assert_eq!(stage.feed(Event::Changed(id("b"))), [Effect::Read(vec![id("b")])]);
    assert_eq!(stage.feed(Event::Listed { removals: 3, schedules: vec![] }), []);
    stage.feed(Event::Read(vec![(id("b"), every_ten(Overlap::Allow))]));
    assert_eq!(stage.keeper.next_due(), Some(at(10)));
    // A schedule that is missing in a complete later list was removed.
    stage.feed(Event::Resync);
    stage.feed(Event::Listed { removals: 3, schedules: vec![] });
    assert!(stage.keeper.is_empty());
}

#[test]
fn after_an_unknown_outcome_the_schedule_is_read_once_the_session_is_back() {
    let mut stage = Stage::knowing(Overlap::Allow);
    let batch = batch(&stage.tick(10));
    assert_eq!(stage.feed(Event::Committed(batch, Outcome::Unknown)), []);
    assert_eq!(stage.tick(20), []);
    assert_eq!(stage.feed(Event::Resync), [Effect::List, Effect::Read(vec![id("a")])]);
}

/// After a month without a leader: each schedule has missed 2.6 million ticks.
#[test]
fn one_call_handles_a_bounded_number_of_schedules_with_missed_ticks() {
    let mut stage = Stage::new();
    let missed = |_: &ScheduleId| {
        let Found::Record(stamp, mut record) = every_ten(Overlap::Allow) else { unreachable!() };
        record.spec.when = When::cron("* * * * * *", "Europe/Berlin").unwrap();
        record.spec.misfire = Misfire::CatchUp { limit: 100, within: Duration::from_secs(86_400) };
        Found::Record(stamp, record)
    };
    let names = (0..50).map(|n| id(&format!("s{n}"))).collect::<Vec<_>>();
    stage.feed(Event::Resync);
    stage.feed(Event::Listed { removals: 3, schedules: names.clone() });
    stage.now = at(30 * 86_400);
    let found = names.iter().map(|name| (name.clone(), missed(name))).collect();
    let mut sent = batch(&stage.feed(Event::Read(found)));
    for _ in 0..10 {
        assert_eq!(sent.len(), LATE);
        sent = batch(&stage.feed(Event::Committed(sent, Outcome::Applied(()))));
    }
}

#[test]
fn one_call_handles_all_schedules_whose_ticks_are_within_their_grace() {
    let graceful = || {
        let Found::Record(stamp, mut record) = every_ten(Overlap::Allow) else { unreachable!() };
        record.spec.grace = Duration::from_secs(5);
        Found::Record(stamp, record)
    };
    let mut stage = knowing_all(2 * LATE, graceful);
    assert_eq!(batch(&stage.tick(15)).len(), 2 * LATE);
}

fn named(schedules: usize) -> Vec<ScheduleId> {
    (0..schedules).map(|n| id(&format!("s{n:05}"))).collect()
}

#[test]
fn schedules_are_read_in_full_batches_within_the_window() {
    let mut stage = Stage::new();
    stage.feed(Event::Resync);
    let schedules = named(MAX_READ_BATCH * (READ_WINDOW + 2));
    let reads = |effects: Vec<Effect>| {
        let reads = effects.into_iter().filter_map(|effect| match effect {
            Effect::Read(schedules) => Some(schedules.len()),
            _ => None,
        });
        reads.collect::<Vec<_>>()
    };
    let asked = stage.feed(Event::Listed { removals: 3, schedules });
    assert_eq!(reads(asked), [MAX_READ_BATCH; READ_WINDOW]);
    let answered = named(MAX_READ_BATCH).into_iter().map(|id| (id, every_ten(Overlap::Allow)));
    assert_eq!(reads(stage.feed(Event::Read(answered.collect()))), [MAX_READ_BATCH]);
    let failed = named(2 * MAX_READ_BATCH).split_off(MAX_READ_BATCH);
    assert_eq!(stage.feed(Event::ReadFailed(failed)), []);
    assert_eq!(reads(stage.feed(Event::Resync)), [MAX_READ_BATCH]);
}

/// A keeper that knows this many schedules, which are due in ten seconds.
fn knowing_many(schedules: usize, overlap: Overlap) -> Stage {
    knowing_all(schedules, || every_ten(overlap))
}

fn knowing_all(schedules: usize, found: impl Fn() -> Found) -> Stage {
    let mut stage = Stage::new();
    stage.feed(Event::Resync);
    let mut effects = stage.feed(Event::Listed { removals: 3, schedules: named(schedules) });
    while let Some(effect) = effects.pop() {
        let Effect::Read(schedules) = effect else { continue };
        let found = schedules.into_iter().map(|id| (id, found()));
        effects.extend(stage.feed(Event::Read(found.collect())));
    }
    assert_eq!(stage.keeper.len(), schedules);
    stage
}

#[test]
fn ticks_are_committed_in_full_batches_within_the_window() {
    let mut stage = knowing_many(BATCH * (COMMIT_WINDOW + 2), Overlap::Allow);
    let mut sent = stage.tick(10);
    for _ in 0..2 {
        let batches = sent.iter().filter_map(|effect| match effect {
            Effect::Commit(batch) => Some(batch.clone()),
            _ => None,
        });
        let batches = batches.collect::<Vec<_>>();
        assert!(batches.len() <= COMMIT_WINDOW && batches.iter().all(|batch| batch.len() == BATCH));
        let after = batches.into_iter().flat_map(|b| stage.feed(Event::Committed(b, Outcome::Applied(()))));
        sent = after.collect();
    }
    assert_eq!(stage.keeper.next_due(), Some(at(20)), "all of them have ticked");
}

#[test]
fn jobs_are_read_in_full_batches() {
    let mut stage = knowing_many(2 * MAX_READ_BATCH, Overlap::Forbid);
    for effect in stage.tick(10) {
        let Effect::Commit(batch) = effect else { panic!("{effect:?}") };
        stage.feed(Event::Committed(batch, Outcome::Applied(())));
    }
    let reads = stage.tick(20).into_iter().map(|effect| match effect {
        Effect::ReadJobs(jobs) => jobs.len(),
        other => panic!("{other:?}"),
    });
    assert_eq!(reads.collect::<Vec<_>>(), [MAX_READ_BATCH; 2]);
}

/// Few of them fit into a batch.
#[test]
fn batches_of_large_ticks_keep_the_window() {
    let large = || {
        let mut spec = spec(Overlap::Allow);
        spec.template.payload = Payload::json(vec![b'1'; MAX_SCHEDULE_PAYLOAD_BYTES]).unwrap();
        Found::Record(Stamp { created: 1, version: 0 }, Box::new(ScheduleRecord::new(spec, START)))
    };
    let mut stage = knowing_all(2 * BATCH, large);
    assert_eq!(stage.tick(10).len(), COMMIT_WINDOW);
}

/// The position means nothing in such a rejection.
#[test]
fn a_tick_that_was_not_sent_is_read_again_after_the_resync() {
    for position in [0, 3] {
        let mut stage = Stage::knowing(Overlap::Allow);
        let sent = batch(&stage.tick(10));
        assert_eq!(stage.feed(rejected(sent, position, Reason::NotSent)), []);
        assert_eq!(stage.feed(Event::Resync), [Effect::List, Effect::Read(vec![id("a")])]);
    }
}

/// A second schedule, which is known from now on.
fn know(stage: &mut Stage, name: &str, overlap: Overlap) {
    assert_eq!(stage.feed(Event::Changed(id(name))), [Effect::Read(vec![id(name)])]);
    stage.feed(Event::Read(vec![(id(name), every_ten(overlap))]));
}

/// The schedules of a batch.
fn of_batch(batch: &Batch<Key>) -> Vec<ScheduleId> {
    batch.keys().map(|key| key.schedule.clone()).collect()
}

#[test]
fn an_own_write_explains_one_change_and_the_next_one_is_read() {
    for early in [false, true] {
        let mut stage = Stage::knowing(Overlap::Allow);
        let sent = batch(&stage.tick(10));
        if early {
            assert_eq!(stage.feed(Event::Changed(id("a"))), [], "before the reply");
        }
        stage.feed(Event::Committed(sent, Outcome::Applied(())));
        if !early {
            assert_eq!(stage.feed(Event::Changed(id("a"))), [], "after the reply");
        }
        assert_eq!(stage.feed(Event::Changed(id("a"))), [Effect::Read(vec![id("a")])], "early {early}");
    }
}

#[test]
fn a_change_during_a_read_causes_another_read() {
    let mut stage = Stage::knowing(Overlap::Allow);
    assert_eq!(stage.feed(Event::Changed(id("a"))), [Effect::Read(vec![id("a")])]);
    assert_eq!(stage.feed(Event::Changed(id("a"))), []);
    let found = vec![(id("a"), every_ten(Overlap::Allow))];
    assert_eq!(stage.feed(Event::Read(found.clone())), [Effect::Read(vec![id("a")])]);
    assert_eq!(stage.feed(Event::Read(found)), []);
}

#[test]
fn a_read_without_an_answer_is_sent_again_with_the_session() {
    let mut stage = Stage::knowing(Overlap::Allow);
    assert_eq!(stage.feed(Event::Changed(id("a"))), [Effect::Read(vec![id("a")])]);
    assert_eq!(stage.feed(Event::ReadFailed(vec![id("a")])), []);
    assert_eq!(stage.feed(Event::Resync), [Effect::List, Effect::Read(vec![id("a")])]);
}

#[test]
fn reads_of_jobs_without_an_answer_leave_the_window_of_reads() {
    let mut stage = Stage::knowing(Overlap::Forbid);
    let first = batch(&stage.tick(10));
    stage.feed(Event::Committed(first, Outcome::Applied(())));
    let mut out = stage.tick(20);
    for attempt in 0..=READ_WINDOW {
        let [Effect::ReadJobs(jobs)] = &out[..] else { panic!("{attempt}: {out:?}") };
        assert_eq!(stage.feed(Event::JobsReadFailed(vec![jobs[0].0.clone()])), []);
        let read = Effect::Read(vec![id("a")]);
        assert_eq!(stage.feed(Event::Resync), [Effect::List, read], "{attempt}");
        let listed = Event::Listed { removals: 3, schedules: vec![id("a")] };
        stage.feed(listed);
        out = stage.feed(Event::Read(vec![(id("a"), Found::Same)]));
        let late = Event::Read(vec![(id("a"), Found::Same)]);
        assert_eq!(stage.feed(late), [], "the list has caused a second read");
    }
}

#[test]
fn a_list_leaves_a_write_in_flight_alone_unless_a_schedule_was_removed() {
    for (removals, read) in [(3, vec![]), (4, vec![Effect::Read(vec![id("a")])])] {
        let mut stage = Stage::knowing(Overlap::Allow);
        let sent = batch(&stage.tick(10));
        assert_eq!(stage.feed(Event::Resync), [Effect::List]);
        assert_eq!(stage.feed(Event::Listed { removals, schedules: vec![id("a")] }), read);
        let ticked = if removals == 3 { vec![Effect::Ticked(id("a"), at(10))] } else { vec![] };
        assert_eq!(stage.feed(Event::Committed(sent, Outcome::Applied(()))), ticked);
    }
}

/// They wait for the reply to the first batch.
#[test]
fn a_changed_schedule_leaves_the_other_ready_ones_in_place() {
    let mut stage = Stage::knowing(Overlap::Allow);
    let sent = batch(&stage.tick(10));
    for name in ["b", "c"] {
        know(&mut stage, name, Overlap::Allow);
    }
    assert_eq!(stage.feed(Event::Changed(id("b"))), [Effect::Read(vec![id("b")])]);
    let out = stage.feed(Event::Committed(sent, Outcome::Applied(())));
    assert_eq!(of_batch(&batch(&out)), [id("c")]);
}

#[test]
fn a_changed_schedule_leaves_the_others_whose_jobs_wait_for_a_read_in_place() {
    let mut stage = Stage::knowing(Overlap::Forbid);
    know(&mut stage, "b", Overlap::Forbid);
    let first = batch(&stage.tick(10));
    assert_eq!(of_batch(&first), [id("a"), id("b")]);
    stage.feed(Event::Committed(first, Outcome::Applied(())));
    for n in 0..READ_WINDOW {
        assert_eq!(stage.feed(Event::Changed(id(&format!("new-{n}")))).len(), 1, "the window is full");
    }
    assert_eq!(stage.tick(20), []);
    // The own writes explain the first change of each.
    for name in ["a", "b", "a"] {
        assert_eq!(stage.feed(Event::Changed(id(name))), []);
    }
    let out = stage.feed(Event::Read(vec![(id("new-0"), Found::Nothing)]));
    assert_eq!(out, [Effect::Read(vec![id("a")])]);
    let out = stage.feed(Event::Read(vec![(id("new-1"), Found::Nothing)]));
    let [Effect::ReadJobs(jobs)] = &out[..] else { panic!("{out:?}") };
    assert_eq!(jobs.iter().map(|(key, _)| key.schedule.clone()).collect::<Vec<_>>(), [id("b")]);
}

#[test]
fn a_schedule_that_changes_while_its_write_is_ready_takes_one_slot() {
    let mut stage = Stage::knowing(Overlap::Allow);
    let sent = batch(&stage.tick(10));
    know(&mut stage, "b", Overlap::Allow);
    for _ in 0..=COMMIT_WINDOW * BATCH {
        assert_eq!(stage.feed(Event::Changed(id("b"))), [Effect::Read(vec![id("b")])]);
        assert_eq!(stage.feed(Event::Read(vec![(id("b"), Found::Same)])), []);
    }
    know(&mut stage, "c", Overlap::Allow);
    let out = stage.feed(Event::Committed(sent, Outcome::Applied(())));
    assert_eq!(of_batch(&batch(&out)), [id("b"), id("c")]);
}

#[test]
fn an_answer_about_the_job_of_an_earlier_write_is_dropped() {
    let mut stage = Stage::knowing(Overlap::Forbid);
    let first = batch(&stage.tick(10));
    stage.feed(Event::Committed(first, Outcome::Applied(())));
    stage.feed(Event::Changed(id("a")));
    let asked = |out: &[Effect]| {
        let [Effect::ReadJobs(jobs)] = out else { panic!("{out:?}") };
        jobs[0].0.clone()
    };
    let old = asked(&stage.tick(20));
    assert_eq!(stage.feed(Event::Changed(id("a"))), [Effect::Read(vec![id("a")])]);
    let new = asked(&stage.feed(Event::Read(vec![(id("a"), Found::Same)])));
    assert_eq!(stage.feed(Event::JobsRead(vec![(old, PriorJob::Absent)])), []);
    assert_eq!(of_batch(&batch(&stage.feed(Event::JobsRead(vec![(new, PriorJob::Absent)])))), [id("a")]);
}

#[test]
fn a_schedule_that_was_changed_during_its_write_is_read_again_however_often() {
    let mut stage = Stage::knowing(Overlap::Allow);
    let mut out = stage.tick(10);
    for _ in 0..2 * MAX_UNEXPLAINED {
        let read = stage.feed(rejected(batch(&out), 2, Reason::BadVersion));
        assert_eq!(read, [Effect::Read(vec![id("a")])]);
        out = stage.feed(Event::Read(vec![(id("a"), Found::Same)]));
    }
}

/// Only an operator can cause them: a bucket is absent, or an entry exists without its record.
#[test]
fn a_write_with_unexplained_rejections_waits_for_the_next_list() {
    for (at, reason) in [(3, Reason::NoNode), (4, Reason::NodeExists), (4, Reason::NoNode)] {
        let mut stage = Stage::knowing(Overlap::Allow);
        let mut out = stage.tick(10);
        for _ in 1..MAX_UNEXPLAINED {
            let read = stage.feed(rejected(batch(&out), at, reason.clone()));
            assert_eq!(read, [Effect::Read(vec![id("a")])], "{at} {reason}");
            out = stage.feed(Event::Read(vec![(id("a"), Found::Same)]));
        }
        assert_eq!(stage.feed(rejected(batch(&out), at, reason.clone())), [], "{at} {reason}");
        assert_eq!(stage.tick(11), []);
        assert_eq!(stage.feed(Event::Resync), [Effect::List]);
    }
}
