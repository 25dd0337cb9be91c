//! The bounds and defaults in the texts and schemas are those that are checked, and each name is the same everywhere.

use std::collections::BTreeSet;
use std::time::Duration;

use bellwether_core::schedule::{DEFAULT_GRACE, Misfire as Stored};
use clap::{Args, Command, FromArgMatches};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use utoipa::{IntoParams, PartialSchema};

use crate::client::{
    Filter, JobOptions, JobTemplate, Purge, RetentionChange, Rule, ScheduleChange, WorkerChange,
};
use crate::node::MAX_SLOTS;
use crate::{Group, Job, Retention, Schedule};

/// Returns the schema of a field.
fn field<T: PartialSchema>(name: &str) -> Value {
    serde_json::to_value(T::schema()).unwrap()["properties"][name].clone()
}

/// Returns the description of a field. utoipa writes it beside the reference to a named schema.
fn text<T: PartialSchema>(name: &str) -> String {
    let field = field::<T>(name);
    let either = field["oneOf"].as_array().into_iter().flatten().chain([&field]);
    let texts = either.filter_map(|schema| schema["description"].as_str());
    texts.collect::<Vec<_>>().join(" ").split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns the names of a schema.
fn properties<T: PartialSchema>() -> BTreeSet<String> {
    let schema = serde_json::to_value(T::schema()).unwrap();
    schema["properties"].as_object().unwrap().keys().cloned().collect()
}

/// Returns the names that a document may have, from the error for an unknown one.
fn expected<T: DeserializeOwned>() -> BTreeSet<String> {
    let Err(error) = serde_json::from_value::<T>(json!({ "unknown": 1 })) else { panic!("it is refused") };
    let error = error.to_string();
    let names = error.split_once("expected ").expect("an unknown field").1;
    names.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

/// Returns the arguments, with the names of the fields.
fn arguments<T: Args>() -> BTreeSet<String> {
    let command = T::augment_args(Command::new("test"));
    let arguments = command.get_arguments().map(|argument| {
        let id = argument.get_id().to_string();
        assert_eq!(argument.get_long().unwrap_or(&id).replace('-', "_"), id, "one name for an option");
        id
    });
    arguments.collect()
}

#[test]
fn each_request_has_the_same_names_in_documents_schemas_and_arguments() {
    /// `nested` are the fields without an argument of their own, whose fields have some.
    fn same<T: PartialSchema + DeserializeOwned + Args>(nested: &[(&str, BTreeSet<String>)]) {
        let mut names = properties::<T>();
        assert_eq!(names, expected::<T>());
        for (field, arguments) in nested {
            assert!(names.remove(*field), "{field}");
            names.extend(arguments.iter().cloned());
        }
        assert_eq!(names, arguments::<T>());
    }
    let nothing = BTreeSet::new;
    same::<Job>(&[("payload", nothing()), ("options", arguments::<JobOptions>())]);
    same::<JobTemplate>(&[("payload", nothing()), ("options", arguments::<JobOptions>())]);
    same::<Schedule>(&[("job", arguments::<JobTemplate>())]);
    same::<ScheduleChange>(&[]);
    same::<Group>(&[]);
    same::<Purge>(&[]);
    same::<RetentionChange>(&[]);
    same::<WorkerChange>(&[]);
    same::<JobOptions>(&[]);
    let names = |parameters: Vec<utoipa::openapi::path::Parameter>| {
        parameters.into_iter().map(|parameter| parameter.name).collect::<BTreeSet<_>>()
    };
    assert_eq!(names(Filter::into_params(|| None)), expected::<Filter>());
    assert_eq!(arguments::<Filter>(), expected::<Filter>());
    assert_eq!(names(Rule::into_params(|| None)), expected::<Rule>());
    assert_eq!(arguments::<Rule>(), expected::<Rule>());
}

/// Returns whether a schedule with these fields is accepted.
fn schedule(more: &Value) -> bool {
    let mut request = json!({ "id": "a", "job": { "kind": "sum" } });
    request.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    serde_json::from_str::<Schedule>(&request.to_string()).is_ok_and(|schedule| schedule.check().is_ok())
}

/// Returns a duration of this number of days, and one that is a millisecond longer.
fn days_and_more(days: u64) -> (String, String) {
    let millis = days * 86_400_000;
    (format!("{days}d"), format!("{}ms", millis + 1))
}

#[test]
fn the_durations_of_a_schedule() {
    for (name, days, with) in [
        ("every", 366, json!({})),
        ("catch_up_within", 366, json!({ "every": "1h", "misfire": "catch_up" })),
        ("grace", 7, json!({ "every": "1h" })),
        ("expires_after", 366, json!({ "every": "1h" })),
    ] {
        let (most, above) = days_and_more(days);
        let accepted = |value: &str| {
            let mut request = with.clone();
            request[name] = json!(value);
            schedule(&request)
        };
        assert!(text::<Schedule>(name).contains(&format!("1s to {most}")), "{name}");
        assert!(accepted("1s") && accepted(&most), "{name}");
        assert!(!accepted("999ms") && !accepted(&above), "{name}");
    }
}

#[test]
fn the_number_of_missed_ticks() {
    let accepted = |n: u32| schedule(&json!({ "every": "1h", "misfire": "catch_up", "catch_up_limit": n }));
    assert!(text::<Schedule>("catch_up_limit").contains("1 to 100"));
    assert_eq!(field::<Schedule>("catch_up_limit")["maximum"], 100);
    assert!(accepted(1) && accepted(100) && !accepted(0) && !accepted(101));
}

#[test]
fn the_defaults_of_a_schedule() {
    let read = |more: &str| {
        let text = format!(r#"{{"id": "a", "every": "1h", "job": {{"kind": "sum"}}{more}}}"#);
        serde_json::from_str::<Schedule>(&text).unwrap().stored_spec().unwrap()
    };
    let built = Schedule::every("a", Duration::from_secs(3600), Job::new("sum", &Value::Null));
    assert_eq!(read(""), built.stored_spec().unwrap());
    let catch_up = Stored::CatchUp { limit: 10, within: Duration::from_secs(86_400) };
    assert_eq!(read(r#", "misfire": "catch_up""#).misfire, catch_up);
    assert!(text::<Schedule>("catch_up_limit").contains("misfire is given: 10."));
    assert!(text::<Schedule>("catch_up_within").contains("misfire is given: 1d."));
    assert_eq!(DEFAULT_GRACE, Duration::from_secs(60));
    assert!(text::<Schedule>("grace").ends_with("Default for a new schedule: 1m."));
    assert!(text::<Schedule>("misfire").ends_with("Default for a new schedule: once."));
    assert!(text::<Schedule>("overlap").ends_with("Default for a new schedule: allow."));
}

#[test]
fn a_rule_has_one_time_and_only_catch_up_has_limits() {
    let refused = |more: Value| {
        let mut request = json!({ "id": "a", "job": { "kind": "sum" } });
        request.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let schedule = serde_json::from_str::<Schedule>(&request.to_string()).unwrap();
        schedule.check().map_err(|error| error.to_string()).err()
    };
    let one = Some("give one of cron, every and at".to_owned());
    assert_eq!(refused(json!({})), one);
    assert_eq!(refused(json!({ "every": "1h", "cron": "* * * * *" })), one);
    assert_eq!(refused(json!({ "every": "1h", "zone": "UTC" })), Some("zone needs cron".to_owned()));
    let anchored = json!({ "cron": "* * * * *", "anchor": "2026-11-21T11:33:00Z" });
    assert_eq!(refused(anchored), Some("anchor needs every".to_owned()));
    assert_eq!(refused(json!({ "every": "1h", "misfire": "catch_up", "catch_up_limit": 3 })), None);
    for misfire in [json!(null), json!("skip"), json!("once")] {
        for (limit, value) in [("catch_up_limit", json!(3)), ("catch_up_within", json!("1h"))] {
            let said = refused(json!({ "every": "1h", "misfire": misfire, limit: value }));
            assert_eq!(said, Some(format!("{limit} needs misfire catch_up")));
        }
    }
    let change = |document| serde_json::from_value::<ScheduleChange>(document).unwrap();
    assert_eq!(change(json!({ "catch_up_limit": 3 })), ScheduleChange::new().catch_up_limit(3));
    assert!(change(json!({ "catch_up_limit": 3 })).check().is_ok(), "the schedule may have the policy");
    assert!(change(json!({ "misfire": "skip", "catch_up_limit": 3 })).check().is_err());
}

#[test]
fn the_retention() {
    let accepted = |change: Value| {
        let change = serde_json::from_value::<RetentionChange>(change).unwrap();
        change.of(Retention::default()).check().is_ok()
    };
    let (most, above) = days_and_more(3_650);
    for name in ["succeeded", "cancelled", "dead"] {
        assert!(text::<RetentionChange>(name).contains(&format!("1m to {most}")), "{name}");
        assert!(accepted(json!({ name: "1m" })) && accepted(json!({ name: most })), "{name}");
        assert!(!accepted(json!({ name: "59s" })) && !accepted(json!({ name: above })), "{name}");
    }
    let most = field::<RetentionChange>("records")["maximum"].as_u64().unwrap();
    assert!(accepted(json!({ "records": 0 })) && accepted(json!({ "records": most })));
    assert!(!accepted(json!({ "records": most + 1 })));
}

#[test]
fn the_slots_of_a_worker() {
    assert!(text::<WorkerChange>("slots").contains(&format!("0 to {MAX_SLOTS}")));
    assert_eq!(field::<WorkerChange>("slots")["maximum"], MAX_SLOTS);
}

#[test]
fn the_payload_of_a_job() {
    let accepted = |bytes: usize| Job::json("sum", format!("1{}", " ".repeat(bytes - 1))).check().is_ok();
    assert!(text::<Job>("payload").contains("at most 64 KiB"));
    assert!(accepted(64 * 1024) && !accepted(64 * 1024 + 1));
}

#[test]
fn a_name_of_a_list_is_a_string_and_an_unknown_one_is_repeated_in_part() {
    let refused = |value: &str| {
        let text = format!(r#"{{"kind": "sum", "if_exists": {value}}}"#);
        serde_json::from_str::<Job>(&text).unwrap_err().to_string()
    };
    assert!(refused("5").contains("invalid type: integer `5`, expected a string"), "{}", refused("5"));
    assert!(refused(r#"{"again": null}"#).contains("invalid type: map"));
    let unknown = refused(&format!("\"{}\"", "x".repeat(100_000)));
    assert!(
        unknown.len() < 250 && unknown.contains("expected one of `same`, `ignore`, `again`"),
        "{unknown}"
    );
}

#[test]
fn an_absent_value_of_a_purge_is_not_null() {
    for name in ["jobs", "state", "kind", "older_than"] {
        let null = serde_json::from_str::<Purge>(&format!(r#"{{"{name}": null, "remove": true}}"#));
        assert!(null.unwrap_err().to_string().contains("invalid type: null"), "{name}");
    }
    let given = serde_json::from_value::<Purge>(json!({ "jobs": [] })).unwrap();
    assert_eq!(given.job_ids(), Some(&[][..]), "an empty list does not select others");
}

/// All options of a job.
fn options() -> Value {
    json!({
        "max_attempts": 10,
        "max_losses": 2,
        "backoff": { "initial": "500ms", "max": "10m" },
        "timeout": "1h",
        "lease": "90s",
        "auto_renew": true,
        "dead_letter": true,
        "priority": 7,
        "tags": ["gpu"],
        "affinity": "scene-1",
        "lane": "frames",
    })
}

fn flags(flags: &[&str]) -> Result<JobOptions, String> {
    let command = JobOptions::augment_args(Command::new("test"));
    let matches = command.try_get_matches_from(["test"].iter().chain(flags));
    let options = matches.and_then(|matches| JobOptions::from_arg_matches(&matches));
    options.map_err(|error| error.to_string())
}

#[test]
fn all_options_of_a_job_survive_a_round_trip() {
    let read = serde_json::from_value::<JobOptions>(options()).unwrap();
    assert_eq!(read.check(), Ok(()));
    assert_eq!(serde_json::to_value(&read).unwrap(), options());
    let names = options().as_object().unwrap().keys().cloned().collect::<BTreeSet<_>>();
    assert_eq!(names, properties::<JobOptions>());
}

#[test]
fn the_flags_set_all_options_of_a_job() {
    let mut given = Vec::new();
    for (name, value) in options().as_object().unwrap() {
        let value = match value {
            Value::String(text) => text.clone(),
            Value::Array(tags) => tags[0].as_str().unwrap().to_owned(),
            Value::Object(_) => "500ms..10m".to_owned(),
            other => other.to_string(),
        };
        given.push(format!("--{}={value}", name.replace('_', "-")));
    }
    let set = flags(&given.iter().map(String::as_str).collect::<Vec<_>>()).unwrap();
    assert_eq!(serde_json::to_value(set).unwrap(), options());
    assert_eq!(flags(&[]), Ok(JobOptions::new()), "an option without a flag is not set");
    assert_eq!(flags(&["--auto-renew"]), Ok(JobOptions::new().auto_renew(true)));
    let tags = Ok(JobOptions::new().tags(["a", "b"]));
    assert_eq!(flags(&["--tags", "a,b"]), tags);
    assert_eq!(flags(&["--tags", "a", "--tags", "b"]), tags);
}

#[test]
fn a_typed_job_or_group_of_another_kind_is_refused() {
    struct Sum;

    impl crate::JobKind for Sum {
        const NAME: &'static str = "sum";
        type Payload = u32;
        type Result = u32;
    }

    fn read<T: Args>(arguments: &[&str]) -> T {
        let command = T::augment_args(Command::new("test"));
        T::from_arg_matches(&command.get_matches_from(["test"].iter().chain(arguments))).unwrap()
    }

    assert_eq!(read::<Job<Sum>>(&["sum"]).check(), Ok(()));
    let error = read::<Job<Sum>>(&["other"]).check().unwrap_err();
    assert_eq!(error.to_string(), "kind must be sum, not other");
    assert_eq!(read::<Group<Sum>>(&["sum", "g"]).check(), Ok(()));
    let error = read::<Group<Sum>>(&["other", "g"]).check().unwrap_err();
    assert_eq!(error.to_string(), "group g has members of kind other, not sum: a group has one kind");
    let error = read::<Group>(&["sum", "g", "--total", "1000001"]).check().unwrap_err();
    assert!(error.to_string().starts_with("total of group g is 1000001"), "{error}");
    assert_eq!(read::<Group>(&["sum", "g", "--join=false"]).check(), Ok(()));
}

#[test]
fn an_invalid_flag_is_refused_with_an_example() {
    assert!(flags(&["--auto-renew=yes"]).unwrap_err().contains("[possible values: true, false]"));
    assert!(flags(&["--auto-renew", "true"]).unwrap_err().contains("unexpected argument 'true'"));
    for (given, said) in [
        (["--backoff", "1s"], "such as 1s..5m"),
        (["--backoff", "1s..5"], "\"5\" is not a duration: give a whole number and a unit"),
        (["--lease", "5"], "\"5\" is not a duration: give a whole number and a unit"),
        (["--max-attempts", "-1"], "unexpected argument"),
        (["--priority", "256"], "256 is not in 0..=255"),
    ] {
        let error = flags(&given).unwrap_err();
        assert!(error.contains(said), "{given:?}: {error}");
    }
}

#[test]
fn the_described_bounds_and_defaults_of_options_are_those_that_are_checked() {
    let accepted = |name: &str, value: Value| {
        let options = serde_json::from_value::<JobOptions>(json!({ name: value }));
        options.is_ok_and(|options| options.check().is_ok())
    };
    let defaults = serde_json::to_value(JobOptions::defaults()).unwrap();
    for name in properties::<JobOptions>() {
        let (name, about) = (name.as_str(), text::<JobOptions>(&name));
        let schema = field::<JobOptions>(name);
        if let (Some(least), Some(most)) = (schema["minimum"].as_u64(), schema["maximum"].as_u64()) {
            assert!(about.contains(&format!("{least} to {most}")), "{name}");
            assert!(accepted(name, json!(least)) && accepted(name, json!(most)), "{name}");
            assert!(!accepted(name, json!(most + 1)), "{name}");
            assert!(least == 0 || !accepted(name, json!(least - 1)), "{name}");
        }
        if let Some(default) = schema.get("default") {
            assert_eq!(*default, defaults[name], "{name}");
            let written = default.is_number() || default.is_boolean();
            assert!(!written || about.ends_with(&format!("Default: {default}.")), "{name}: {about}");
        }
        match name {
            "timeout" | "lease" => {
                let (least, below) = if name == "lease" { ("1s", "999ms") } else { ("1ms", "0s") };
                assert!(about.contains(&format!("{least} to 7d")), "{name}");
                assert!(accepted(name, json!(least)) && accepted(name, json!("7d")), "{name}");
                assert!(!accepted(name, json!(below)) && !accepted(name, json!("604800001ms")), "{name}");
            }
            "backoff" => {
                assert!(about.contains("1ms to 7d") && about.ends_with("Default: 1s..5m."), "{about}");
                assert_eq!(defaults[name], json!({ "initial": "1s", "max": "5m" }));
                assert!(accepted(name, json!({ "initial": "1ms", "max": "7d" })));
                assert!(!accepted(name, json!({ "initial": "0s", "max": "7d" })));
                assert!(!accepted(name, json!({ "initial": "1ms", "max": "8d" })));
            }
            "affinity" | "lane" => {
                assert!(accepted(name, json!("a".repeat(128))) && !accepted(name, json!("a b")), "{name}");
            }
            "tags" => {
                let tags = |count: u32| (0..count).map(|n| json!(format!("t{n}"))).collect::<Value>();
                assert!(about.contains("at most 32"));
                assert!(accepted(name, tags(32)) && !accepted(name, tags(33)));
            }
            _ => {}
        }
    }
}

#[test]
fn the_documentation_lists_each_option_of_a_job_with_its_flag() {
    let page = include_str!("../../docs/getting-started.md");
    for name in properties::<JobOptions>() {
        let row = page.lines().find(|line| line.starts_with(&format!("| `{name}`: ")));
        let row = row.unwrap_or_else(|| panic!("{name} is not in the table of options"));
        assert!(row.contains(&format!("`--{}", name.replace('_', "-"))), "{row}");
    }
}
