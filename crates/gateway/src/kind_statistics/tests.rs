use std::sync::Arc;

use bellwether::JobId;
use bellwether::testing::views;

use super::*;

fn ended(kind: &str, state: State, run_time: Option<u64>) -> Notification {
    let (job, kind) = (JobId::new("a").unwrap(), Some(Kind::new(kind).unwrap()));
    let run_time = run_time.map(Duration::from_millis);
    let mut event = views::event(job, kind, state);
    event.run_time = run_time;
    Notification::Event(Arc::new(event))
}

fn of(report: &Report, kind: &str) -> OfKind {
    report.kinds.get(&Kind::new(kind).unwrap()).copied().unwrap_or_default()
}

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn ends_are_counted_by_kind_and_run_times_are_ranked() {
    let (mut counts, start) = (Counts::default(), Instant::now());
    counts.begin(start);
    for run in 1..=200 {
        counts.count(start, &ended("sum", State::Succeeded, Some(run)));
    }
    counts.count(start, &ended("sum", State::Dead, None));
    counts.count(start, &ended("mail", State::Cancelled, None));
    counts.count(start, &ended("mail", State::Running, None));
    counts.observed(start + 4 * SECOND);
    let report = counts.report(start + 4 * SECOND);
    assert_eq!((report.observed, report.incomplete), (4 * SECOND, false));
    assert_eq!(of(&report, "sum").ends, Ends { succeeded: 200, dead: 1, cancelled: 0 });
    let (p50, p99) = (Duration::from_millis(100), Duration::from_millis(198));
    assert_eq!(of(&report, "sum").run_time, Some(RunTime { p50, p99, jobs: 200 }));
    assert_eq!(
        of(&report, "mail"),
        OfKind { ends: Ends { cancelled: 1, ..Ends::default() }, run_time: None }
    );
}

#[test]
fn deaths_are_counted_only_without_a_break() {
    let statistics = KindStatistics::default();
    assert_eq!(statistics.deaths(), None);
    assert!(statistics.claim() && !statistics.claim());
    let before = statistics.deaths().unwrap();
    statistics.locked().counts.count(Instant::now(), &ended("sum", State::Dead, None));
    statistics.locked().counts.count(Instant::now(), &ended("sum", State::Succeeded, Some(1)));
    assert_eq!(statistics.deaths().unwrap().since(before), Some(1));
    assert!(!statistics.give_up(|| true), "it has a follower");
    assert!(statistics.give_up(|| false));
    assert_eq!(statistics.deaths(), None);
    assert!(statistics.claim());
    assert_eq!(statistics.deaths().unwrap().since(before), None, "some may have died in between");
}

#[test]
fn a_quiet_namespace_is_counted_without_followers() {
    let statistics = KindStatistics::default();
    statistics.set_quiet(true);
    assert!(statistics.claim());
    assert!(!statistics.give_up(|| false));
    statistics.set_quiet(false);
    assert!(!statistics.give_up(|| true), "it has a follower");
    assert!(statistics.give_up(|| false));
    statistics.set_quiet(true);
    assert!(statistics.claim());
    statistics.end();
    assert_eq!(statistics.deaths(), None, "the client has ended");
}

#[test]
fn a_namespace_is_quiet_by_its_rates_or_else_by_its_open_jobs() {
    let quiet = |rates: [Option<f64>; 2], open| is_quiet(rates.into_iter(), open);
    assert!(quiet([Some(100.0), Some(0.0)], 50_000), "a backlog that does not move");
    assert!(!quiet([Some(0.0), Some(100.1)], 0) && !quiet([Some(100.1), Some(0.0)], 0));
    assert!(quiet([None, None], 1_000) && !quiet([None, None], 1_001), "after the start");
    assert!(!quiet([Some(1.0), None], 1_001));
}

#[test]
fn time_without_followers_is_not_observed() {
    let (mut counts, start) = (Counts::default(), Instant::now());
    counts.begin(start);
    counts.observed(start + 5 * SECOND);
    counts.begin(start + 100 * SECOND);
    counts.observed(start + 107 * SECOND);
    assert_eq!(counts.report(start + 107 * SECOND).observed, 12 * SECOND);
}

#[test]
fn counts_and_run_times_are_forgotten() {
    let (mut counts, start) = (Counts::default(), Instant::now());
    counts.begin(start);
    counts.count(start, &ended("sum", State::Succeeded, Some(1)));
    let later = start + WINDOW + 2 * SLOT;
    let report = counts.report(later);
    assert_eq!((report.observed, of(&report, "sum").ends), (Duration::ZERO, Ends::default()));
    assert!(of(&report, "sum").run_time.is_some());
    assert_eq!(counts.report(start + RUNS_WITHIN + SECOND).kinds.len(), 0);
}

#[test]
fn memory_is_bounded_and_what_is_left_out_is_reported() {
    let (mut counts, start) = (Counts::default(), Instant::now());
    counts.begin(start);
    for kind in 0..MAX_KINDS {
        counts.count(start, &ended(&format!("kind-{kind}"), State::Succeeded, Some(1)));
    }
    assert!(!counts.report(start).incomplete);
    counts.count(start, &ended("one-more", State::Succeeded, Some(1)));
    let report = counts.report(start);
    assert_eq!((report.incomplete, report.kinds.len()), (true, MAX_KINDS));
    for _ in 0..2 * MAX_RUNS {
        counts.count(start, &ended("kind-0", State::Succeeded, Some(1)));
    }
    assert_eq!(of(&counts.report(start), "kind-0").run_time.unwrap().jobs, MAX_RUNS);
}

#[test]
fn lost_events_are_reported() {
    let (mut counts, start) = (Counts::default(), Instant::now());
    counts.begin(start);
    counts.count(start, &Notification::Missed(3));
    assert!(counts.report(start).incomplete);
}
