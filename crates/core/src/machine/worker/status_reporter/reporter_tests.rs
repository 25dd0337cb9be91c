//! Tests of the reporter against a model of ZooKeeper that loses replies, applies writes late, and has other writers.

use proptest::prelude::*;

use super::*;
use crate::budget::MIN_RETENTION;
use crate::job::{Assignment, Attempt, AttemptOutcome, Ending, JobRecord, Payload, Progress};
use crate::machine::worker::fixture::{assignment, job, result, start, worker};
use crate::machine::worker::{Found, Lookup, Start};
use crate::name::JobId;
use crate::path::{self, Place};
use crate::ready::{ReadyEntry, Shard};
use crate::txn::{self, Op};
use crate::wire::{decode, encode};
use crate::zookeeper::ZooKeeper;

const AT: WallMillis = WallMillis(120_000);

/// Returns the path of the job's turn, if it has a lane.
fn turn(n: usize) -> Option<String> {
    start(n).record.turn().map(|turn| path::turn(&turn, &job(n)))
}

/// A ZooKeeper model that holds the jobs.
struct Tree(ZooKeeper);

impl Tree {
    fn with_jobs(n: usize) -> Self {
        let mut zookeeper = ZooKeeper::new();
        zookeeper.make_parents(&path::delayed_minute(0));
        for n in 0..n {
            zookeeper.put(&path::record(&job(n)), encode(&*start(n).record), 5);
            turn(n).iter().for_each(|turn| zookeeper.put(turn, Vec::new(), 0));
            zookeeper.put(&path::assignment(worker(), &job(n)), encode(&assignment(1)), 0);
        }
        Shard::all().for_each(|shard| zookeeper.put(&path::ready_shard(shard), Vec::new(), 0));
        Self(zookeeper)
    }

    fn commit(&mut self, ops: &[Op]) -> Outcome<()> {
        self.0.commit(self.0.operator, ops)
    }

    fn found(&self, close: &Close) -> Found {
        let znode = |path: String| self.0.get(&path).map(|znode| (znode.data.as_slice(), znode.version));
        let assignment = Lookup::of(znode(path::assignment(worker(), close.job())));
        Found { assignment, record: Lookup::of(znode(path::record(close.job()))) }
    }

    fn record(&self, n: usize) -> (JobRecord, i32) {
        let record = self.0.get(&path::record(&job(n))).unwrap();
        (decode(&record.data).unwrap(), record.version)
    }

    fn assignment(&self, n: usize) -> Option<(Assignment, i32)> {
        let assignment = self.0.get(&path::assignment(worker(), &job(n)))?;
        Some((decode(&assignment.data).unwrap(), assignment.version))
    }

    /// Minutes are containers, which ZooKeeper removes when they are empty.
    fn remove_empty_minutes(&mut self) {
        for minute in self.0.children(path::DELAYED) {
            let minute = format!("{}/{minute}", path::DELAYED);
            if self.0.children(&minute).is_empty() {
                self.0.remove(&minute);
            }
        }
    }

    fn flag_cancel(&mut self, n: usize) {
        if let Some((assigned, version)) = self.assignment(n) {
            self.commit(&[txn::flag_cancel(&job(n), worker(), version, &assigned)]);
        }
    }

    fn close_as_lost(&mut self, n: usize) {
        let (record, version) = self.record(n);
        if record.attempts == 0 {
            let attempt = Attempt { number: 1, worker: worker() };
            let (lost, next) = record.close(attempt, Ending::Lost, AT, 0);
            self.commit(&txn::close(&job(n), worker(), version, None, &lost, &next));
        }
    }
}

/// The machine, its ZooKeeper model, and the requests in flight.
struct World {
    machine: Reporter,
    tree: Tree,
    now: Millis,
    wire: Vec<Effect>,
    late: Vec<Vec<Op>>,
    settled: Vec<(JobId, Settled)>,
    /// Whether each lost write was applied.
    resolved: Vec<bool>,
    refused: usize,
}

impl World {
    fn new(jobs: usize) -> Self {
        let (machine, tree) = (Reporter::new(worker(), vec![]), Tree::with_jobs(jobs));
        let (wire, late, settled, resolved) = Default::default();
        Self { machine, tree, now: Millis(0), wire, late, settled, resolved, refused: 0 }
    }

    fn handle(&mut self, event: Event) {
        let mut out = Vec::new();
        self.machine.handle(self.now, event, &mut out);
        for effect in out {
            match effect {
                Effect::Settled(close, settled) => {
                    assert_eq!(close.since_submission(), AT.since(start(0).record.submitted_at));
                    self.settled.push((close.job().clone(), settled));
                }
                Effect::Refused(..) => self.refused += 1,
                Effect::Resolved { applied } => self.resolved.push(applied),
                Effect::WakeAt(_) => {}
                Effect::Commit(_) | Effect::Read(_) => self.wire.push(effect),
            }
        }
    }

    fn report(&mut self, endings: impl IntoIterator<Item = (usize, Ending)>) {
        let finished = endings.into_iter().map(|(n, ending)| (Finished { start: start(n), ending }, 0));
        self.handle(Event::Report(AT, finished.collect()));
    }

    /// Answers the oldest request in flight.
    fn answer(&mut self, fate: Fate) {
        if self.wire.is_empty() {
            return;
        }
        let not_sent = Outcome::Rejected(Rejection { at: 0, reason: Reason::NotSent });
        let event = match self.wire.remove(0) {
            Effect::Commit(batch) => {
                let ops: Vec<Op> = batch.ops().cloned().collect();
                let outcome = match fate {
                    Fate::Answered => self.tree.commit(&ops),
                    Fate::ReplyLost => {
                        self.tree.commit(&ops);
                        Outcome::Unknown
                    }
                    Fate::RequestLost => Outcome::Unknown,
                    Fate::Late => {
                        self.late.push(ops);
                        Outcome::Unknown
                    }
                    Fate::NotSent => not_sent,
                };
                Event::Committed(batch, outcome)
            }
            Effect::Read(closes) => match fate {
                Fate::Answered => {
                    let found = |close: Close| (close.clone(), self.tree.found(&close));
                    Event::Read(closes.into_iter().map(found).collect())
                }
                Fate::ReplyLost | Fate::RequestLost | Fate::Late | Fate::NotSent => Event::ReadFailed(closes),
            },
            Effect::Settled(..) | Effect::Refused(..) | Effect::Resolved { .. } | Effect::WakeAt(_) => {
                unreachable!("this effect is not a request")
            }
        };
        self.handle(event);
    }

    fn apply_late(&mut self) {
        if !self.late.is_empty() {
            let ops = self.late.remove(0);
            self.tree.commit(&ops);
        }
    }

    /// Restores the session: every request is answered.
    fn settle(&mut self) {
        for _ in 0..20 {
            self.now = self.now + RETRY_REFUSED;
            self.handle(Event::Resume);
            self.handle(Event::Wake);
            while !self.wire.is_empty() {
                self.answer(Fate::Answered);
            }
            self.apply_late();
        }
    }

    fn places(&self, n: usize) -> usize {
        let open = |path: &&String| match path::parse(path) {
            Place::Ready(entry) => *entry.job() == job(n),
            Place::DelayedEntry(_, id) | Place::Assignment(_, id) => id == job(n),
            _ => false,
        };
        self.tree.0.znodes().keys().filter(open).count()
    }
}

#[derive(Debug, Clone, Copy)]
enum Fate {
    Answered,
    ReplyLost,
    RequestLost,
    /// Applied some time after its reply was given up.
    Late,
    NotSent,
}

#[derive(Debug, Clone)]
enum Step {
    Report(usize, Ending),
    Answer(Fate),
    ApplyLate,
    Cancel(usize),
    Lose(usize),
    DeleteAssignment(usize),
    DeleteTurn(usize),
    DropMinutes,
    Hold,
    Resume,
    Wake,
}

const JOBS: usize = 6;

fn endings() -> impl Strategy<Value = Ending> {
    prop_oneof![
        Just(Ending::Succeeded(result())),
        Just(Ending::Failed("no".into())),
        Just(Ending::Released),
        Just(Ending::Cancelled),
    ]
}

fn steps() -> impl Strategy<Value = Step> {
    let fates = prop_oneof![
        4 => Just(Fate::Answered),
        1 => Just(Fate::ReplyLost),
        1 => Just(Fate::RequestLost),
        1 => Just(Fate::Late),
        1 => Just(Fate::NotSent),
    ];
    prop_oneof![
        4 => (0..JOBS, endings()).prop_map(|(n, ending)| Step::Report(n, ending)),
        8 => fates.prop_map(Step::Answer),
        1 => Just(Step::ApplyLate),
        1 => (0..JOBS).prop_map(Step::Cancel),
        1 => (0..JOBS).prop_map(Step::Lose),
        1 => (0..JOBS).prop_map(Step::DeleteAssignment),
        1 => (0..JOBS).prop_map(Step::DeleteTurn),
        1 => Just(Step::DropMinutes),
        1 => Just(Step::Hold),
        1 => Just(Step::Resume),
        1 => Just(Step::Wake),
    ]
}

/// The handler created a sub-group and a beat wrote in the meantime; the executor knows neither write.
#[test]
fn concurrent_writes_to_the_assignment_are_carried_and_the_last_progress_stays() {
    let said = |what: &str| Some(Progress::default().with_message(None, what).unwrap());
    let mut world = World::new(1);
    let written = Assignment { spawned: true, progress: said("before"), ..assignment(1) };
    world.tree.0.put(&path::assignment(worker(), &job(0)), encode(&written), 2);
    let mut start = start(0);
    start.assignment.progress = said("last");
    let finished = Finished { start, ending: Ending::Succeeded(result()) };
    world.handle(Event::Report(AT, vec![(finished, 0)]));
    world.settle();
    let (record, _) = world.tree.record(0);
    assert!(record.is_terminal() && record.spawned, "{record:?}");
    assert_eq!(record.progress, said("last"));
    assert_eq!(world.tree.assignment(0), None);
}

/// S1, S13: while the worker hung, the job's record was removed after its retention and the id was reused by
/// another job, whose versions start from zero. That job waits elsewhere, or is in this worker's inbox.
#[test]
fn a_late_close_does_not_touch_a_new_job_with_the_same_id() {
    for (here, old) in [(false, true), (false, false), (true, true)] {
        let mut world = World::new(1);
        world.now = world.now + if old { MIN_RETENTION / 2 } else { Duration::ZERO };
        let (record, version) = world.tree.record(0);
        let another = JobRecord { token: uuid::Uuid::from_u128(77), ..record };
        world.tree.0.put(&path::record(&job(0)), encode(&another), version);
        if !here {
            world.tree.0.remove(&path::assignment(worker(), &job(0)));
        }
        let start = start(0);
        let finished = Finished { start, ending: Ending::Succeeded(result()) };
        world.handle(Event::Report(AT, vec![(finished, 0)]));
        world.settle();
        assert_eq!(world.settled, [(job(0), Settled::Zombie)]);
        assert_eq!(world.tree.record(0), (another, version), "here {here}, old {old}");
    }
}

/// The same for a close that could not be sent in time: the facts it is based on become old.
#[test]
fn a_close_that_waited_long_reads_the_record_before_it_is_sent() {
    let mut world = World::new(1);
    world.handle(Event::Hold);
    world.report([(0, Ending::Succeeded(result()))]);
    world.now = world.now + MIN_RETENTION / 2;
    world.handle(Event::Resume);
    assert!(matches!(&world.wire[..], [Effect::Read(closes)] if closes.len() == 1), "{:?}", world.wire);
    world.settle();
    assert_eq!(world.settled.len(), 1);
    assert!(matches!(world.settled[0].1, Settled::Closed(_)), "no other process closed the attempt");
}

/// S9: leader and worker may both write that the lease expired; a result is dropped.
#[test]
fn an_attempt_revoked_by_the_leader_counts_as_ours_only_for_an_expired_lease() {
    for (ending, ours) in [(Ending::LeaseExpired, true), (Ending::Succeeded(result()), false)] {
        let mut world = World::new(1);
        let (record, version) = world.tree.record(0);
        let attempt = Attempt { number: 1, worker: worker() };
        let (taken, next) = record.close(attempt, Ending::LeaseExpired, AT, 0);
        world.tree.commit(&txn::close(&job(0), worker(), version, Some(0), &taken, &next));
        world.report([(0, ending)]);
        world.settle();
        assert_eq!(world.settled.len(), 1);
        assert_eq!(world.settled[0].1 != Settled::Zombie, ours, "{:?}", world.settled);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// S2, S9: whatever is lost, late or rejected, each attempt is closed by exactly one write, and the reporter
    /// reports that write exactly once.
    #[test]
    fn every_attempt_is_closed_once_and_reported_as_written(steps in prop::collection::vec(steps(), 0..80)) {
        let mut world = World::new(JOBS);
        let (mut reported, mut turns) = ([false; JOBS], std::array::from_fn::<_, JOBS, _>(turn));
        for step in steps {
            match step {
                Step::Report(n, ending) => {
                    if !std::mem::replace(&mut reported[n], true) {
                        world.report([(n, ending)]);
                    }
                }
                Step::Answer(fate) => world.answer(fate),
                Step::ApplyLate => world.apply_late(),
                Step::Cancel(n) => world.tree.flag_cancel(n),
                Step::Lose(n) => world.tree.close_as_lost(n),
                Step::DeleteAssignment(n) => {
                    world.tree.0.remove(&path::assignment(worker(), &job(n)));
                }
                Step::DeleteTurn(n) => {
                    turns[n].take().iter().for_each(|turn| world.tree.0.remove(turn));
                }
                Step::DropMinutes => world.tree.remove_empty_minutes(),
                Step::Hold => world.handle(Event::Hold),
                Step::Resume => world.handle(Event::Resume),
                Step::Wake => world.handle(Event::Wake),
            }
        }
        world.settle();
        for (n, reported) in reported.into_iter().enumerate() {
            let said: Vec<Settled> =
                world.settled.iter().filter(|(id, _)| *id == job(n)).map(|(_, settled)| *settled).collect();
            let (record, version) = world.tree.record(n);
            if !reported {
                prop_assert!(said.is_empty());
                continue;
            }
            prop_assert_eq!(version, 6, "the attempt has one closing write");
            prop_assert_eq!(said.len(), 1, "{:?}", said);
            let how = record.last.unwrap().how;
            let as_written = match said[0] {
                Settled::Zombie => how == AttemptOutcome::Lost,
                Settled::Closed(closed) => closed.how == how && how != AttemptOutcome::Lost,
            };
            prop_assert!(as_written, "{:?} is stored, but {:?} was reported", how, said);
            prop_assert_eq!(world.places(n), usize::from(!record.is_terminal()), "the job is in exactly one place");
            if let Some(turn) = &turns[n] {
                prop_assert_eq!(world.tree.0.get(turn).is_some(), !record.is_terminal(), "a turn exists while its job is open");
            }
        }
    }
}

#[test]
fn a_success_wins_over_a_cancel_and_a_failure_does_not() {
    for (ending, closed_as) in [
        (Ending::Succeeded(result()), AttemptOutcome::Succeeded),
        (Ending::Failed("told to stop".into()), AttemptOutcome::Cancelled),
        (Ending::Released, AttemptOutcome::Cancelled),
    ] {
        let mut world = World::new(1);
        world.tree.flag_cancel(0);
        world.report([(0, ending)]);
        world.settle();
        assert_eq!(world.tree.record(0).0.last.unwrap().how, closed_as);
    }
}

/// S12: a rejected beat has read the cancel flag, and the handler failed before the executor received it. The close
/// has the current version of the assignment, so it is not rejected.
#[test]
fn an_attempt_whose_cancel_flag_a_beat_has_read_ends_as_cancelled() {
    for (ending, closed_as) in [
        (Ending::Succeeded(result()), AttemptOutcome::Succeeded),
        (Ending::Failed("no luck".into()), AttemptOutcome::Cancelled),
        (Ending::Snoozed(Duration::from_secs(1)), AttemptOutcome::Cancelled),
    ] {
        let mut world = World::new(1);
        world.tree.flag_cancel(0);
        let (assignment, assignment_version) = world.tree.assignment(0).unwrap();
        let start = Start { assignment, assignment_version, ..start(0) };
        world.handle(Event::Report(AT, vec![(Finished { start, ending }, 0)]));
        world.settle();
        assert_eq!(world.tree.record(0).0.last.unwrap().how, closed_as);
    }
}

/// S20: the process knows which of its sessions have expired, whatever the leader knew when it counted the losses.
#[test]
fn a_close_excuses_the_losses_of_the_same_process() {
    let id = |n| WorkerId::new(uuid::Uuid::from_u128(n));
    for ending in [Ending::Succeeded(result()), Ending::Failed("no luck".into())] {
        let mut world = World::new(1);
        world.machine = Reporter::new(worker(), vec![id(101), id(102)]);
        let mut start = start(0);
        start.record.losses = 3;
        start.record.lost_workers = vec![id(101), id(103), id(102)];
        world.handle(Event::Report(AT, vec![(Finished { start, ending }, 0)]));
        world.settle();
        let (record, _) = world.tree.record(0);
        assert_eq!((record.losses, record.excused, record.lost_workers), (1, 2, vec![id(103)]));
    }
}

#[test]
fn a_rejected_close_does_not_block_the_rest_of_its_batch() {
    let mut world = World::new(4);
    world.report([(0, Ending::Succeeded(result()))]);
    world.tree.close_as_lost(2);
    // These accumulate while the first is in flight.
    world.report((1..4).map(|n| (n, Ending::Succeeded(result()))));
    assert_eq!(world.wire.len(), 1);
    world.answer(Fate::Answered);
    world.answer(Fate::Answered);
    let second = world.wire.clone();
    assert!(
        matches!(&second[..], [Effect::Read(read), Effect::Commit(rest)] if read.len() == 1 && rest.len() == 2),
        "{second:?}"
    );
    world.settle();
    let zombies = world.settled.iter().filter(|(_, settled)| *settled == Settled::Zombie);
    assert_eq!((world.settled.len(), zombies.count()), (4, 1));
}

#[test]
fn an_existing_entry_blocks_the_close_and_is_reported() {
    let mut world = World::new(1);
    let released = JobRecord { attempts: 1, ..*start(0).record };
    let entry = path::ready_entry(&ReadyEntry::of_record(&job(0), &released));
    world.tree.0.make_parents(&entry);
    world.tree.0.put(&entry, Vec::new(), 0);
    world.report([(0, Ending::Released)]);
    world.settle();
    assert!(world.settled.is_empty() && world.refused > 1);
    world.tree.0.remove(&entry);
    world.settle();
    assert_eq!(world.settled.len(), 1);
}

#[test]
fn batches_are_bounded_by_jobs_and_bytes() {
    let mut world = World::new(0);
    let large = Payload::json(vec![b'1'; crate::budget::MAX_PAYLOAD_BYTES]).unwrap();
    world.report((0..10).map(|n| (n, Ending::Succeeded(large.clone()))));
    world.report((10..1_000).map(|n| (n, Ending::Succeeded(result()))));
    assert_eq!(world.wire.len(), WINDOW);
    for effect in &world.wire {
        let Effect::Commit(batch) = effect else { panic!("{effect:?}") };
        let bytes = batch.ops().map(Op::bytes).sum::<usize>();
        assert!(
            batch.len() <= BATCH && bytes <= crate::budget::MAX_TXN_BYTES,
            "{} jobs, {bytes} bytes",
            batch.len()
        );
    }
}

#[test]
fn a_close_without_a_reply_is_read_back_before_it_is_sent_again() {
    for fate in [Fate::ReplyLost, Fate::RequestLost] {
        let mut world = World::new(1);
        world.report([(0, Ending::Succeeded(result()))]);
        world.answer(fate);
        assert!(matches!(&world.wire[..], [Effect::Read(closes)] if closes.len() == 1), "{:?}", world.wire);
    }
}

#[test]
fn only_a_lost_reply_is_reported_as_resolved() {
    for (fate, resolved) in [(Fate::ReplyLost, vec![true]), (Fate::RequestLost, vec![false])] {
        let mut world = World::new(1);
        world.report([(0, Ending::Succeeded(result()))]);
        world.answer(fate);
        world.settle();
        assert_eq!((world.settled.len(), &world.resolved), (1, &resolved), "{fate:?}");
    }
    // The first write was rejected, because a client had set the cancel flag.
    let mut world = World::new(1);
    world.tree.flag_cancel(0);
    world.report([(0, Ending::Failed("no".into()))]);
    world.settle();
    assert_eq!((world.settled.len(), world.resolved.len()), (1, 0));
    // Another process closed the attempt: its write shows nothing about ours.
    for fate in [Fate::RequestLost, Fate::Answered] {
        let mut world = World::new(1);
        world.tree.close_as_lost(0);
        world.report([(0, Ending::Succeeded(result()))]);
        world.answer(fate);
        world.settle();
        assert_eq!((world.settled.len(), world.resolved.len()), (1, 0), "{fate:?}");
    }
}

#[test]
fn an_unsent_close_is_sent_again_after_a_delay() {
    let mut world = World::new(1);
    world.report([(0, Ending::Succeeded(result()))]);
    world.answer(Fate::NotSent);
    assert!(world.wire.is_empty(), "the session has not reported the problem yet");
    world.handle(Event::Wake);
    assert!(matches!(&world.wire[..], [Effect::Commit(_)]), "{:?}", world.wire);
}

#[test]
fn lost_closes_are_read_back_in_requests_of_bounded_size() {
    let mut world = World::new(0);
    world.report((0..1).map(|n| (n, Ending::Succeeded(result()))));
    world.report((1..=BATCH).map(|n| (n, Ending::Succeeded(result()))));
    world.answer(Fate::RequestLost);
    let commit = world.wire.iter().position(|effect| matches!(effect, Effect::Commit(_))).unwrap();
    let full = world.wire.remove(commit);
    world.wire = vec![full];
    world.answer(Fate::RequestLost);
    let closes = world.wire.iter().map(|effect| match effect {
        Effect::Read(closes) => closes.len(),
        other => panic!("{other:?}"),
    });
    assert_eq!(closes.collect::<Vec<_>>(), [MAX_READ_BATCH / 2; 2], "a record and an assignment for each");
}
