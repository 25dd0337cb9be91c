//! Both changes to and from daylight saving time, as specified in docs/semantics.md.
//!
//! | zone | gap | repeated hour |
//! | --- | --- | --- |
//! | Europe/Berlin | 2026-03-29 02:00 → 03:00 (01:00 UTC) | 2026-10-25 03:00 → 02:00 (01:00 UTC) |
//! | America/New_York | 2026-03-08 02:00 → 03:00 (07:00 UTC) | 2026-11-01 02:00 → 01:00 (06:00 UTC) |

use super::*;
use crate::schedule::instant::{parse, text};

fn ticks(expression: &str, zone: &str, after: &str, count: usize) -> Vec<String> {
    let calendar = When::cron(expression, zone).unwrap().calendar().unwrap();
    calendar.ticks_after(parse(after).unwrap()).take(count).map(text).collect()
}

const BERLIN: &str = "Europe/Berlin";
const NEW_YORK: &str = "America/New_York";

#[test]
fn a_fixed_time_in_the_gap_ticks_at_the_end_of_the_gap() {
    assert_eq!(
        ticks("30 2 * * *", BERLIN, "2026-03-28T00:00:00Z", 3),
        ["2026-03-28T01:30:00Z", "2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z"]
    );
    assert_eq!(
        ticks("30 2 * * *", NEW_YORK, "2026-03-07T06:00:00Z", 3),
        ["2026-03-07T07:30:00Z", "2026-03-08T07:00:00Z", "2026-03-09T06:30:00Z"]
    );
}

#[test]
fn a_fixed_time_in_the_repeated_hour_ticks_only_the_first_time() {
    assert_eq!(
        ticks("30 2 * * *", BERLIN, "2026-10-24T00:00:00Z", 3),
        ["2026-10-24T00:30:00Z", "2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"]
    );
    assert_eq!(
        ticks("30 1 * * *", NEW_YORK, "2026-10-31T00:00:00Z", 3),
        ["2026-10-31T05:30:00Z", "2026-11-01T05:30:00Z", "2026-11-02T06:30:00Z"]
    );
}

#[test]
fn a_cron_interval_follows_elapsed_time_through_both_changes() {
    assert_eq!(
        ticks("*/30 * * * *", BERLIN, "2026-03-29T00:00:00Z", 4),
        ["2026-03-29T00:30:00Z", "2026-03-29T01:00:00Z", "2026-03-29T01:30:00Z", "2026-03-29T02:00:00Z"]
    );
    assert_eq!(
        ticks("*/30 * * * *", BERLIN, "2026-10-24T23:30:00Z", 5),
        [
            "2026-10-25T00:00:00Z",
            "2026-10-25T00:30:00Z",
            "2026-10-25T01:00:00Z",
            "2026-10-25T01:30:00Z",
            "2026-10-25T02:00:00Z"
        ]
    );
    assert_eq!(
        ticks("*/30 * * * *", NEW_YORK, "2026-11-01T05:00:00Z", 4),
        ["2026-11-01T05:30:00Z", "2026-11-01T06:00:00Z", "2026-11-01T06:30:00Z", "2026-11-01T07:00:00Z"]
    );
}

#[test]
fn a_list_of_times_is_skipped_in_the_gap_and_doubled_in_the_repeated_hour() {
    assert_eq!(
        ticks("15,45 2 * * *", BERLIN, "2026-03-28T12:00:00Z", 2),
        ["2026-03-30T00:15:00Z", "2026-03-30T00:45:00Z"]
    );
    assert_eq!(
        ticks("15,45 2 * * *", BERLIN, "2026-10-24T12:00:00Z", 5),
        [
            "2026-10-25T00:15:00Z",
            "2026-10-25T00:45:00Z",
            "2026-10-25T01:15:00Z",
            "2026-10-25T01:45:00Z",
            "2026-10-26T01:15:00Z"
        ]
    );
}

#[test]
fn days_with_a_change_have_23_or_25_hourly_ticks() {
    let day = |expression, zone, from: &str, to: &str| {
        let calendar = When::cron(expression, zone).unwrap().calendar().unwrap();
        let to = parse(to).unwrap();
        calendar.ticks_after(parse(from).unwrap()).take_while(|at| *at <= to).count()
    };
    assert_eq!(day("0 * * * *", BERLIN, "2026-03-28T23:00:00Z", "2026-03-29T22:00:00Z"), 23);
    assert_eq!(day("0 * * * *", BERLIN, "2026-10-24T22:00:00Z", "2026-10-25T23:00:00Z"), 25);
    assert_eq!(day("0 * * * *", NEW_YORK, "2026-03-08T05:00:00Z", "2026-03-09T04:00:00Z"), 23);
    assert_eq!(day("0 * * * *", NEW_YORK, "2026-11-01T04:00:00Z", "2026-11-02T05:00:00Z"), 25);
    // The day begins at midnight in every zone and on every day.
    assert_eq!(
        ticks("0 0 * * *", BERLIN, "2026-03-28T12:00:00Z", 2),
        ["2026-03-28T23:00:00Z", "2026-03-29T22:00:00Z"]
    );
}
