use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::name::WorkerId;

fn job(max_attempts: u32, max_losses: u32) -> JobRecord {
    let (kind, payload) = (Kind::new("sum").unwrap(), Payload::json(*b"{}").unwrap());
    JobRecord {
        policy: Policy { max_attempts, max_losses, ..Policy::default() },
        ..JobRecord::new(kind, payload, Uuid::from_u128(1), WallMillis(1_000))
    }
}

fn attempt(number: u32) -> Attempt {
    Attempt { number, worker: WorkerId::new(Uuid::from_u128(2)) }
}

const NOW: WallMillis = WallMillis(5_000);

/// Only a sampled trace is copied into the entry: the leader records no spans of the others.
#[test]
fn every_attempt_and_generation_is_part_of_the_submissions_trace() {
    let traced = |flags| {
        let context = TraceContext::new([1; 16], [2; 8], flags).unwrap();
        (context, JobRecord { trace: Some(context), ..job(9, 9) })
    };
    let (context, record) = traced(1);
    assert_eq!(record.entry(0).trace, Some(context));
    let (lost, next) = record.close(attempt(1), Ending::Lost, NOW, 0);
    assert_eq!((next, lost.entry(1).trace), (Next::Delay(lost.delay().unwrap()), Some(context)));
    assert_eq!(lost.cancel(NOW).reopen().trace, Some(context));
    let (context, record) = traced(0);
    assert_eq!((record.trace, record.entry(0).trace), (Some(context), None));
}

#[test]
fn a_failure_waits_out_its_backoff_and_keeps_its_error() {
    let (job, next) = job(2, 1).close(attempt(1), Ending::Failed("boom".into()), NOW, 0);
    let JobState::Open { not_before: Some(until) } = job.state else { panic!("{job:?}") };
    assert_eq!(until.since(NOW), Duration::from_millis(500));
    assert_eq!(next, Next::Delay(Delay { minute: until.minute(), generation: 1, attempt: 2 }));
    assert_eq!((job.entry(1).delay(), job.entry(1).not_before), (job.delay().unwrap(), until));
    assert_eq!(job.last_error.as_deref(), Some("boom"));
}

#[test]
fn only_a_delayed_job_has_a_delayed_entry() {
    let delayed = |at| JobRecord { state: JobState::Open { not_before: Some(WallMillis(at)) }, ..job(1, 1) };
    let minute = |job: JobRecord| job.delay().map(|delay| delay.minute);
    assert_eq!(minute(job(1, 1)), None);
    assert_eq!((minute(delayed(119_999)), minute(delayed(120_000))), (Some(1), Some(2)));
    assert_eq!(minute(delayed(120_000).cancel(NOW)), None);
}

#[test]
fn the_last_failure_makes_the_job_dead() {
    let (job, _) = job(2, 9).close(attempt(1), Ending::Failed("one".into()), NOW, 0);
    let (job, next) = job.close(attempt(2), Ending::Failed("two".into()), NOW, 0);
    assert_eq!(next, Next::Terminal);
    assert_eq!(job.state, JobState::Terminal { verdict: Verdict::Dead, at: NOW });
    assert_eq!(job.last_error.as_deref(), Some("two"));
}

#[test]
fn losses_are_counted_apart_from_failures_and_kill_a_poison_job() {
    let (job, _) = job(2, 2).close(attempt(1), Ending::Failed("one".into()), NOW, 0);
    let (job, next) = job.close(attempt(2), Ending::Lost, NOW, 0);
    assert_eq!((next, job.entry(2).attempt), (Next::Delay(job.delay().unwrap()), 3));
    let (job, next) = job.close(attempt(3), Ending::Lost, NOW, 0);
    assert_eq!(next, Next::Terminal);
    assert_eq!((job.failures, job.losses), (1, 2));
    assert!(job.last_error.unwrap().starts_with("attempt 3 lost its worker"));
}

/// S20
#[test]
fn losses_back_off_and_isolate_the_job_until_it_is_opened_again() {
    let mut record = job(9, 4);
    for (n, (least, isolation)) in
        (1..).zip([(500, Isolation::Apart), (1_000, Isolation::Alone), (2_000, Isolation::Alone)])
    {
        let (lost, next) = record.close(attempt(n), Ending::Lost, NOW, 0);
        assert_eq!(Some(next), lost.delay().map(Next::Delay), "loss {n}");
        let entry = lost.entry(1);
        assert_eq!(entry.not_before.since(NOW), Duration::from_millis(least), "loss {n}");
        assert_eq!(entry.isolation, isolation, "loss {n}");
        record = lost;
    }
    let (record, _) = record.close(attempt(4), Ending::Failed("boom".into()), NOW, 0);
    assert_eq!(record.entry(4).isolation, Isolation::Alone, "a failure does not end the isolation");
    assert_eq!(record.cancel(NOW).reopen().entry(5).isolation, Isolation::Shared);
}

/// S20: a leader that missed events may know an entry of an earlier generation with the same attempt number.
#[test]
fn an_assignment_with_another_isolation_does_not_agree() {
    let (record, _) = job(9, 3).close(attempt(1), Ending::Lost, NOW, 0);
    for (number, isolation, agrees) in
        [(2, Isolation::Apart, true), (2, Isolation::Shared, false), (1, Isolation::Apart, false)]
    {
        let assignment = Assignment { isolation, ..Assignment::new(number, 1, NOW) };
        assert_eq!(assignment.agrees(&record), agrees, "{number}, {isolation:?}");
    }
}

#[test]
fn a_hand_back_is_neither_a_failure_nor_a_loss() {
    let (job, next) = job(1, 1).close(attempt(1), Ending::Released, NOW, 0);
    assert_eq!((job.failures, job.losses, job.attempts), (0, 0, 1));
    assert_eq!((next, job.entry(1).attempt), (Next::Queue, 2));
}

#[test]
fn an_invalid_job_is_dead_immediately_with_the_reason() {
    let (job, next) = job(9, 9).close(attempt(1), Ending::Invalid("no such account".into()), NOW, 0);
    assert_eq!((next, job.failures, job.losses), (Next::Terminal, 0, 0));
    assert_eq!(job.state, JobState::Terminal { verdict: Verdict::Dead, at: NOW });
    assert_eq!(job.last_error.as_deref(), Some("no such account"));
}

#[test]
fn a_snoozed_job_is_delayed_without_a_failure_or_loss() {
    let wait = Duration::from_secs(90);
    let (job, next) = job(1, 1).close(attempt(1), Ending::Snoozed(wait), NOW, 0);
    assert_eq!((job.failures, job.losses, job.attempts), (0, 0, 1));
    assert_eq!((next, job.entry(1).not_before), (Next::Delay(job.delay().unwrap()), NOW + wait));
}

#[test]
fn a_snooze_is_clamped_to_its_bounds() {
    for (asked, waits) in [(Duration::ZERO, MIN_DEFERRAL), (Duration::MAX, MAX_WAIT)] {
        let (deferred, _) = job(1, 1).close(attempt(1), Ending::Snoozed(asked), NOW, 0);
        assert_eq!(deferred.state, JobState::Open { not_before: Some(NOW + waits) });
    }
}

#[test]
fn the_error_of_an_expired_job_contains_the_time_as_rfc3339() {
    let expires = JobRecord { expires_at: Some(WallMillis(1_795_226_400_250)), ..job(1, 1) };
    let error = expires.expire(NOW).last_error.unwrap();
    assert_eq!(error, "not started before it expired, at 2026-11-21T02:00:00.250Z");
}

#[test]
fn an_expired_lease_counts_as_a_loss() {
    let (job, next) = job(1, 2).close(attempt(1), Ending::LeaseExpired, NOW, 0);
    assert_eq!((next, job.entry(1).attempt), (Next::Delay(job.delay().unwrap()), 2));
    let (job, next) = job.close(attempt(2), Ending::LeaseExpired, NOW, 0);
    assert_eq!((next, job.failures, job.losses), (Next::Terminal, 0, 2));
    assert!(job.last_error.unwrap().starts_with("the lease of attempt 2 on worker"));
}

#[test]
fn an_expired_job_is_dead_and_its_retry_does_not_expire() {
    let overdue = JobRecord { expires_at: Some(WallMillis(4_999)), ..job(9, 9) };
    assert!(overdue.is_overdue(NOW) && !overdue.is_overdue(WallMillis(4_999)));
    let expired = overdue.clone().expire(NOW);
    let (closed, next) = overdue.close(attempt(1), Ending::Expired, NOW, 0);
    assert_eq!(next, Next::Terminal);
    assert_eq!(closed.state, expired.state);
    assert_eq!(closed.last_error, expired.last_error);
    assert!(!closed.reopen().is_overdue(NOW));
}

#[test]
fn progress_is_carried_into_the_record_and_an_attempt_without_progress_keeps_it() {
    let said = Progress::default().with_checkpoint(*b"7").unwrap();
    let left = Assignment { progress: Some(said.clone()), spawned: true, ..Assignment::new(1, 1, NOW) };
    let record = job(9, 9).carry(&left).carry(&Assignment::new(2, 1, NOW));
    assert_eq!((record.progress, record.spawned), (Some(said), true));
}

#[test]
fn a_long_error_is_cut_at_a_character_boundary() {
    // The bound is between the two bytes of a character.
    let error = format!("x{}", "é".repeat(MAX_ERROR_BYTES));
    let (job, _) = job(1, 1).close(attempt(1), Ending::Failed(error.clone()), NOW, 0);
    assert_eq!(job.last_error.as_deref(), Some(&error[..MAX_ERROR_BYTES - 1]));
}

/// S9: a worker may get a job again, after a hand-back or a failure.
#[test]
fn was_closed_by_matches_attempt_number_and_worker() {
    let (closed, _) = job(9, 9).close(attempt(1), Ending::Released, NOW, 0);
    assert!(closed.was_closed_by(attempt(1)));
    assert!(!closed.was_closed_by(attempt(2)), "the same worker, another attempt");
    let other = Attempt { worker: WorkerId::new(Uuid::from_u128(3)), ..attempt(1) };
    assert!(!closed.was_closed_by(other), "the same number, another worker");
}

/// S11
#[test]
fn the_same_submission_is_defined_by_kind_and_payload_only() {
    let again = JobRecord { token: Uuid::from_u128(2), submitted_at: NOW, ..job(9, 9) };
    assert!(job(1, 1).is_same_submission(&again));
    let other_kind = JobRecord { kind: Kind::new("echo").unwrap(), ..job(1, 1) };
    assert!(!job(1, 1).is_same_submission(&other_kind));
    let other_payload = JobRecord { payload: Payload::json(*b"[]").unwrap(), ..job(1, 1) };
    assert!(!job(1, 1).is_same_submission(&other_payload));
}

fn endings() -> impl Strategy<Value = Ending> {
    prop_oneof![
        Just(Ending::Failed("x".into())),
        Just(Ending::Lost),
        Just(Ending::Released),
        Just(Ending::Cancelled),
        Just(Ending::Invalid("x".into())),
        Just(Ending::Snoozed(Duration::from_secs(1))),
        Just(Ending::LeaseExpired),
        Just(Ending::Expired),
        Just(Ending::Succeeded(Payload::json(*b"1").unwrap())),
    ]
}

proptest! {
    /// S2, S9: attempts run 1..n without a gap, bounds hold, and a terminal record stays terminal.
    #[test]
    fn any_history_keeps_the_bounds(endings in prop::collection::vec(endings(), 1..40), random: u64) {
        let mut record = job(3, 2);
        for (n, ending) in (1..).zip(endings) {
            prop_assert_eq!(record.entry(0).attempt, n);
            let (closed, next) = record.close(attempt(n), ending, NOW, random);
            prop_assert!(closed.failures <= 3 && closed.losses <= 2);
            prop_assert_eq!(closed.is_terminal(), next == Next::Terminal);
            prop_assert!(closed.was_closed_by(attempt(n)));
            record = closed;
            if record.is_terminal() {
                break;
            }
        }
    }
}
