//! Filters.

use std::time::Duration;

use bellwether_core::job::JobRecord;
use bellwether_core::time::WallMillis;

use super::*;
use crate::client::in_memory::{id, kind};

#[test]
fn an_instant_is_within_its_bounds_from_the_first_up_to_the_second() {
    let at = |seconds| Some(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds));
    let bound = |seconds| at(seconds).map(InstantText);
    for (instant, within) in [(at(1), false), (at(2), true), (at(3), true), (at(4), false), (None, false)] {
        assert_eq!(is_within(instant, bound(2), bound(4)), within, "{instant:?}");
    }
    assert!(is_within(at(2), bound(2), None) && !is_within(at(1), bound(2), None));
    assert!(is_within(at(1), None, bound(2)) && !is_within(at(2), None, bound(2)));
    assert!(is_within(None, None, None), "without bounds it need not be known");
}

#[test]
fn each_bound_of_a_filter_is_kept() {
    let at = |seconds| Some(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds));
    let lane = Lane::new("l").ok();
    let group = GroupId::new("g").ok();
    let filter = Filter::default().lane(lane.clone()).group(group.clone());
    let filter = filter.submitted_after(at(1)).submitted_before(at(2));
    let filter = filter.finished_after(at(3)).finished_before(at(4));
    assert!(lane.is_some() && group.is_some());
    assert_eq!((filter.lane, filter.group), (lane, group));
    let bounds =
        [filter.submitted_after, filter.submitted_before, filter.finished_after, filter.finished_before];
    assert_eq!(bounds, [1, 2, 3, 4].map(|seconds| at(seconds).map(InstantText)));
}

#[test]
fn a_filter_accepts_a_job_only_if_each_of_its_parts_does() {
    let at = |seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
    let record = |name: &str| {
        let payload = bellwether_core::job::Payload::json(*b"1").unwrap();
        let kind = Kind::new(name).unwrap();
        let mut record = JobRecord::new(kind, payload, uuid::Uuid::nil(), WallMillis(5_000));
        record.placement.lane = Lane::new("l").ok();
        record.cancel(WallMillis(8_000))
    };
    let mut view = JobView::of(id("a"), record("sum"));
    view.group = GroupId::new("g").ok();
    let all = || {
        let all = Filter::default().state(State::Cancelled).kind(kind("sum"));
        let all = all.lane(Lane::new("l").unwrap()).group(GroupId::new("g").unwrap());
        all.submitted_after(at(5)).submitted_before(at(6)).finished_after(at(8)).finished_before(at(9))
    };
    assert!(all().lets(&view) && Filter::default().lets(&view));
    for other in [
        all().state(State::Dead),
        all().kind(kind("product")),
        all().lane(Lane::new("m").unwrap()),
        all().group(GroupId::new("h").unwrap()),
        all().submitted_after(at(6)),
        all().submitted_before(at(5)),
        all().finished_after(at(9)),
        all().finished_before(at(8)),
    ] {
        assert!(!other.lets(&view), "{other:?}");
        // Nor alone, without the other parts.
        let alone = Filter {
            state: other.state.filter(|state| *state == State::Dead),
            kind: other.kind.filter(|kind| kind.as_str() == "product"),
            lane: other.lane.filter(|lane| lane.as_str() == "m"),
            group: other.group.filter(|group| group.as_str() == "h"),
            ..Filter::default()
        };
        assert!(alone == Filter::default() || !alone.lets(&view), "{alone:?}");
    }
    for one in [
        Filter::default().state(State::Cancelled),
        Filter::default().kind(kind("sum")),
        Filter::default().lane(Lane::new("l").unwrap()),
        Filter::default().group(GroupId::new("g").unwrap()),
    ] {
        assert!(one.lets(&view), "{one:?}");
    }
}
