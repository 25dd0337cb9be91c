//! Tests of the gate in one assigner with free slots. [`super::lane_model`] tests it with several leaders.
#![allow(clippy::wildcard_enum_match_arm, reason = "a test picks what it looks for")]

use std::collections::BTreeMap;
use uuid::Uuid;

use super::*;
use crate::budget::{MAX_LANE_LISTS, MAX_READ_BATCH};
use crate::change::Noted;
use crate::job::{JobRecord, Payload, Placement};
use crate::name::{Kind, Lane, NodeId};
use crate::path;
use crate::txn::Op;
use crate::worker::WorkerInfo;

pub(super) const WALL: WallMillis = WallMillis(1_000);

pub(super) fn job(n: usize) -> JobId {
    JobId::new(format!("j{n}")).unwrap()
}

pub(super) fn lane(n: u8) -> Lane {
    Lane::new(format!("lane-{n}")).unwrap()
}

pub(super) fn worker(n: u128) -> WorkerId {
    WorkerId::new(Uuid::from_u128(n))
}

pub(super) fn info() -> WorkerInfo {
    WorkerInfo {
        node: NodeId::new("n").unwrap(),
        host: "h".into(),
        kinds: vec![Kind::new("sum").unwrap()],
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

pub(super) fn record(lane: Option<Lane>) -> JobRecord {
    JobRecord {
        placement: Placement { lane, ..Placement::default() },
        ..JobRecord::new(Kind::new("sum").unwrap(), Payload::json(*b"1").unwrap(), Uuid::nil(), WallMillis(0))
    }
}

/// An assigner with a worker that has free slots, and queued jobs of one lane.
struct Bench(Assigner);

impl Bench {
    fn new() -> Self {
        let mut bench = Self(Assigner::new(7, OwnStrategies::default(), 1));
        bench.handle(Event::Settings(Some(Settings::default())));
        bench.handle(Event::Worker(worker(1), info(), 0));
        bench.handle(Event::InboxRead(worker(1), Some(InboxContents::default())));
        bench
    }

    fn handle(&mut self, event: Event) -> Vec<Effect> {
        let mut out = Vec::new();
        self.0.handle(Millis(0), WALL, event, &mut out);
        out
    }

    fn queue(&mut self, jobs: impl IntoIterator<Item = usize>) -> Vec<Effect> {
        let entry = record(Some(lane(1))).entry(0);
        self.handle(Event::Queued(jobs.into_iter().map(|n| Waiting::new(&job(n), entry.clone())).collect()))
    }

    fn listed(&mut self, ticket: u64, jobs: impl IntoIterator<Item = usize>) -> Vec<Effect> {
        let lists = Some(vec![jobs.into_iter().map(spot).collect()]);
        self.handle(Event::LanesListed { ticket, lanes: vec![lane(1)], lists })
    }

    /// Answers the read of these turns, which were created in the order of their numbers.
    fn read(&mut self, effects: &[Effect]) -> Vec<Effect> {
        let [Effect::ReadTurns { ticket, turns }] = effects else { panic!("{effects:?}") };
        let number = |job: &JobId| job.as_str()[1..].parse::<i64>().unwrap();
        let found = Some(turns.iter().map(|(_, (_, job))| Some((number(job), 0))).collect());
        self.handle(Event::TurnsRead { ticket: *ticket, turns: turns.clone(), found })
    }
}

fn spot(n: usize) -> Spot {
    (1, job(n))
}

fn assigned(effects: &[Effect]) -> Vec<JobId> {
    let jobs = effects.iter().filter_map(|effect| match effect {
        Effect::Commit(batch) => Some(batch.keys().map(|job| job.id.clone()).collect::<Vec<_>>()),
        _ => None,
    });
    jobs.flatten().collect()
}

#[test]
fn only_the_lowest_turn_of_a_lane_is_assigned_and_the_next_after_its_deletion() {
    let mut bench = Bench::new();
    assert_eq!(bench.queue([3, 2]), [Effect::ListLanes { ticket: 1, lanes: vec![lane(1)] }]);
    let read = bench.listed(1, [3, 2, 5]);
    let sent = bench.read(&read);
    assert_eq!(assigned(&sent), [job(2)]);
    let Some(Effect::Commit(batch)) = sent.into_iter().next() else { panic!("the batch is sent") };
    assert_eq!(assigned(&bench.handle(Event::Committed(batch, Outcome::Applied(())))), []);
    assert_eq!(assigned(&bench.handle(Event::TurnGone(lane(1), spot(2)))), [job(3)]);
}

#[test]
fn no_job_is_assigned_before_the_whole_list_is_read() {
    let mut bench = Bench::new();
    bench.queue(0..150);
    let first = bench.listed(1, 0..150);
    let second = bench.handle(Event::Queued(vec![]));
    assert_eq!((first.len(), second), (1, vec![]), "a partial read waits for the read in flight");
    let Effect::ReadTurns { ticket, turns } = first[0].clone() else { panic!("{first:?}") };
    assert_eq!(turns.len(), MAX_READ_BATCH);
    let rest =
        bench.handle(Event::TurnsRead { ticket, found: Some(vec![Some((200, 0)); turns.len()]), turns });
    assert_eq!(assigned(&rest), [], "the lowest turn may be in the second read");
    assert_eq!(assigned(&bench.read(&rest)).len(), 1);
}

#[test]
fn a_single_turn_in_a_lane_needs_no_read() {
    let mut bench = Bench::new();
    bench.queue([4]);
    let sent = bench.listed(1, [4]);
    assert_eq!(assigned(&sent), [job(4)]);
    let Some(Effect::Commit(batch)) = sent.first() else { panic!("{sent:?}") };
    let turn = Op::Check { path: path::turn(&record(Some(lane(1))).turn().unwrap(), &job(4)), version: 0 };
    assert_eq!(batch.ops().last(), Some(&turn), "the assignment checks the turn");
}

#[test]
fn a_lane_waits_for_a_head_that_is_not_in_the_queue() {
    let mut bench = Bench::new();
    bench.queue([2]);
    let read = bench.listed(1, [1, 2]);
    assert_eq!(bench.read(&read), [], "job 1 runs, is in a backoff, or is in quarantine");
    // It is queued again and still has the lowest turn.
    assert_eq!(assigned(&bench.queue([1])), [job(1)]);
}

#[test]
fn a_list_requested_before_a_turn_was_deleted_does_not_restore_it() {
    let mut bench = Bench::new();
    bench.queue([2]);
    assert_eq!(bench.handle(Event::TurnGone(lane(1), spot(1))), []);
    assert_eq!(assigned(&bench.listed(1, [1, 2])), [job(2)]);
}

#[test]
fn an_entry_without_a_listed_turn_is_looked_for_once_per_sweep() {
    let mut bench = Bench::new();
    bench.queue([1]);
    let at = Waiting::new(&job(1), record(Some(lane(1))).entry(0)).at;
    assert_eq!(bench.listed(1, []), [Effect::Resolve(vec![at.clone()])]);
    let there = Event::Resolved(Some(vec![(at.clone(), true)]));
    assert_eq!(bench.handle(there), [], "an operator deleted the turn");
    let swept = bench.handle(Event::Resume);
    assert!(swept.contains(&Effect::ListLanes { ticket: 2, lanes: vec![lane(1)] }), "{swept:?}");
    let sent = bench.listed(2, []);
    assert!(sent.contains(&Effect::Resolve(vec![at.clone()])), "{sent:?}");
    // The job was retried in the meantime and has another turn.
    let again = Waiting::new(&job(1), record(Some(lane(1))).reopen().entry(0));
    let asked = bench.handle(Event::Queued(vec![again]));
    assert_eq!(asked, [Effect::ListLanes { ticket: 3, lanes: vec![lane(1)] }]);
    assert_eq!(bench.handle(Event::Resolved(Some(vec![(at, false)]))), []);
    let lists = Some(vec![vec![(2, job(1))]]);
    assert_eq!(
        assigned(&bench.handle(Event::LanesListed { ticket: 3, lanes: vec![lane(1)], lists })),
        [job(1)]
    );
}

#[test]
fn known_turns_are_forgotten_when_a_new_watch_is_set() {
    let mut bench = Bench::new();
    bench.queue([1, 2]);
    let read = bench.listed(1, [1, 2]);
    let asked = bench.handle(Event::LanesWatched);
    assert_eq!(bench.read(&read), [], "an outdated answer");
    let Some(Effect::ListLanes { ticket, .. }) = asked.last() else { panic!("{asked:?}") };
    let read = bench.listed(*ticket, [1, 2]);
    assert_eq!(assigned(&bench.read(&read)), [job(1)]);
}

#[test]
fn a_long_lane_is_read_in_full_batches_within_the_window() {
    let mut bench = Bench::new();
    bench.queue([0]);
    let full =
        |effect: &Effect| matches!(effect, Effect::ReadTurns { turns, .. } if turns.len() == MAX_READ_BATCH);
    let read = bench.listed(1, 0..6 * MAX_READ_BATCH);
    assert_eq!((read.len(), read.iter().all(full)), (4, true));
}

#[test]
fn after_a_read_without_an_answer_no_lane_is_listed_until_the_session_is_back() {
    let mut bench = Bench::new();
    bench.queue([1, 2]);
    let read = bench.listed(1, [1, 2]);
    let [Effect::ReadTurns { ticket, turns }] = &read[..] else { panic!("{read:?}") };
    bench.handle(Event::TurnsRead { ticket: *ticket, turns: turns.clone(), found: None });
    let other = record(Some(lane(2))).entry(0);
    assert_eq!(bench.handle(Event::Queued(vec![Waiting::new(&job(9), other)])), []);
    let resumed = bench.handle(Event::Resume);
    assert!(
        resumed.iter().any(|effect| matches!(effect, Effect::ListLanes { lanes, .. } if lanes.len() == 2)),
        "{resumed:?}"
    );
}

/// The turns may have been deleted since.
#[test]
fn a_released_job_without_a_worker_passes_the_gate_again_when_a_new_watch_is_set() {
    let mut bench = Bench::new();
    bench.handle(Event::WorkerGone(worker(1)));
    bench.queue([1]);
    assert_eq!(bench.listed(1, [1]), []);
    assert_eq!(bench.0.gate.len(), 0);
    assert_eq!(bench.handle(Event::LanesWatched), [Effect::ListLanes { ticket: 2, lanes: vec![lane(1)] }]);
}

/// The abandoned list would make every entry a stray.
#[test]
fn a_list_that_was_requested_before_a_new_watch_does_not_count() {
    let mut bench = Bench::new();
    let lanes = || (0..10).map(lane);
    let jobs = lanes().zip(0..).map(|(lane, n)| Waiting::new(&job(n), record(Some(lane)).entry(0)));
    assert_eq!(MAX_LANE_LISTS, lanes().len());
    let asked = bench.handle(Event::Queued(jobs.collect()));
    let [Effect::ListLanes { ticket, lanes: listed }] = &asked[..] else { panic!("{asked:?}") };
    let again = bench.handle(Event::LanesWatched);
    assert!(again.iter().any(|effect| matches!(effect, Effect::ListLanes { .. })), "{again:?}");
    let lists = Some(vec![vec![]; listed.len()]);
    assert_eq!(bench.handle(Event::LanesListed { ticket: *ticket, lanes: listed.clone(), lists }), []);
}

#[test]
fn a_job_that_was_queued_after_a_list_was_requested_needs_no_turn_in_it() {
    let mut bench = Bench::new();
    bench.queue([1]);
    assert_eq!(bench.queue([2]), []);
    let out = bench.listed(1, [1]);
    assert_eq!(assigned(&out), [job(1)]);
    assert!(!out.iter().any(|effect| matches!(effect, Effect::Resolve(_))), "{out:?}");
}

#[test]
fn a_job_whose_turn_is_absent_waits_again_and_the_next_turn_is_the_lowest() {
    let mut bench = Bench::new();
    bench.queue([1, 2]);
    let read = bench.listed(1, [1, 2]);
    let sent = bench.read(&read);
    let Some(Effect::Commit(batch)) = sent.into_iter().next() else { panic!("the batch is sent") };
    let of_turn = |op: &Op| matches!(op, Op::Check { path, .. } if path.starts_with(path::LANES));
    let at = batch.ops().position(of_turn).expect("the batch checks the turn");
    let rejection = Rejection { at, reason: Reason::NoNode };
    let after = bench.handle(Event::Committed(batch, Outcome::Rejected(rejection)));
    assert_eq!((assigned(&after), bench.0.gate.len()), (vec![job(2)], 1));
}

/// Only an operator modifies a turn. The order of the lane is more important than its speed.
#[test]
fn a_job_with_a_modified_turn_is_not_overtaken_and_is_retried_once_per_sweep() {
    let mut bench = Bench::new();
    bench.queue([1, 2]);
    let read = bench.listed(1, [1, 2]);
    let mut sent = bench.read(&read);
    for ticket in 3..5 {
        let Some(Effect::Commit(batch)) = sent.pop() else { panic!("{sent:?}") };
        assert_eq!(batch.keys().map(|job| &job.id).collect::<Vec<_>>(), [&job(1)]);
        let of_turn = |op: &Op| matches!(op, Op::Check { path, .. } if path.starts_with(path::LANES));
        let at = batch.ops().position(of_turn).expect("the batch checks the turn");
        let rejection = Rejection { at, reason: Reason::BadVersion };
        let after = bench.handle(Event::Committed(batch, Outcome::Rejected(rejection)));
        assert_eq!(after, [], "neither the next job nor the same one again immediately");
        bench.handle(Event::Resume);
        sent = bench.listed(ticket, [1, 2]);
    }
}

#[test]
fn ten_thousand_jobs_of_one_lane_are_listed_once_and_read_once() {
    const JOBS: usize = 10_000;
    let mut bench = Bench::new();
    bench.queue(0..JOBS);
    let (mut lists, mut reads, mut order) = (1, 0, Vec::new());
    let mut left = bench.listed(1, 0..JOBS);
    while !left.is_empty() {
        let mut next = Vec::new();
        for effect in left {
            match effect {
                Effect::ReadTurns { .. } => {
                    reads += 1;
                    next.extend(bench.read(&[effect]));
                }
                Effect::ListLanes { .. } => lists += 1,
                Effect::Commit(batch) => {
                    let sent = batch.keys().map(|job| job.id.clone()).collect::<Vec<_>>();
                    next.extend(bench.handle(Event::Committed(batch, Outcome::Applied(()))));
                    for done in sent {
                        next.extend(bench.handle(Event::InboxChanged(worker(1))));
                        next.extend(bench.handle(Event::TurnGone(lane(1), (1, done.clone()))));
                        order.push(done);
                    }
                }
                Effect::ListInbox(id) => next.extend(bench.handle(Event::Inbox(id, Some(vec![])))),
                Effect::ReadInbox(_)
                | Effect::Resolve(_)
                | Effect::ReadSettings
                | Effect::Fallback(_)
                | Effect::Overdue(_)
                | Effect::FencedOut
                | Effect::Assigned { .. } => {}
            }
        }
        left = next;
    }
    assert_eq!((lists, reads), (1, JOBS / MAX_READ_BATCH));
    assert_eq!(order, (0..JOBS).map(job).collect::<Vec<_>>());
}

#[test]
fn ten_thousand_lanes_are_listed_ten_at_a_time() {
    const LANES: usize = 10_000;
    let mut bench = Bench::new();
    let entry = |n: usize| record(Some(Lane::new(format!("lane-{n}")).unwrap())).entry(0);
    let mut left = bench.handle(Event::Queued((0..LANES).map(|n| Waiting::new(&job(n), entry(n))).collect()));
    let mut lists = 0;
    while let Some(effect) = left.pop() {
        if let Effect::ListLanes { ticket, lanes } = effect {
            lists += 1;
            assert!(lanes.len() <= MAX_LANE_LISTS, "{}", lanes.len());
            let turn = |lane: &Lane| (1, JobId::new(lane.as_str().replace("lane-", "j")).unwrap());
            let found = Some(lanes.iter().map(|lane| vec![turn(lane)]).collect());
            left.extend(bench.handle(Event::LanesListed { ticket, lanes, lists: found }));
        }
    }
    assert_eq!(lists, LANES / MAX_LANE_LISTS);
    assert_eq!(bench.0.gate.len(), 0, "the gate has released all jobs");
}

#[test]
fn a_single_turn_of_a_job_that_does_not_wait_is_not_read() {
    let mut bench = Bench::new();
    bench.queue([1]);
    bench.queue([2]);
    bench.handle(Event::Unqueued(Waiting::new(&job(1), record(Some(lane(1))).entry(0)).at));
    assert_eq!(bench.listed(1, [1]), []);
}

#[test]
fn a_job_whose_entry_is_gone_leaves_the_gate() {
    let mut bench = Bench::new();
    bench.queue([1]);
    bench.handle(Event::Unqueued(Waiting::new(&job(1), record(Some(lane(1))).entry(0)).at));
    assert_eq!(bench.0.waiting(), 0);
}

#[test]
fn a_job_that_was_retried_while_it_was_assigned_waits_at_its_new_turn() {
    let mut bench = Bench::new();
    bench.queue([1]);
    let Some(Effect::Commit(batch)) = bench.listed(1, [1]).pop() else { panic!("the batch is sent") };
    let again = Waiting::new(&job(1), record(Some(lane(1))).reopen().entry(0));
    bench.handle(Event::Queued(vec![again]));
    let of_worker = Rejection { at: 1, reason: Reason::BadVersion };
    bench.handle(Event::Committed(batch, Outcome::Rejected(of_worker)));
    let lists = Some(vec![vec![(2, job(1))]]);
    bench.handle(Event::LanesListed { ticket: 2, lanes: vec![lane(1)], lists });
    assert_eq!((bench.0.gate.len(), bench.0.waiting()), (0, 1), "the gate has released it");
}
