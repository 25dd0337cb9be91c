//! The options of requests have the names that the library's types have.
//!
//! The library has no serde form of these types: a request has texts where they have names, instants and rules. Each is converted
//! by one function; this test finds a field that one side has and the other has not.

use std::collections::BTreeSet;
use std::fmt::Debug;

use bellwether::client::{Filter, Purge, ScheduleChange, WorkerSettings};
use bellwether::{Job, Retention, Schedule};
use serde_json::Value;
use utoipa::{IntoParams as _, PartialSchema};

use super::{ChangedSchedule, JobQuery, NewPurge, NewSchedule, RetentionChange, ScheduledJob, WorkerChange};

type Names = BTreeSet<String>;

fn names<const N: usize>(names: [&str; N]) -> Names {
    names.map(str::to_owned).into()
}

/// Returns the fields of a value of the library: the names that its debug output has on the first level.
fn fields(value: &impl Debug) -> Names {
    let text = format!("{value:#?}");
    let field = |line: &str| Some(line.strip_prefix("    ")?.split_once(": ")?.0.to_owned());
    text.lines().filter_map(field).filter(|name| !name.starts_with(' ')).collect()
}

/// Returns the fields of a request.
fn properties<T: PartialSchema>() -> Names {
    let schema = serde_json::to_value(T::schema()).unwrap();
    schema["properties"].as_object().unwrap().keys().cloned().collect()
}

#[test]
fn a_filter_has_the_names_of_the_library() {
    let asked = JobQuery::into_params(|| None).into_iter().map(|parameter| parameter.name).collect::<Names>();
    let page = names(["limit", "after", "payloads"]);
    assert_eq!(&asked - &page, fields(&Filter::default()));
}

#[test]
fn a_change_of_a_schedule_has_the_names_of_the_library() {
    let rule = names(["cron", "zone", "every", "anchor", "at"]);
    let own = names(["when", "refused"]);
    assert_eq!(&properties::<ChangedSchedule>() - &rule, &fields(&ScheduleChange::default()) - &own);
}

#[test]
fn a_new_schedule_has_the_names_of_the_library() {
    let built = Schedule::every("a", std::time::Duration::from_secs(1), Job::new("sum", &()));
    let (asked, built) = (properties::<NewSchedule<ScheduledJob<Value>>>(), fields(&built));
    // `when` is one of the three rules, `misfire` has the two limits, and the template is the job.
    let rules = names(["cron", "every", "at", "catch_up_limit", "catch_up_within", "job"]);
    assert_eq!(&asked - &rules, &built - &names(["when", "template"]));
}

#[test]
fn a_change_of_the_retention_has_the_names_of_the_library() {
    assert_eq!(properties::<RetentionChange>(), fields(&Retention::default()));
}

#[test]
fn a_change_of_a_worker_has_the_names_of_the_library() {
    // Kinds are paused and resumed one by one.
    let steps = names(["pause_kinds", "resume_kinds", "reset"]);
    let own = names(["paused_kinds"]);
    assert_eq!(&properties::<WorkerChange>() - &steps, &fields(&WorkerSettings::default()) - &own);
}

#[test]
fn a_purge_has_the_names_of_the_library() {
    assert_eq!(&properties::<NewPurge>() - &names(["jobs", "remove"]), fields(&Purge::default()));
}
