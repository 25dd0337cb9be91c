use proptest::prelude::*;

use super::*;
use crate::schedule::When;

const GRACE: Duration = Duration::from_secs(60);

/// Ticks at every tenth second, counted in seconds.
fn tens() -> Calendar {
    When::every(Duration::from_secs(10)).unwrap().calendar().unwrap()
}

fn at(seconds: u64) -> WallMillis {
    WallMillis(seconds * 1_000)
}

fn decide(misfire: Misfire, cursor: u64, now: u64) -> Due {
    due(&tens(), misfire, GRACE, at(cursor), at(now))
}

fn over(from: u64, through: u64, count: u32) -> Missed {
    Missed { from: at(from), through: at(through), count }
}

const CATCH_UP: Misfire = Misfire::CatchUp { limit: 3, within: Duration::from_secs(600) };

#[test]
fn a_tick_is_due_at_its_instant_and_not_before() {
    assert_eq!(decide(Misfire::Skip, 10, 19), Due::Later(Some(at(20))));
    assert_eq!(decide(Misfire::Skip, 10, 20), Due::Tick { at: at(20), missed: None });
}

#[test]
fn within_the_grace_every_policy_makes_all_ticks_in_order() {
    for misfire in [Misfire::Skip, Misfire::Once, CATCH_UP] {
        assert_eq!(decide(misfire, 10, 80), Due::Tick { at: at(20), missed: None });
        assert_eq!(decide(misfire, 20, 80), Due::Tick { at: at(30), missed: None });
    }
}

#[test]
fn missed_ticks_follow_the_misfire_policy() {
    // At 200 the ticks 140 to 200 are on time, and the ticks 20 to 130 are missed.
    assert_eq!(decide(Misfire::Skip, 10, 200), Due::Skip(over(20, 130, 12)));
    assert_eq!(decide(Misfire::Once, 10, 200), Due::Tick { at: at(130), missed: Some(over(20, 120, 11)) });
    assert_eq!(decide(CATCH_UP, 10, 200), Due::Tick { at: at(110), missed: Some(over(20, 100, 9)) });
    assert_eq!(decide(CATCH_UP, 110, 200), Due::Tick { at: at(120), missed: None });
    assert_eq!(decide(CATCH_UP, 130, 200), Due::Tick { at: at(140), missed: None });
}

#[test]
fn ticks_older_than_the_window_are_not_caught_up() {
    let narrow = Misfire::CatchUp { limit: 3, within: Duration::from_secs(75) };
    assert_eq!(decide(narrow, 10, 200), Due::Tick { at: at(130), missed: Some(over(20, 120, 11)) });
    let narrower = Misfire::CatchUp { limit: 3, within: Duration::from_secs(65) };
    assert_eq!(decide(narrower, 10, 200), Due::Skip(over(20, 130, 12)));
}

#[test]
fn a_single_missed_tick_is_made_up_without_skipping_any() {
    assert_eq!(decide(Misfire::Once, 10, 81), Due::Tick { at: at(20), missed: None });
    assert_eq!(decide(Misfire::Skip, 10, 81), Due::Skip(over(20, 20, 1)));
}

#[test]
fn a_calendar_without_further_ticks_is_never_due_again() {
    let once = When::At(at(50)).calendar().unwrap();
    assert_eq!(due(&once, Misfire::Once, GRACE, at(50), at(90)), Due::Later(None));
    assert_eq!(due(&once, Misfire::Skip, GRACE, at(0), at(500)), Due::Skip(over(50, 50, 1)));
    assert_eq!(due(&once, Misfire::Once, GRACE, at(0), at(500)), Due::Tick { at: at(50), missed: None });
}

#[test]
fn counting_missed_ticks_is_bounded() {
    let seconds = When::cron("* * * * * *", "Europe/Berlin").unwrap().calendar().unwrap();
    let (cursor, now) = (at(1_000_000_000), at(1_795_226_400));
    let Due::Skip(missed) = due(&seconds, Misfire::Skip, GRACE, cursor, now) else { panic!() };
    assert_eq!((missed.from, missed.through), (at(1_000_000_001), WallMillis(now.0 - 61_000)));
    assert_eq!(missed.count, MAX_COUNTED);
    let seconds = When::every(Duration::from_secs(1)).unwrap().calendar().unwrap();
    let Due::Skip(missed) = due(&seconds, Misfire::Skip, GRACE, cursor, now) else { panic!() };
    assert_eq!(missed.count, 795_226_339, "computed by a division");
}

fn policies() -> impl Strategy<Value = Misfire> {
    prop_oneof![
        Just(Misfire::Skip),
        Just(Misfire::Once),
        (1..6u32, 1..400u64)
            .prop_map(|(limit, within)| Misfire::CatchUp { limit, within: Duration::from_secs(within) }),
    ]
}

proptest! {
    /// S8: if the clock runs, jumps or stands still, every instant between the first cursor and the last is decided
    /// exactly once: it gets a job or is skipped.
    #[test]
    fn every_instant_is_decided_once(
        misfire in policies(),
        grace in 1..120u64,
        clock in prop::collection::vec((any::<bool>(), 0..300u64), 1..60),
    ) {
        let calendar = When::cron("*/10 * * * * *", "UTC").unwrap().calendar().unwrap();
        let start = at(1_000_000);
        let (mut cursor, mut now) = (start, start);
        let mut decided = Vec::new();
        for (forward, by) in clock {
            now = WallMillis(if forward { now.0 + by * 1_000 } else { now.0.saturating_sub(by * 1_000) });
            loop {
                let (tick, missed) = match due(&calendar, misfire, Duration::from_secs(grace), cursor, now) {
                    Due::Later(next) => {
                        prop_assert!(next.is_some_and(|next| next > now));
                        break;
                    }
                    Due::Tick { at, missed } => (Some(at), missed),
                    Due::Skip(missed) => (None, Some(missed)),
                };
                if let Some(missed) = missed {
                    let through = calendar.ticks_after(cursor).take_while(|at| *at <= missed.through);
                    let through = through.collect::<Vec<_>>();
                    prop_assert_eq!(through.first(), Some(&missed.from));
                    prop_assert_eq!(through.last(), Some(&missed.through));
                    prop_assert_eq!(through.len(), missed.count as usize);
                    prop_assert!(missed.through.0 < now.0.saturating_sub(grace * 1_000), "only missed ticks are skipped");
                    cursor = missed.through;
                    decided.extend(through);
                }
                if let Some(at) = tick {
                    prop_assert!(at <= now);
                    cursor = at;
                    decided.push(at);
                }
            }
        }
        let all = calendar.ticks_after(start).take_while(|at| *at <= cursor).collect::<Vec<_>>();
        prop_assert_eq!(decided, all);
    }
}
