//! Starts and expiries.

use super::*;

const NOW: WallMillis = WallMillis(1_795_260_780_000);

fn at(start: Option<Moment>, expiry: Option<Moment>) -> Result<Times, TimingError> {
    Timing { start, expiry }.at(NOW)
}

#[test]
fn a_delay_counts_from_the_submission_and_a_past_start_is_immediate() {
    let minute = Duration::from_secs(60);
    let times = at(Some(Moment::In(minute)), Some(Moment::In(2 * minute))).unwrap();
    assert_eq!(times, Times { not_before: Some(NOW + minute), expires_at: Some(NOW + 2 * minute) });
    for past in [UNIX_EPOCH, UNIX_EPOCH - minute] {
        assert_eq!(at(Some(Moment::At(past)), None).unwrap().not_before, None);
    }
    assert_eq!(at(Some(Moment::In(Duration::ZERO)), None).unwrap().not_before, None);
}

#[test]
fn an_impossible_time_is_refused_with_field_and_remedy() {
    let (second, age) = (Duration::from_secs(1), Duration::from_secs(u64::MAX));
    let said = |start, expiry| at(start, expiry).unwrap_err().to_string();
    assert_eq!(said(Some(Moment::In(age)), None), "delay must be at most 3653 days ahead");
    assert_eq!(
        said(None, Some(Moment::In(MAX_AHEAD + second))),
        "expires_in must be at most 3653 days ahead"
    );
    assert_eq!(
        said(None, Some(Moment::At(UNIX_EPOCH))),
        "expires_at must be in the future, not 1970-01-01T00:00:00.000Z: leave it out, or give a later one"
    );
    assert_eq!(
        said(Some(Moment::In(2 * second)), Some(Moment::In(second))),
        "expires_in must be after delay: a job that expires at 2026-11-21T11:33:01.000Z and may start at \
         2026-11-21T11:33:02.000Z would never start"
    );
}

#[test]
fn a_start_and_an_expiry_are_accepted_up_to_their_bounds() {
    let millisecond = Duration::from_millis(1);
    let ahead = |wait| Some(Moment::In(wait));
    assert_eq!(at(ahead(MAX_AHEAD), None).unwrap().not_before, Some(NOW + MAX_AHEAD));
    at(ahead(MAX_AHEAD + millisecond), None).unwrap_err();
    assert_eq!(at(ahead(millisecond), None).unwrap().not_before, Some(NOW + millisecond));
    let instant = |at: WallMillis| Some(Moment::At(at.into()));
    assert_eq!(at(instant(NOW), None).unwrap().not_before, None, "now is immediate");
    assert_eq!(at(instant(NOW + millisecond), None).unwrap().not_before, Some(NOW + millisecond));
    assert_eq!(at(None, instant(NOW + millisecond)).unwrap().expires_at, Some(NOW + millisecond));
    assert!(matches!(at(None, instant(NOW)), Err(TimingError::Expired { .. })));
    let both =
        |start: u64, expiry: u64| at(instant(WallMillis(NOW.0 + start)), instant(WallMillis(NOW.0 + expiry)));
    assert!(both(1, 2).is_ok());
    assert!(matches!(both(2, 2), Err(TimingError::Never { .. })));
    assert!(matches!(both(3, 2), Err(TimingError::Never { .. })));
}
