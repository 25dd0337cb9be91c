//! The checks of a schedule before it is sent.

use bellwether_core::schedule::When;
use bellwether_core::time::WallMillis;

use super::*;
use crate::TraceContext;
use crate::client::IfExists;
use crate::client::in_memory::BEGINNING;

const HOUR: Duration = Duration::from_secs(3_600);

fn job() -> Job {
    Job::new("report", &"sales")
}

fn at(millis: u64) -> SystemTime {
    WallMillis(millis).into()
}

#[test]
fn a_schedule_owns_the_id_the_times_and_the_trace_of_its_jobs() {
    let owned = |job: Job| match Schedule::every("a", HOUR, job).check() {
        Err(ScheduleError::JobOwns { field, .. }) => field,
        other => panic!("{other:?}"),
    };
    assert_eq!(owned(job().id("own")), "id");
    assert_eq!(owned(job().named("own")), "named");
    assert_eq!(owned(job().expires_in(HOUR)), "expires_in");
    assert_eq!(owned(job().expires_at(at(1))), "expires_at");
    assert_eq!(owned(job().run_at(at(1))), "run_at");
    assert_eq!(owned(job().delay(HOUR)), "delay");
    assert_eq!(owned(job().if_exists(IfExists::Ignore)), "if_exists");
    let trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".parse::<TraceContext>().unwrap();
    assert_eq!(owned(job().traceparent(trace)), "traceparent");
    assert!(Schedule::every("a", HOUR, job()).check().is_ok());
    assert!(Schedule::every("a", HOUR, Job::new("a b", &1)).check().is_err());
    assert!(Schedule::every("a b", HOUR, job()).check().is_err());
}

#[test]
fn each_part_of_a_schedule_is_in_its_spec() {
    let schedule = Schedule::cron("a", "30 2 * * *", job()).zone("Europe/Berlin");
    let schedule = schedule.misfire(crate::schedule::Misfire::Skip).grace(2 * HOUR).overlap(Overlap::Forbid);
    let schedule = schedule.expires_after(3 * HOUR).job_id("own");
    assert_eq!((schedule.id(), schedule.replaces()), ("a", false));
    assert!(schedule.clone().replace(true).replaces());
    let (id, spec) = schedule.spec().unwrap();
    assert_eq!((id.as_str(), spec.misfire, spec.grace), ("a", Misfire::Skip, 2 * HOUR));
    assert_eq!((spec.overlap, spec.template.expires_after), (Overlap::Forbid, Some(3 * HOUR)));
    assert_eq!(spec.template.job_id.unwrap().as_str(), "own");
    assert!(matches!(spec.when, When::Cron { zone, .. } if zone.to_string() == "Europe/Berlin"));
    let zoned = Schedule::every("a", HOUR, job()).zone("Europe/Berlin").check().unwrap_err();
    assert!(matches!(zoned, ScheduleError::Invalid(SpecError::Needs { field: "zone", .. })));
    for schedule in [Schedule::cron("a", "30 2 * * *", job()), Schedule::at("a", at(7_201_000), job())] {
        let anchored = schedule.anchor(at(1_000)).check().unwrap_err();
        assert!(matches!(anchored, ScheduleError::Invalid(SpecError::Needs { field: "anchor", .. })));
    }
}

#[test]
fn a_rule_of_an_existing_schedule_is_used_again() {
    for rule in [
        Rule::cron("30 2 * * *").zone("Europe/Berlin"),
        Rule::every(HOUR).anchor(at(1_000)),
        Rule::at(at(7_201_000)),
    ] {
        let when = rule.when().unwrap();
        let again = Rule::from(when.clone());
        assert_eq!(again.when().as_ref(), Ok(&when));
        let spec = Schedule::new("a", again, job()).spec().unwrap().1;
        assert_eq!(crate::schedule::When::of(spec.when), when);
    }
    let none = Schedule::new("a", Rule::default(), job()).check().unwrap_err();
    assert_eq!(none.to_string(), "give one of cron, every and at");
}

#[test]
fn a_preview_has_the_next_ticks() {
    let every = Schedule::every("a", HOUR, job()).anchor(at(1_000));
    let after = at(3_600_000);
    assert_eq!(every.preview(after, 2).unwrap(), [at(3_601_000), at(7_201_000)]);
    assert_eq!(every.preview(after, 0).unwrap(), []);
    let once = Schedule::at("a", BEGINNING.into(), job());
    assert_eq!(once.preview(at(0), 5).unwrap(), [BEGINNING.into()]);
}
