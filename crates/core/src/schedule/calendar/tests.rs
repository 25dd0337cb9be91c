use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::schedule::instant::{parse, text};

fn cron(expression: &str, zone: &str) -> Calendar {
    When::cron(expression, zone).unwrap().calendar().unwrap()
}

fn at(instant: &str) -> WallMillis {
    parse(instant).unwrap()
}

#[test]
fn an_interval_ticks_from_its_anchor() {
    let when = When::Every { interval: Duration::from_secs(90), anchor: at("2026-11-21T00:00:30Z") };
    let every = when.calendar().unwrap();
    assert_eq!(every.next_after(at("2026-01-01T00:00:00Z")), Some(at("2026-11-21T00:00:30Z")));
    assert_eq!(every.next_after(at("2026-11-21T00:00:30Z")), Some(at("2026-11-21T00:02:00Z")));
    assert_eq!(every.last_through(at("2026-11-21T00:02:00Z")), Some(at("2026-11-21T00:02:00Z")));
    assert_eq!(every.last_through(at("2026-11-21T00:01:59.999Z")), Some(at("2026-11-21T00:00:30Z")));
    assert_eq!(every.last_through(at("2026-11-21T00:00:29Z")), None);
}

#[test]
fn the_end_of_the_calendar_is_not_a_tick() {
    let every = When::Every { interval: Duration::from_secs(1), anchor: WallMillis(0) }.calendar().unwrap();
    let last = WallMillis(instant::END.0 - 1_000);
    assert_eq!(
        (every.last_through(WallMillis(u64::MAX)), every.last_through(instant::END)),
        (Some(last), Some(last))
    );
    assert_eq!(every.next_after(last), None);
    assert_eq!(cron("* * * * * *", "UTC").last_through(WallMillis(u64::MAX)), Some(last));
}

#[test]
fn a_single_instant_ticks_once() {
    let once = When::At(WallMillis(5_000)).calendar().unwrap();
    assert_eq!(once.next_after(WallMillis(4_999)), Some(WallMillis(5_000)));
    assert_eq!(once.next_after(WallMillis(5_000)), None);
    assert_eq!(once.last_through(WallMillis(5_000)), Some(WallMillis(5_000)));
    assert_eq!(once.last_through(WallMillis(4_999)), None);
}

#[test]
fn a_fraction_of_a_second_lies_between_two_ticks() {
    let seconds = cron("* * * * * *", "UTC");
    assert_eq!(seconds.next_after(WallMillis(1_500)), Some(WallMillis(2_000)));
    assert_eq!(seconds.last_through(WallMillis(1_500)), Some(WallMillis(1_000)));
    assert_eq!(seconds.next_after(WallMillis(1_000)), Some(WallMillis(2_000)));
}

#[test]
fn every_calendar_ends() {
    let last = WallMillis(instant::END.0 - 1_000);
    assert_eq!(cron("* * * * * *", "UTC").next_after(last), None);
    assert_eq!(cron("* * * * * *", "UTC").next_after(WallMillis(u64::MAX)), None);
    assert_eq!(When::every(Duration::from_secs(1)).unwrap().calendar().unwrap().next_after(last), None);
    assert_eq!(cron("0 0 1 1 *", "UTC").last_through(WallMillis(u64::MAX)), Some(at("2499-01-01T00:00:00Z")));
}

#[test]
fn ticks_on_weekdays_are_listed() {
    let listed = cron("30 9 * * MON-FRI", "Europe/Berlin")
        .ticks_after(at("2026-11-20T12:00:00Z"))
        .take(3)
        .map(text)
        .collect::<Vec<_>>();
    assert_eq!(listed, ["2026-11-23T08:30:00Z", "2026-11-24T08:30:00Z", "2026-11-25T08:30:00Z"]);
}

/// Instants around a change of daylight saving time, a leap day or a new year, and an ordinary one.
fn starts() -> impl Strategy<Value = WallMillis> {
    let days = prop::sample::select(vec![
        "2026-03-28T12:00:00Z",
        "2026-10-24T12:00:00Z",
        "2026-03-07T12:00:00Z",
        "2026-10-31T12:00:00Z",
        "2026-04-04T00:00:00Z",
        "2026-10-03T00:00:00Z",
        "2028-02-28T12:00:00Z",
        "2026-12-31T12:00:00Z",
        "2026-07-01T12:00:00Z",
    ]);
    (days, 0..48u64 * 3_600_000).prop_map(|(day, later)| WallMillis(at(day).0 + later))
}

fn calendars() -> impl Strategy<Value = Calendar> {
    let zones = prop::sample::select(vec![
        "UTC",
        "Europe/Berlin",
        "America/New_York",
        "Australia/Lord_Howe",
        "Pacific/Apia",
        "Asia/Kathmandu",
        "Africa/Casablanca",
    ]);
    let expressions = prop::sample::select(vec![
        "* * * * * *",
        "*/7 * * * * *",
        "0 30 2 * * *",
        "30 2 * * *",
        "0 2 * * *",
        "15,45 1-3 * * *",
        "*/20 * * * *",
        "0 */2 * * *",
        "59 59 1 * * *",
        "0 3 * * SUN",
        "30 1 L * *",
        "0 0 1 * *",
        "10 2 29 2 *",
    ]);
    (expressions, zones).prop_map(|(expression, zone)| cron(expression, zone))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    /// The misfire policy relies on this: the backward search finds the ticks that the forward search found, from any
    /// starting point.
    #[test]
    fn forward_and_backward_search_find_the_same_ticks(calendar in calendars(), start in starts()) {
        let mut last = start;
        for tick in calendar.ticks_after(start).take(40) {
            prop_assert!(last < tick);
            prop_assert_eq!(calendar.last_through(tick), Some(tick));
            let between = WallMillis(last.0 + (tick.0 - last.0) / 2);
            prop_assert_eq!(calendar.next_after(between), Some(tick), "from {}", text(between));
            if last != start {
                prop_assert_eq!(calendar.last_through(WallMillis(tick.0 - 1)), Some(last), "before {}", text(tick));
                prop_assert_eq!(calendar.last_through(between), Some(last), "from {}", text(between));
            }
            last = tick;
        }
    }
}
