//! Ticks and instants.

use super::*;
use crate::client::Rule;

const HOUR: Duration = Duration::from_secs(3_600);

fn at(hours: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + u32::try_from(hours).unwrap() * HOUR
}

#[test]
fn ticks_are_after_an_instant_or_through_it() {
    let hourly = Rule::every(HOUR).when().unwrap();
    assert_eq!(hourly.ticks_after(at(5), 2), Ok(vec![at(6), at(7)]));
    assert_eq!(hourly.ticks_through(at(5), 3), Ok(vec![at(5), at(4), at(3)]));
    assert_eq!(hourly.ticks_through(at(1), 9), Ok(vec![at(1), at(0)]), "none before the anchor");
    let nightly = Rule::cron("30 2 * * *").when().unwrap();
    let first = at(2) + HOUR / 2;
    assert_eq!(nightly.ticks_after(at(0), 2), Ok(vec![first, first + 24 * HOUR]));
    assert_eq!(nightly.ticks_through(first, 1), Ok(vec![first]));
    assert_eq!(When::At(at(5)).ticks_after(at(4), 9), Ok(vec![at(5)]));
    assert_eq!(nightly.to_string(), "30 2 * * * (UTC)");
}

#[test]
fn an_instant_has_as_few_digits_as_possible() {
    assert_eq!(instant(at(2)), "1970-01-01T02:00:00Z");
    assert_eq!(instant(at(0) + Duration::from_millis(120)), "1970-01-01T00:00:00.12Z");
    let id = tick_id(&ScheduleId::new("nightly").unwrap(), at(2));
    assert_eq!(id.as_str(), "nightly@1970-01-01T02:00:00Z");
}
