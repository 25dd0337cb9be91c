use uuid::Uuid;

use super::*;
use crate::job::{AttemptOutcome, JobState, Payload, Placement, Policy, QueueEntry, Verdict};
use crate::segment::Chunks;
use crate::segment::fixture::{id, segment};

fn worker() -> WorkerId {
    WorkerId::new(Uuid::from_u128(1))
}

fn job(name: &str) -> JobId {
    JobId::new(name).unwrap()
}

fn record() -> JobRecord {
    JobRecord {
        policy: Policy { max_losses: 2, ..Policy::default() },
        ..JobRecord::new(
            Kind::new("sum").unwrap(),
            Payload::json(*b"{}").unwrap(),
            Uuid::from_u128(1),
            WallMillis(0),
        )
    }
}

fn orphan(name: &str, cancel: bool, record: JobRecord) -> Orphan {
    let isolation = record.isolation();
    let assignment = Assignment::new(record.attempts + 1, 1, WallMillis(0));
    let assignment = Assignment { cancel, isolation, ..assignment };
    Orphan { job: job(name), assignment: Stored::Value(assignment, 3), record: Stored::Value(record, 8) }
}

struct Bench(Recovery);

impl Bench {
    fn new() -> Self {
        let mut bench = Self(Recovery::new(7));
        assert_eq!(bench.handle(Event::Lost(worker())), [Effect::List(worker())]);
        bench
    }

    fn handle(&mut self, event: Event) -> Vec<Effect> {
        let mut out = Vec::new();
        self.0.handle(WallMillis(9), event, &mut out);
        out
    }

    fn listed(&mut self, names: &[&str]) -> Vec<Effect> {
        self.handle(Event::Listed(worker(), Ok(Some(names.iter().map(|name| job(name)).collect()))))
    }

    fn read(&mut self, orphans: Vec<Orphan>) -> Batch<Item> {
        let mut sent = self.handle(Event::Read(worker(), Ok(orphans)));
        match (sent.pop(), sent.as_slice()) {
            (Some(Effect::Commit(_, batch)), []) => batch,
            other => panic!("expected a commit, got {other:?}"),
        }
    }

    fn answer(&mut self, batch: Batch<Item>, outcome: Outcome<()>) -> Vec<Effect> {
        self.handle(Event::Committed(worker(), batch, outcome))
    }
}

fn rejected(at: usize, reason: Reason) -> Outcome<()> {
    Outcome::Rejected(Rejection { at, reason })
}

#[test]
fn a_lost_workers_job_is_closed_and_requeued_with_the_fence() {
    let mut bench = Bench::new();
    assert_eq!(bench.listed(&["a"]), [Effect::Read(worker(), vec![job("a")])]);
    let batch = bench.read(vec![orphan("a", false, record())]);
    let paths = batch.ops().map(Op::path).map(str::to_owned).collect::<Vec<_>>();
    let expected = [
        "/epoch".into(),
        path::record(&job("a")),
        path::assignment(worker(), &job("a")),
        "/delayed/0/1.2-a".to_owned(),
    ];
    assert_eq!(paths, expected);
    let ops = batch.ops().collect::<Vec<_>>();
    assert_eq!(ops[0], &Op::Check { path: "/epoch".into(), version: 7 });
    assert!(matches!(ops[1], Op::Set { version: 8, .. }), "{:?}", ops[1]);
    assert!(
        matches!(ops[2], Op::Delete { version: Some(3), .. }),
        "a concurrent cancel must be detected: {:?}",
        ops[2]
    );
    let after = bench.answer(batch, Outcome::Applied(()));
    let closed = ClosedAttempt { how: AttemptOutcome::Lost, dead: false };
    assert_eq!(
        after[0],
        Effect::Closed(Item {
            job: job("a"),
            outcome: OrphanOutcome::Closed { kind: record().kind, closed }
        })
    );
    assert_eq!(after[1], Effect::List(worker()));
}

/// The jobs of a worker that dies under load must not return together.
#[test]
fn lost_jobs_back_off_for_different_times() {
    let mut bench = Bench::new();
    let names = ["a", "b", "c", "d"];
    bench.listed(&names);
    let orphans = names.map(|name| orphan(name, false, record()));
    let batch = bench.read(orphans.to_vec());
    let waits = batch.ops().filter_map(|op| match op {
        Op::Create { data, .. } => Some(crate::wire::decode::<QueueEntry>(data).unwrap().not_before),
        Op::Check { .. } | Op::Set { .. } | Op::Delete { .. } => None,
    });
    let waits = waits.collect::<std::collections::BTreeSet<_>>();
    assert_eq!(waits.len(), names.len(), "{waits:?}");
    assert!(waits.iter().all(|at| (509..=1_009).contains(&at.0)), "{waits:?}");
}

/// S20: the process did not die. The order of the two events does not matter.
#[test]
fn the_jobs_of_a_process_that_registered_again_are_handed_back_without_a_loss() {
    for late in [false, true] {
        let mut bench = Bench(Recovery::new(7));
        let survived = || Event::Survived(worker());
        if !late {
            assert_eq!(bench.handle(survived()), []);
        }
        bench.handle(Event::Lost(worker()));
        if late {
            assert_eq!(bench.handle(survived()), []);
        }
        bench.listed(&["a"]);
        let batch = bench.read(vec![orphan("a", false, record())]);
        let Some(Op::Set { data, .. }) = batch.ops().nth(1) else { panic!("{batch:?}") };
        let closed = crate::wire::decode::<JobRecord>(data).unwrap();
        assert_eq!((closed.attempts, closed.losses), (1, 0));
        let entry = batch.ops().last().map(|op| path::parse(op.path()));
        assert!(matches!(entry, Some(path::Place::Ready(entry)) if *entry.job() == job("a")));
    }
}

#[test]
fn only_the_newest_former_ids_are_remembered() {
    let mut recovery = Recovery::new(7);
    let former = |n: usize| WorkerId::new(Uuid::from_u128(n as u128));
    for n in 0..=MOST_SURVIVED {
        recovery.handle(WallMillis(0), Event::Survived(former(n)), &mut Vec::new());
    }
    assert_eq!(recovery.survived.len(), MOST_SURVIVED);
    assert_eq!(recovery.survived.first(), Some(&former(1)));
}

#[test]
fn another_process_that_registered_again_does_not_excuse_a_loss() {
    let mut bench = Bench::new();
    bench.handle(Event::Survived(WorkerId::new(Uuid::from_u128(2))));
    bench.listed(&["a"]);
    let batch = bench.read(vec![orphan("a", false, record())]);
    let Some(Op::Set { data, .. }) = batch.ops().nth(1) else { panic!("{batch:?}") };
    assert_eq!(crate::wire::decode::<JobRecord>(data).unwrap().losses, 1);
}

#[test]
fn the_empty_inbox_is_removed_last() {
    let mut bench = Bench::new();
    let effects = bench.listed(&[]);
    let ops = [Op::Check { path: "/epoch".into(), version: 7 }, txn::remove_inbox(worker()).remove(0)];
    assert_eq!(effects, [Effect::Remove(worker(), ops.to_vec())]);
    let foreign = rejected(1, Reason::NotEmpty);
    assert_eq!(
        bench.handle(Event::Removed(worker(), foreign)),
        [],
        "a foreign child does not cause a retry loop"
    );
    assert_eq!(bench.handle(Event::Sweep), [Effect::List(worker())]);
    bench.listed(&[]);
    assert_eq!(bench.handle(Event::Removed(worker(), Outcome::Applied(()))), []);
    assert!(bench.0.is_idle());
}

#[test]
fn a_poison_job_is_dead_after_its_last_loss() {
    let mut bench = Bench::new();
    bench.listed(&["a"]);
    let batch = bench.read(vec![orphan("a", false, JobRecord { losses: 1, attempts: 1, ..record() })]);
    assert_eq!(batch.ops().count(), 3, "the job is not queued");
    let after = bench.answer(batch, Outcome::Applied(()));
    let closed = ClosedAttempt { how: AttemptOutcome::Lost, dead: true };
    assert_eq!(
        after[0],
        Effect::Closed(Item {
            job: job("a"),
            outcome: OrphanOutcome::Closed { kind: record().kind, closed }
        })
    );
}

#[test]
fn a_cancelled_job_of_a_dead_worker_ends_as_cancelled() {
    let mut bench = Bench::new();
    bench.listed(&["a"]);
    let batch = bench.read(vec![orphan("a", true, record())]);
    assert_eq!(batch.ops().count(), 3, "the job is not queued");
}

#[test]
fn a_changed_job_is_read_again_and_does_not_block_the_others() {
    let mut bench = Bench::new();
    bench.listed(&["a", "b"]);
    let batch = bench.read(vec![orphan("a", false, record()), orphan("b", false, record())]);
    let again = bench.answer(batch, rejected(1, Reason::BadVersion));
    let [Effect::Commit(_, rest)] = &again[..] else { panic!("{again:?}") };
    assert_eq!(rest.keys().map(|item| &item.job).collect::<Vec<_>>(), [&job("b")]);
    let after = bench.answer(rest.clone(), Outcome::Applied(()));
    assert_eq!(after.last(), Some(&Effect::List(worker())));
    assert_eq!(bench.listed(&["a"]), [Effect::Read(worker(), vec![job("a")])]);
}

#[test]
fn a_job_that_is_always_rejected_waits_for_the_sweep() {
    let mut bench = Bench::new();
    for _ in 0..STRIKES {
        bench.listed(&["a"]);
        let batch = bench.read(vec![orphan("a", false, record())]);
        assert_eq!(bench.answer(batch, rejected(3, Reason::NodeExists)), [Effect::List(worker())]);
    }
    assert_eq!(bench.listed(&["a"]), []);
    assert_eq!(bench.handle(Event::Sweep), [Effect::List(worker())]);
}

/// S20: the process of an earlier loss registered again after that loss was counted.
#[test]
fn a_loss_is_excused_by_the_next_close_if_the_process_is_alive() {
    let before = |id| WorkerId::new(Uuid::from_u128(id));
    for (survived, losses) in [(None, 3), (Some(before(5)), 2), (Some(before(6)), 3)] {
        let mut bench = Bench::new();
        if let Some(survived) = survived {
            assert_eq!(bench.handle(Event::Survived(survived)), []);
        }
        bench.listed(&["a"]);
        let lost_workers = vec![before(4), before(5)];
        let policy = Policy { max_losses: 4, ..Policy::default() };
        let batch =
            bench.read(vec![orphan("a", false, JobRecord { losses: 2, lost_workers, policy, ..record() })]);
        let Some(Op::Set { data, .. }) = batch.ops().nth(1) else { panic!("{batch:?}") };
        let closed = crate::wire::decode::<JobRecord>(data).unwrap();
        assert_eq!((closed.losses, closed.excused), (losses, 3 - losses), "{survived:?}");
        assert_eq!(closed.lost_workers.last(), Some(&worker()), "{survived:?}");
        assert_eq!(closed.last.map(|last| last.how), Some(AttemptOutcome::Lost));
    }
}

#[test]
fn an_assignment_with_a_wrong_attempt_is_handed_back_without_a_loss() {
    let mut bench = Bench::new();
    bench.listed(&["a"]);
    let strange = Assignment::new(9, 1, WallMillis(0));
    let orphan = Orphan { assignment: Stored::Value(strange, 3), ..orphan("a", false, record()) };
    let batch = bench.read(vec![orphan]);
    let Some(Op::Set { data, .. }) = batch.ops().nth(1) else { panic!("{batch:?}") };
    let closed = crate::wire::decode::<JobRecord>(data).unwrap();
    let how = closed.last.map(|last| last.how);
    assert_eq!((closed.attempts, closed.losses, how), (1, 0, Some(AttemptOutcome::Released)));
    let after = bench.answer(batch, Outcome::Applied(()));
    let closed = ClosedAttempt { how: AttemptOutcome::Released, dead: false };
    assert_eq!(
        after[0],
        Effect::Closed(Item {
            job: job("a"),
            outcome: OrphanOutcome::Closed { kind: record().kind, closed }
        })
    );
}

#[test]
fn an_unreadable_record_is_quarantined_and_does_not_block_the_others() {
    let mut bench = Bench::new();
    bench.listed(&["bad", "good"]);
    let bad = Orphan { record: Stored::Unreadable("corrupt".into()), ..orphan("bad", false, record()) };
    let batch = bench.read(vec![bad, orphan("good", false, record())]);
    assert!(batch.ops().any(|op| op.path() == path::quarantine(&job("bad"))));
    assert_eq!(batch.len(), 2);
    assert!(!batch.ops().any(|op| op.path() == path::record(&job("bad"))), "the record stays unchanged");
}

#[test]
fn a_terminal_or_deleted_job_only_leaves_the_inbox() {
    let mut bench = Bench::new();
    bench.listed(&["over", "gone", "left"]);
    let state = JobState::Terminal { verdict: Verdict::Cancelled, at: WallMillis(1) };
    let over = orphan("over", false, JobRecord { state, ..record() });
    let gone = Orphan { record: Stored::Absent, ..orphan("gone", false, record()) };
    let left = Orphan { assignment: Stored::Absent, ..orphan("left", false, record()) };
    let batch = bench.read(vec![over, gone, left]);
    let delete = |name| Op::Delete { path: path::assignment(worker(), &job(name)), version: None };
    assert_eq!(batch.ops().skip(1).cloned().collect::<Vec<_>>(), ["over", "gone"].map(delete));
}

#[test]
fn every_lost_answer_is_followed_by_a_list_at_the_sweep() {
    type Interrupt = fn(&mut Bench) -> Vec<Effect>;
    let interrupts: [(&str, Interrupt); 4] = [
        ("list", |bench| bench.handle(Event::Listed(worker(), Err(())))),
        ("read", |bench| {
            bench.listed(&["a"]);
            bench.handle(Event::Read(worker(), Err(())))
        }),
        ("commit", |bench| {
            bench.listed(&["a"]);
            let batch = bench.read(vec![orphan("a", false, record())]);
            bench.answer(batch, Outcome::Unknown)
        }),
        ("remove", |bench| {
            bench.listed(&[]);
            bench.handle(Event::Removed(worker(), Outcome::Unknown))
        }),
    ];
    for (what, interrupt) in interrupts {
        let mut bench = Bench::new();
        assert_eq!(interrupt(&mut bench), [], "{what}");
        assert_eq!(bench.handle(Event::Sweep), [Effect::List(worker())], "{what}");
        assert_eq!(bench.handle(Event::Sweep), [], "{what}: only one list is in flight");
    }
}

#[test]
fn a_rejected_epoch_ends_the_term() {
    let mut bench = Bench::new();
    bench.listed(&["a"]);
    let batch = bench.read(vec![orphan("a", false, record())]);
    assert_eq!(bench.answer(batch, rejected(0, Reason::BadVersion)), [Effect::FencedOut]);
}

#[test]
fn an_epoch_that_may_not_be_read_does_not_end_the_term() {
    let mut bench = Bench::new();
    bench.listed(&["a"]);
    let batch = bench.read(vec![orphan("a", false, record())]);
    assert_eq!(bench.answer(batch, rejected(0, Reason::NoAuth)), []);
    assert_eq!(bench.handle(Event::Sweep), [Effect::List(worker())]);
}

#[test]
fn each_rejection_of_the_removal_of_an_inbox_leads_to_its_next_step() {
    for (at, reason, out, left) in [
        (0, Reason::BadVersion, vec![Effect::FencedOut], 1),
        (0, Reason::NoNode, vec![Effect::FencedOut], 1),
        (0, Reason::NotSent, vec![], 1),
        (1, Reason::NoNode, vec![], 0),
        (1, Reason::NotEmpty, vec![], 1),
    ] {
        let mut bench = Bench::new();
        bench.listed(&[]);
        assert_eq!(
            bench.handle(Event::Removed(worker(), rejected(at, reason.clone()))),
            out,
            "{at} {reason}"
        );
        assert_eq!(bench.0.inboxes(), left, "{at} {reason}");
    }
}

fn laned() -> JobRecord {
    let lane = Some(crate::name::Lane::new("l").unwrap());
    JobRecord { losses: 1, placement: Placement { lane, ..Placement::default() }, ..record() }
}

#[test]
fn a_job_leaves_its_lane_only_with_its_last_allowed_loss() {
    for (losses, leaves) in [(0, false), (1, true)] {
        let mut bench = Bench::new();
        bench.listed(&["a"]);
        let batch = bench.read(vec![orphan("a", false, JobRecord { losses, ..laned() })]);
        assert_eq!(batch.ops().any(Op::leaves_turn), leaves, "after {losses} losses");
    }
}

#[test]
fn a_job_is_closed_without_its_turn_only_if_an_operator_deleted_it() {
    for (reason, at, leaves) in
        [(Reason::NoNode, 3, false), (Reason::BadVersion, 1, true), (Reason::NoNode, 2, true)]
    {
        let mut bench = Bench::new();
        bench.listed(&["a"]);
        let batch = bench.read(vec![orphan("a", false, laned())]);
        assert_eq!(bench.answer(batch, rejected(at, reason.clone())), [Effect::List(worker())]);
        bench.listed(&["a"]);
        let again = bench.read(vec![orphan("a", false, laned())]);
        assert_eq!(again.ops().any(Op::leaves_turn), leaves, "{reason} at {at}");
    }
}

fn dead(n: u128) -> WorkerId {
    WorkerId::new(Uuid::from_u128(n))
}

/// A rack with a hundred workers has died. One of them has far more jobs than the others.
#[test]
fn the_requests_for_all_dead_workers_are_bounded_and_full_inboxes_delay_no_short_one() {
    const WORKERS: u128 = 100;
    // As many full inboxes as requests in flight.
    let full: BTreeSet<_> = (0..WINDOW as u128).map(dead).collect();
    let mut bench = Bench(Recovery::new(7));
    let mut held: BTreeMap<WorkerId, BTreeSet<JobId>> = BTreeMap::new();
    let mut asked = VecDeque::new();
    for n in 0..WORKERS {
        let jobs = if full.contains(&dead(n)) { 4 * CHUNK } else { 1 };
        held.insert(dead(n), (0..jobs).map(|at| job(&format!("{n}-{at}"))).collect());
        asked.extend(bench.handle(Event::Lost(dead(n))));
    }
    let mut answers = 0;
    while let Some(effect) = asked.pop_front() {
        assert!(asked.len() < WINDOW, "{} requests are in flight", asked.len() + 1);
        answers += 1;
        let answer = match effect {
            Effect::List(worker) => Event::Listed(worker, Ok(Some(held[&worker].iter().cloned().collect()))),
            Effect::Read(worker, jobs) => {
                let orphans = jobs.iter().map(|job| orphan(job.as_str(), false, record()));
                Event::Read(worker, Ok(orphans.collect()))
            }
            Effect::Commit(worker, batch) => {
                for item in batch.keys() {
                    held.get_mut(&worker).unwrap().remove(&item.job);
                }
                Event::Committed(worker, batch, Outcome::Applied(()))
            }
            Effect::Remove(worker, _) => {
                assert!(held.remove(&worker).unwrap().is_empty());
                if full.contains(&worker) {
                    assert!(held.keys().all(|left| full.contains(left)), "the full inboxes are removed last");
                }
                Event::Removed(worker, Outcome::Applied(()))
            }
            effect => panic!("{effect:?}"),
        };
        let sent = bench.handle(answer).into_iter();
        asked.extend(sent.filter(|effect| !matches!(effect, Effect::Closed(_))));
    }
    assert!(bench.0.is_idle() && held.is_empty(), "after {answers} answers");
}

#[test]
fn inboxes_without_an_answer_do_not_occupy_the_window() {
    let mut bench = Bench(Recovery::new(7));
    let all = WINDOW as u128 + 3;
    (0..all).for_each(|n| drop(bench.handle(Event::Lost(dead(n)))));
    for n in 0..WINDOW as u128 {
        let sent = bench.handle(Event::Listed(dead(n), Err(())));
        assert_eq!(sent.len(), usize::from(n < 3), "the next inbox is listed");
    }
    assert_eq!(bench.handle(Event::Sweep).len(), WINDOW - 3, "the three that were queued are still listed");
}

#[test]
fn the_inboxes_that_need_recovery_are_counted() {
    let mut bench = Bench::new();
    let second = WorkerId::new(Uuid::from_u128(2));
    bench.handle(Event::Lost(second));
    assert_eq!((bench.0.inboxes(), bench.0.is_idle()), (2, false));
    assert_eq!(Recovery::new(7).inboxes(), 0);
    assert!(Recovery::new(7).is_idle());
}

#[test]
fn a_batch_that_was_not_sent_is_read_again_after_the_resync() {
    for at in [0, 1] {
        let mut bench = Bench::new();
        bench.listed(&["a"]);
        let batch = bench.read(vec![orphan("a", false, record())]);
        assert_eq!(bench.answer(batch, rejected(at, Reason::NotSent)), []);
        assert_eq!(bench.0.inboxes(), 1);
    }
}

/// After the extraction the members are jobs of the inbox.
#[test]
fn the_members_of_a_segment_are_extracted_before_they_are_recovered() {
    let mut bench = Bench::new();
    let segment_job = id().job().to_string();
    assert_eq!(
        bench.listed(&["a", &segment_job, "b"]),
        [Effect::Read(worker(), vec![job("a")])],
        "a segment is read alone"
    );
    let batch = bench.read(vec![orphan("a", false, record())]);
    let after = bench.answer(batch, Outcome::Applied(()));
    assert_eq!(after[1..], [Effect::ReadSegment(worker(), id())]);
    let found = InboxSegment {
        assignment: Stored::Value(Assignment::new(1, 1, WallMillis(0)), 3),
        segment: Stored::Value(segment(), 0),
        chunks: Chunks::of_names(["s1"]),
    };
    let mut sent = bench.handle(Event::SegmentRead(worker(), id(), Ok(Box::new(found))));
    let Some(Effect::Commit(_, batch)) = sent.pop() else { panic!("it is extracted") };
    assert_eq!(batch.ops().next(), Some(&txn::fence(7)));
    let after = bench.answer(batch, Outcome::Applied(()));
    let extracted = Item { job: id().job(), outcome: OrphanOutcome::Extracted(3) };
    assert_eq!(after, [Effect::Closed(extracted), Effect::Read(worker(), vec![job("b")])]);
}

#[test]
fn a_segment_that_cannot_be_decoded_is_moved_to_the_quarantine() {
    let mut bench = Bench::new();
    assert_eq!(bench.listed(&[id().job().as_str()]), [Effect::ReadSegment(worker(), id())]);
    let found = InboxSegment {
        assignment: Stored::Value(Assignment::new(1, 1, WallMillis(0)), 3),
        segment: Stored::Unreadable("newer".to_owned()),
        chunks: Chunks::default(),
    };
    let sent = bench.handle(Event::SegmentRead(worker(), id(), Ok(Box::new(found))));
    let [Effect::Commit(_, batch)] = &sent[..] else { panic!("{sent:?}") };
    let paths = batch.ops().map(Op::path).collect::<Vec<_>>();
    assert!(paths.contains(&path::quarantine(&id().job()).as_str()), "{paths:?}");
}
