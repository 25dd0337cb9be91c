use std::time::Duration;

use proptest::prelude::*;

use super::super::Packed;
use super::super::fixture::{assignment, job, result, start};
use super::*;
use crate::segment::fixture::{id, segment};

const T: Millis = Millis(1_000);

fn handle(machine: &mut ExecutorPool, event: Event) -> Vec<Effect> {
    let mut out = Vec::new();
    machine.handle(T, event, &mut out);
    out
}

fn ended(n: usize, how: Run) -> Event {
    Event::Ended(vec![Ended { job: job(n), attempt: 1, how }])
}

fn cancel(n: usize, attempt: u32, version: i32) -> Event {
    let assignment = Assignment { cancel: true, ..assignment(attempt) };
    Event::Cancel { job: job(n), attempt, assignment, version }
}

fn running() -> ExecutorPool {
    let mut machine = ExecutorPool::new();
    assert_eq!(handle(&mut machine, Event::Start(vec![start(0)])), [Effect::WantSlot]);
    let launched = handle(&mut machine, Event::SlotGranted(WallMillis(0)));
    assert!(matches!(&launched[..], [Effect::Launch(launched)] if launched.job == job(0)), "{launched:?}");
    machine
}

fn settings(slots: Option<u32>, paused: &[&str]) -> Event {
    let paused = paused.iter().map(|kind| Kind::new(kind).unwrap()).collect();
    Event::Settings(WorkerSettings { slots, tags: None, paused_kinds: paused })
}

/// Returns the jobs that are reported, each with its ending.
fn reports(effects: &[Effect]) -> Vec<(JobId, Ending)> {
    let report = |effect: &Effect| match effect {
        Effect::Report(finished) => Some((finished.start.job.clone(), finished.ending.clone())),
        _ => None,
    };
    effects.iter().filter_map(report).collect()
}

/// S24
#[test]
fn attempts_of_a_paused_kind_are_handed_back_and_running_ones_continue() {
    let kind = start(0).record.kind;
    for excluded in [settings(None, &[kind.as_str()]), settings(Some(0), &[])] {
        let mut machine = running();
        handle(&mut machine, Event::Start(vec![start(1), start(2)]));
        let told = handle(&mut machine, excluded);
        assert_eq!(reports(&told), [(job(1), Ending::Released), (job(2), Ending::Released)]);
        assert_eq!(machine.running(), 1, "{told:?}");
        assert!(!told.iter().any(|effect| matches!(effect, Effect::Signal(..))), "{told:?}");
        let told = handle(&mut machine, Event::Start(vec![start(3)]));
        assert_eq!(told[0], Effect::NotServed, "the settings are read again");
        assert_eq!(reports(&told), [(job(3), Ending::Released)]);
        assert_eq!(handle(&mut machine, Event::SlotGranted(WallMillis(0))), [Effect::ReturnSlot]);
        let over = handle(&mut machine, ended(0, Run::Succeeded(result())));
        assert_eq!(reports(&over), [(job(0), Ending::Succeeded(result()))]);
        handle(&mut machine, settings(None, &[]));
        assert_eq!(handle(&mut machine, Event::Start(vec![start(4)])), [Effect::WantSlot]);
    }
}

#[test]
fn a_pause_of_another_kind_changes_nothing() {
    let mut machine = running();
    handle(&mut machine, Event::Start(vec![start(1)]));
    assert_eq!(handle(&mut machine, settings(Some(1), &["other"])), []);
}

/// S16
#[test]
fn a_job_that_expired_before_its_slot_is_ended_without_a_run_and_the_next_one_starts() {
    let expiring = |n, at| {
        let mut start = start(n);
        start.record.expires_at = Some(WallMillis(at));
        start
    };
    let mut machine = ExecutorPool::new();
    handle(&mut machine, Event::Start(vec![expiring(0, 9), expiring(1, 8), expiring(2, 10), expiring(3, 9)]));
    let launched = handle(&mut machine, Event::SlotGranted(WallMillis(10)));
    let told = launched.iter().map(|effect| match effect {
        Effect::Report(finished) => (finished.start.job.clone(), Some(&finished.ending)),
        Effect::Launch(start) => (start.job.clone(), None),
        Effect::WantSlot => (job(99), None),
        other => panic!("{other:?}"),
    });
    let overdue = Some(&Ending::Expired);
    assert_eq!(
        told.collect::<Vec<_>>(),
        [(job(0), overdue), (job(1), overdue), (job(2), None), (job(99), None)],
        "two expired jobs end, one starts in its last millisecond, and the fourth requests a slot"
    );
    let last = handle(&mut machine, Event::SlotGranted(WallMillis(10)));
    assert_eq!(reported(&last), overdue);
    assert_eq!(last.last(), Some(&Effect::ReturnSlot));
}

fn reported(effects: &[Effect]) -> Option<&Ending> {
    effects.iter().find_map(
        |effect| {
            if let Effect::Report(finished) = effect { Some(&finished.ending) } else { None }
        },
    )
}

#[test]
fn the_ending_depends_on_the_handlers_outcome_and_the_reason_to_stop() {
    let (cancel, lapsed) = (cancel(0, 1, 3), Event::Lapsed(job(0), 1));
    let (invalid, later) = (Run::Invalid("x".into()), Run::Deferred(Duration::from_secs(9)));
    let success = Ending::Succeeded(result());
    let failure = Run::Failed("x".into());
    let table = [
        (None, Run::Succeeded(result()), Some(success.clone())),
        (None, failure.clone(), Some(Ending::Failed("x".into()))),
        (None, Run::Aborted, Some(Ending::Failed("the handler was aborted".into()))),
        (Some(cancel.clone()), Run::Succeeded(result()), Some(success.clone())),
        (Some(cancel.clone()), failure.clone(), Some(Ending::Cancelled)),
        (None, Run::Lapsed, Some(Ending::Released)),
        (Some(cancel.clone()), Run::Aborted, Some(Ending::Cancelled)),
        (Some(cancel.clone()), Run::Lapsed, Some(Ending::Cancelled)),
        (Some(cancel.clone()), invalid.clone(), Some(Ending::Cancelled)),
        (Some(cancel), later.clone(), Some(Ending::Cancelled)),
        (None, invalid.clone(), Some(Ending::Invalid("x".into()))),
        (None, later.clone(), Some(Ending::Snoozed(Duration::from_secs(9)))),
        (Some(lapsed.clone()), Run::Succeeded(result()), Some(success.clone())),
        (Some(lapsed.clone()), failure.clone(), Some(Ending::LeaseExpired)),
        (Some(lapsed.clone()), Run::Aborted, Some(Ending::LeaseExpired)),
        (Some(lapsed.clone()), Run::Lapsed, Some(Ending::LeaseExpired)),
        (Some(lapsed.clone()), invalid.clone(), Some(Ending::Invalid("x".into()))),
        (Some(lapsed), later.clone(), Some(Ending::Snoozed(Duration::from_secs(9)))),
        (Some(Event::Drain(T)), Run::Succeeded(result()), Some(success)),
        (Some(Event::Drain(T)), invalid, Some(Ending::Invalid("x".into()))),
        (Some(Event::Drain(T)), later, Some(Ending::Snoozed(Duration::from_secs(9)))),
        (Some(Event::Drain(T)), failure.clone(), Some(Ending::Released)),
        (Some(Event::Drain(T)), Run::Aborted, Some(Ending::Released)),
        (Some(Event::Drain(T)), Run::Lapsed, Some(Ending::Released)),
        (Some(Event::Zombie(job(0), 1)), Run::Succeeded(result()), None),
        (Some(Event::Zombie(job(0), 1)), failure, None),
    ];
    for (stop, how, ending) in table {
        let mut machine = running();
        if let Some(stop) = stop.clone() {
            let effects = handle(&mut machine, stop.clone());
            let reason = match stop {
                Event::Cancel { .. } => Stop::Cancelled,
                Event::Lapsed(..) => Stop::LeaseExpired,
                Event::Zombie(..) => Stop::Closed,
                _ => Stop::HandedBack,
            };
            assert!(effects.contains(&Effect::Signal(job(0), 1, reason)), "{effects:?}");
            assert_eq!(handle(&mut machine, Event::GraceOver(job(0), 1)), [Effect::Abort(job(0), 1)]);
        }
        let effects = handle(&mut machine, ended(0, how.clone()));
        assert_eq!(reported(&effects), ending.as_ref(), "{stop:?} and {how:?}");
        assert_eq!(effects.contains(&Effect::DroppedZombie(job(0))), ending.is_none());
    }
}

#[test]
fn a_job_is_not_started_again_until_it_is_closed() {
    let mut machine = running();
    assert_eq!(handle(&mut machine, Event::Start(vec![start(0)])), []);
    handle(&mut machine, ended(0, Run::Aborted));
    assert_eq!(handle(&mut machine, Event::Start(vec![start(0)])), [], "the job is reported but not closed");
    assert_eq!(handle(&mut machine, Event::Closed(vec![job(0)])), [Effect::Closed(job(0))]);
    assert_eq!(handle(&mut machine, Event::Start(vec![start(0)])), [Effect::WantSlot]);
}

#[test]
fn an_event_about_another_attempt_affects_no_run() {
    let mut machine = running();
    let other = Ended { job: job(0), attempt: 2, how: Run::Succeeded(result()) };
    for event in [
        Event::Ended(vec![other]),
        Event::GraceOver(job(0), 2),
        Event::Zombie(job(0), 2),
        cancel(0, 2, 3),
        Event::Third(job(0), 2),
        Event::Lapsed(job(0), 2),
    ] {
        assert_eq!(handle(&mut machine, event.clone()), [], "{event:?}");
    }
    assert_eq!(machine.running(), 1);
}

#[test]
fn a_job_flagged_before_its_start_never_runs() {
    let mut flagged = start(0);
    flagged.assignment.cancel = true;
    let effects = handle(&mut ExecutorPool::new(), Event::Start(vec![flagged]));
    assert_eq!(reported(&effects), Some(&Ending::Cancelled));
    let mut machine = ExecutorPool::new();
    handle(&mut machine, Event::Start(vec![start(0)]));
    let effects = handle(&mut machine, cancel(0, 1, 1));
    assert_eq!(reported(&effects), Some(&Ending::Cancelled));
    assert_eq!(handle(&mut machine, Event::SlotGranted(WallMillis(0))), [Effect::ReturnSlot]);
}

#[test]
fn a_job_that_waits_for_a_slot_for_a_third_of_its_lease_is_handed_back() {
    let mut machine = ExecutorPool::new();
    handle(&mut machine, Event::Start(vec![start(0)]));
    let effects = handle(&mut machine, Event::Third(job(0), 1));
    assert_eq!(reported(&effects), Some(&Ending::Released));
    assert_eq!(handle(&mut machine, Event::Lapsed(job(0), 1)), [], "the attempt has ended");
    assert_eq!(handle(&mut running(), Event::Third(job(0), 1)), []);
}

#[test]
fn a_cancel_after_the_lease_expired_ends_as_cancelled() {
    let mut machine = running();
    assert_eq!(
        handle(&mut machine, Event::Lapsed(job(0), 1)),
        [Effect::Signal(job(0), 1, Stop::LeaseExpired)]
    );
    assert_eq!(handle(&mut machine, cancel(0, 1, 4)), [], "the handler was already signalled");
    let effects = handle(&mut machine, ended(0, Run::Aborted));
    assert_eq!(reported(&effects), Some(&Ending::Cancelled));
}

#[test]
fn nothing_starts_while_disconnected() {
    let mut machine = ExecutorPool::new();
    handle(&mut machine, Event::Start(vec![start(0)]));
    handle(&mut machine, Event::Hold);
    assert_eq!(handle(&mut machine, Event::SlotGranted(WallMillis(0))), [Effect::ReturnSlot]);
    assert_eq!(handle(&mut machine, Event::Resume), [Effect::WantSlot]);
}

#[test]
fn a_deleted_assignment_is_rechecked_only_while_its_job_is_open_here() {
    let mut machine = running();
    assert_eq!(handle(&mut machine, Event::Vanished(vec![job(0), job(9)])), [Effect::Recheck(job(0))]);
    handle(&mut machine, ended(0, Run::Succeeded(result())));
    assert_eq!(handle(&mut machine, Event::Vanished(vec![job(0)])), []);
}

#[test]
fn a_drain_is_over_when_every_attempt_is_closed() {
    let mut machine = running();
    handle(&mut machine, Event::Start(vec![start(1)]));
    let effects = handle(&mut machine, Event::Drain(T + Duration::from_secs(1)));
    assert_eq!(reported(&effects), Some(&Ending::Released), "a waiting attempt is handed back immediately");
    assert!(
        !effects.iter().any(|effect| matches!(effect, Effect::Signal(..))),
        "a running attempt has its grace period"
    );
    let effects = handle(&mut machine, Event::Start(vec![start(2)]));
    assert_eq!(reported(&effects), Some(&Ending::Released), "a later assignment is handed back, too: S18");
    assert!(!effects.contains(&Effect::WantSlot));
    handle(&mut machine, Event::Closed(vec![job(1), job(2)]));
    handle(&mut machine, ended(0, Run::Succeeded(result())));
    let effects = handle(&mut machine, Event::Closed(vec![job(0)]));
    assert_eq!(effects, [Effect::Closed(job(0)), Effect::Idle]);
}

/// Creates the start of job `n` of a kind.
fn of_kind(n: usize, kind: &str) -> Start {
    let mut start = start(n);
    start.record.kind = Kind::new(kind).unwrap();
    start
}

fn limited(kind: &str, limit: u32) -> ExecutorPool {
    ExecutorPool::with_limits(BTreeMap::from([(Kind::new(kind).unwrap(), limit)]))
}

/// Grants slots until the machine returns one or requests none, and returns the launched jobs.
fn grant_all(machine: &mut ExecutorPool, mut effects: Vec<Effect>) -> Vec<JobId> {
    let mut launched = Vec::new();
    while effects.contains(&Effect::WantSlot) {
        effects = handle(machine, Event::SlotGranted(WallMillis(0)));
        launched.extend(effects.iter().filter_map(|effect| match effect {
            Effect::Launch(start) => Some(start.job.clone()),
            _ => None,
        }));
    }
    launched
}

#[test]
fn a_kind_runs_no_more_jobs_than_its_limit_and_delays_no_other_kind() {
    let mut machine = limited("scarce", 2);
    let starts = (0..4).map(|n| of_kind(n, "scarce")).chain([of_kind(4, "sum"), of_kind(5, "sum")]);
    let effects = handle(&mut machine, Event::Start(starts.collect()));
    assert_eq!(grant_all(&mut machine, effects), [0, 1, 4, 5].map(job), "the limit, then the other kind");
    let effects = handle(&mut machine, ended(4, Run::Succeeded(result())));
    assert!(!effects.contains(&Effect::WantSlot), "the end of another kind frees no place: {effects:?}");
    let effects = handle(&mut machine, ended(1, Run::Failed("x".into())));
    assert_eq!(grant_all(&mut machine, effects), [job(2)], "in the order of assignment");
    let effects = handle(&mut machine, ended(0, Run::Aborted));
    assert_eq!(grant_all(&mut machine, effects), [job(3)]);
    assert_eq!(machine.running(), 3);
}

#[test]
fn a_job_that_waits_for_its_kinds_limit_is_cancelled_expires_and_is_handed_back_like_any_other() {
    let mut machine = limited("scarce", 1);
    let mut expiring = of_kind(3, "scarce");
    expiring.record.expires_at = Some(WallMillis(5));
    let starts = vec![of_kind(0, "scarce"), of_kind(1, "scarce"), of_kind(2, "scarce"), expiring];
    let effects = handle(&mut machine, Event::Start(starts));
    assert_eq!(grant_all(&mut machine, effects), [job(0)]);
    assert_eq!(reported(&handle(&mut machine, cancel(1, 1, 1))), Some(&Ending::Cancelled));
    let effects = handle(&mut machine, Event::Third(job(2), 1));
    assert_eq!(reported(&effects), Some(&Ending::Released), "another worker may run it");
    let effects = handle(&mut machine, Event::Start(vec![of_kind(4, "sum")]));
    assert_eq!(effects, [Effect::WantSlot]);
    let effects = handle(&mut machine, Event::SlotGranted(WallMillis(6)));
    assert_eq!(reported(&effects), Some(&Ending::Expired), "the limit does not hide that a job has expired");
    assert!(matches!(effects.last(), Some(Effect::Launch(start)) if start.job == job(4)), "{effects:?}");
}

#[test]
fn an_abandoned_handler_counts_until_its_code_returns() {
    let scarce = Kind::new("scarce").unwrap();
    let mut machine = limited("scarce", 1);
    let effects = handle(&mut machine, Event::Start(vec![of_kind(0, "scarce"), of_kind(1, "scarce")]));
    assert_eq!(grant_all(&mut machine, effects), [job(0)]);
    assert_eq!(handle(&mut machine, Event::Abandoned(BTreeMap::from([(scarce, 1)]))), []);
    let effects = handle(&mut machine, ended(0, Run::Aborted));
    assert_eq!(grant_all(&mut machine, effects), [], "its code still runs");
    let effects = handle(&mut machine, Event::Abandoned(BTreeMap::new()));
    assert_eq!(grant_all(&mut machine, effects), [job(1)]);
}

#[test]
fn a_slot_that_no_waiting_job_may_use_is_returned() {
    let mut machine = limited("scarce", 1);
    let effects = handle(&mut machine, Event::Start(vec![of_kind(0, "scarce"), of_kind(1, "sum")]));
    assert_eq!(effects, [Effect::WantSlot]);
    handle(&mut machine, Event::Abandoned(BTreeMap::from([(Kind::new("scarce").unwrap(), 1)])));
    handle(&mut machine, cancel(1, 1, 1));
    assert_eq!(handle(&mut machine, Event::SlotGranted(WallMillis(0))), [Effect::ReturnSlot]);
}

#[derive(Debug, Clone)]
enum Step {
    Start(usize),
    Slot,
    End(usize, Run),
    Cancel(usize),
    Third(usize),
    Lapse(usize),
    Zombie(usize),
    Close(usize),
    Hold,
    Resume,
    Drain,
}

fn steps() -> impl Strategy<Value = Step> {
    let ends = prop_oneof![
        Just(Run::Succeeded(result())),
        Just(Run::Failed("x".into())),
        Just(Run::Aborted),
        Just(Run::Lapsed)
    ];
    prop_oneof![
        6 => (0..5usize).prop_map(Step::Start),
        6 => Just(Step::Slot),
        6 => (0..5usize, ends).prop_map(|(n, how)| Step::End(n, how)),
        2 => (0..5usize).prop_map(Step::Cancel),
        1 => (0..5usize).prop_map(Step::Third),
        1 => (0..5usize).prop_map(Step::Lapse),
        1 => (0..5usize).prop_map(Step::Zombie),
        4 => (0..5usize).prop_map(Step::Close),
        1 => Just(Step::Hold),
        1 => Just(Step::Resume),
        1 => Just(Step::Drain),
    ]
}

proptest! {
    /// A job is here at most once: between its start and its close it is launched at most once and reported at most
    /// once. At most one slot request is open, and every granted slot is used or returned.
    #[test]
    fn a_job_is_launched_and_reported_at_most_once_per_life(
        steps in prop::collection::vec(steps(), 0..120),
        limit in prop::option::of(1..4_u32),
    ) {
        // All jobs are of one kind.
        let mut machine = limit.map_or_else(ExecutorPool::new, |limit| limited("sum", limit));
        let (mut launched, mut reports) = ([0; 5], [0; 5]);
        let (mut asked, mut running) = (0, 0);
        let number = |id: &JobId| id.as_str()["job-".len()..].parse::<usize>().unwrap();
        for step in steps {
            let event = match step {
                Step::Start(n) => Event::Start(vec![start(n)]),
                Step::Slot if asked == 0 => continue,
                Step::Slot => {
                    asked -= 1;
                    Event::SlotGranted(WallMillis(0))
                }
                Step::End(n, _) if launched[n] == 0 || reports[n] > 0 => continue,
                Step::End(n, how) => ended(n, how),
                Step::Cancel(n) => cancel(n, 1, 1),
                Step::Third(n) => Event::Third(job(n), 1),
                Step::Lapse(n) => Event::Lapsed(job(n), 1),
                Step::Zombie(n) => Event::Zombie(job(n), 1),
                Step::Close(n) if reports[n] == 0 => continue,
                Step::Close(n) => Event::Closed(vec![job(n)]),
                Step::Hold => Event::Hold,
                Step::Resume => Event::Resume,
                Step::Drain => Event::Drain(T),
            };
            for effect in handle(&mut machine, event) {
                match effect {
                    Effect::WantSlot => asked += 1,
                    Effect::Launch(start) => {
                        launched[number(&start.job)] += 1;
                        running += 1;
                    }
                    Effect::Report(finished) => {
                        let n = number(&finished.start.job);
                        reports[n] += 1;
                        running -= launched[n];
                    }
                    Effect::DroppedZombie(id) => running -= launched[number(&id)],
                    Effect::Closed(id) => (launched[number(&id)], reports[number(&id)]) = (0, 0),
                    Effect::ReturnSlot
                    | Effect::Signal(..)
                    | Effect::Abort(..)
                    | Effect::Recheck(_)
                    | Effect::WakeAt(_)
                    | Effect::NotServed
                    | Effect::Idle => {}
                }
            }
            prop_assert!(asked <= 1);
            prop_assert!(launched.iter().chain(&reports).all(|times| *times <= 1), "{:?} {:?}", launched, reports);
            prop_assert_eq!(machine.running(), running);
            prop_assert!(limit.is_none_or(|limit| running <= limit as usize));
        }
    }
}

/// S16
#[test]
fn a_moved_attempt_continues_after_the_expiry_of_its_job() {
    let mut start = start(0);
    (start.record.expires_at, start.assignment.moved_from) = (Some(WallMillis(9)), Some(0));
    let mut machine = ExecutorPool::new();
    handle(&mut machine, Event::Start(vec![start]));
    let launched = handle(&mut machine, Event::SlotGranted(WallMillis(10)));
    assert!(matches!(&launched[..], [Effect::Launch(_)]), "{launched:?}");
}

fn taken_over(n: usize) -> Start {
    let mut start = start(n);
    start.assignment.moved_from = Some(0);
    start
}

/// The process that runs the attempt has to hear how it ends.
#[test]
fn a_moved_attempt_is_launched_although_its_kind_is_paused_or_the_worker_drains() {
    let kind = start(0).record.kind;
    for event in [settings(None, &[kind.as_str()]), Event::Drain(Millis(9_000))] {
        for before in [true, false] {
            let mut machine = ExecutorPool::with_limits(BTreeMap::from([(kind.clone(), 0)]));
            let mut events = [event.clone(), Event::Start(vec![taken_over(0)])];
            if before {
                events.reverse();
            }
            let told = events.map(|event| handle(&mut machine, event)).concat();
            assert_eq!(reports(&told), [], "{told:?}");
            let launched = handle(&mut machine, Event::SlotGranted(WallMillis(0)));
            assert!(matches!(&launched[..], [Effect::Launch(_)]), "{launched:?}");
        }
    }
}

#[test]
fn a_moved_attempt_that_waits_is_handed_back_at_the_end_of_the_drain() {
    let mut machine = ExecutorPool::new();
    handle(&mut machine, Event::Start(vec![taken_over(0)]));
    let told = handle(&mut machine, Event::Drain(T));
    assert_eq!(reports(&told), [(job(0), Ending::Released)]);
}

/// S12
#[test]
fn a_moved_attempt_with_a_cancel_flag_is_launched_and_cancelled() {
    let flagged = |mut start: Start| {
        start.assignment.cancel = true;
        vec![start]
    };
    let assignment = flagged(taken_over(0)).remove(0).assignment;
    let flag = Event::Cancel { job: job(0), attempt: 1, assignment, version: 1 };
    for events in [vec![Event::Start(flagged(taken_over(0)))], vec![Event::Start(vec![taken_over(0)]), flag]]
    {
        let mut machine = ExecutorPool::new();
        for event in events {
            assert_eq!(reports(&handle(&mut machine, event)), []);
        }
        let launched = handle(&mut machine, Event::SlotGranted(WallMillis(0)));
        let stop = Effect::Signal(job(0), 1, Stop::Cancelled);
        assert!(matches!(&launched[..], [Effect::Launch(_), told] if *told == stop), "{launched:?}");
        let over = handle(&mut machine, ended(0, Run::Aborted));
        assert_eq!(reports(&over), [(job(0), Ending::Cancelled)]);
    }
}

/// A late event of an earlier attempt must not end the attempt that waits now.
#[test]
fn an_event_of_another_attempt_does_not_change_a_waiting_one() {
    let mut machine = running();
    handle(&mut machine, Event::Start(vec![start(1)]));
    for event in [cancel(1, 9, 3), Event::Third(job(1), 9), Event::Zombie(job(1), 9)] {
        assert_eq!(handle(&mut machine, event), []);
    }
    let closed = handle(&mut machine, Event::Zombie(job(1), 1));
    assert_eq!(closed, [Effect::Closed(job(1))], "closed by another process");
    let mut machine = running();
    handle(&mut machine, Event::Start(vec![start(1)]));
    assert_eq!(reports(&handle(&mut machine, Event::Third(job(1), 1))), [(job(1), Ending::Released)]);
}

#[test]
fn an_attempt_that_was_closed_by_another_process_is_not_attended() {
    let mut machine = running();
    assert_eq!((machine.running(), machine.attending()), (1, 1));
    assert_eq!(handle(&mut machine, Event::Zombie(job(0), 1)), [Effect::Signal(job(0), 1, Stop::Closed)]);
    assert_eq!((machine.running(), machine.attending()), (1, 0));
    handle(&mut machine, ended(0, Run::Succeeded(result())));
    assert_eq!((machine.running(), machine.attending()), (0, 0));
}

#[test]
fn the_waiting_members_of_a_segment_are_handed_back_together() {
    let packed = Packed { id: id(), segment: segment(), assignment: assignment(1), version: 0, asked: T };
    let members = packed.starts().collect::<Vec<_>>();
    let mut machine = ExecutorPool::new();
    handle(&mut machine, Event::Start(members.clone()));
    handle(&mut machine, Event::SlotGranted(WallMillis(0)));
    handle(&mut machine, Event::Start(vec![start(0)]));
    let told = handle(&mut machine, Event::HandBack(id()));
    let waiting = members[1..].iter().map(|start| (start.job.clone(), Ending::Released)).collect::<Vec<_>>();
    assert_eq!(reports(&told), waiting, "one runs, and the other job is no member");
    assert_eq!(handle(&mut machine, Event::Closed(vec![id().job()])), [Effect::Closed(id().job())]);
}
