//! The values in documents and arguments have the names that the library gives them, and the console knows them.

use bellwether::State;
use bellwether::client::{
    Accepted, Added, AttemptOutcome, ChangeKind, Ended, GroupStage, IfExists, ScheduleState, WaitReason,
};
use bellwether::error::Remedy;
use bellwether::schedule::{Misfire, Overlap, SkipReason};
use clap::ValueEnum;
use serde::Serialize;
use serde_json::json;
use utoipa::PartialSchema;

use super::outcome::{JobOutcome, KindOutcome, WorkerOutcome};
use super::{AcceptedDocument, RemedyDocument};

/// Returns the names of all values, after a check that each has a meaning and one name everywhere.
fn names<T: ValueEnum + Serialize + PartialSchema>() -> Vec<String> {
    let schema = json!(T::schema());
    let names = T::value_variants().iter().map(|value| {
        let named = value.to_possible_value().unwrap();
        assert_eq!(json!(value), json!(named.get_name()));
        let meaning = format!("* `{}`: {}.", named.get_name(), named.get_help().unwrap());
        assert!(schema["description"].as_str().unwrap().contains(&meaning), "{meaning}");
        assert!(!meaning.contains('['), "a link in {meaning}");
        named.get_name().to_owned()
    });
    let names = names.collect::<Vec<_>>();
    assert_eq!(schema["enum"], json!(names));
    names
}

#[test]
fn each_value_has_the_name_that_the_library_gives_it() {
    assert_eq!(names::<Added>(), Added::ALL.map(Added::as_str));
    assert_eq!(names::<AttemptOutcome>(), AttemptOutcome::ALL.map(AttemptOutcome::as_str));
    assert_eq!(names::<ChangeKind>(), ChangeKind::ALL.map(ChangeKind::as_str));
    assert_eq!(names::<Ended>(), Ended::ALL.map(Ended::as_str));
    assert_eq!(names::<GroupStage>(), GroupStage::ALL.map(GroupStage::as_str));
    assert_eq!(names::<IfExists>(), IfExists::ALL.map(IfExists::as_str));
    assert_eq!(names::<Misfire>(), Misfire::ALL.map(Misfire::as_str));
    assert_eq!(names::<Overlap>(), Overlap::ALL.map(Overlap::as_str));
    assert_eq!(
        names::<JobOutcome>(),
        ["cancelled", "requested", "already_cancelled", "reopened", "released", "still_open"]
    );
    assert_eq!(names::<KindOutcome>(), ["paused", "already_paused", "resumed", "not_paused"]);
    assert_eq!(names::<WorkerOutcome>(), ["draining", "already_draining", "not_found", "left"]);
    assert_eq!(names::<ScheduleState>(), ScheduleState::ALL.map(ScheduleState::as_str));
    assert_eq!(names::<SkipReason>(), SkipReason::ALL.map(SkipReason::as_str));
    assert_eq!(names::<State>(), State::ALL.map(State::as_str));
    assert_eq!(names::<WaitReason>(), WaitReason::ALL.map(WaitReason::as_str));
}

#[test]
fn the_schemas_of_other_names_have_all_values() {
    let listed = |schema: serde_json::Value| schema["enum"].clone();
    // Exhaustive, so that a new value is not forgotten.
    let accepted =
        [Accepted::New, Accepted::Same, Accepted::Other, Accepted::Again(1)].map(|value| match value {
            Accepted::New => "new",
            Accepted::Same => "same",
            Accepted::Other => "other",
            Accepted::Again(_) => "again",
        });
    assert_eq!(listed(json!(AcceptedDocument::schema())), json!(accepted));
    let remedies =
        [Remedy::Retry, Remedy::ReadBack, Remedy::FixInput, Remedy::GiveUp].map(|value| match value {
            Remedy::Retry => "retry",
            Remedy::ReadBack => "read_back",
            Remedy::FixInput => "fix_input",
            Remedy::GiveUp => "give_up",
        });
    assert_eq!(listed(json!(RemedyDocument::schema())), json!(remedies));
    assert_eq!(json!(RemedyDocument(Remedy::ReadBack)), json!("read_back"));
}

#[test]
fn the_console_has_the_values() {
    fn all<T: ValueEnum + Serialize + PartialSchema>(page: &str) {
        for name in names::<T>() {
            let there = page.contains(&format!("'{name}'")) || page.contains(&format!("\n  {name}: "));
            assert!(there, "{name}");
        }
    }
    all::<State>(include_str!("../../../console/pages/jobs.js"));
    all::<GroupStage>(include_str!("../../../console/pages/groups.js"));
    all::<Ended>(include_str!("../../../console/pages/settings.js"));
    all::<Misfire>(include_str!("../../../console/pages/schedule.js"));
    all::<Overlap>(include_str!("../../../console/pages/schedule.js"));
    all::<AttemptOutcome>(include_str!("../../../console/pages/job.js"));
}
