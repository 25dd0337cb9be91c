//! The bounds in the texts and schemas are those that are checked.

use bellwether::client::Job;
use bellwether::node::MAX_SLOTS;
use bellwether::schedule::{DEFAULT_GRACE, Misfire};
use bellwether::{Retention, client};
use serde_json::{Value, json};
use utoipa::PartialSchema;

use super::invalid::Invalid;
use super::{NewJob, NewPause, NewSchedule, RetentionChange, ScheduledJob, WorkerChange};

const SECOND: std::time::Duration = std::time::Duration::from_secs(1);

/// Returns the schema of a field.
fn field<T: PartialSchema>(name: &str) -> Value {
    serde_json::to_value(T::schema()).unwrap()["properties"][name].clone()
}

/// Returns the description of a field. utoipa writes it beside the reference to a named schema.
fn text<T: PartialSchema>(name: &str) -> String {
    let field = field::<T>(name);
    let either = field["oneOf"].as_array().into_iter().flatten().chain([&field]);
    let texts = either.filter_map(|schema| schema["description"].as_str());
    texts.collect::<Vec<_>>().join(" ")
}

/// Returns whether a schedule with these fields is accepted.
fn schedule(more: &Value) -> bool {
    let mut request = json!({ "id": "a", "job": { "kind": "sum" } });
    request.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let new = serde_json::from_value::<NewSchedule<ScheduledJob<Value>>>(request).unwrap();
    let job = |kind: &str, payload: Value, _: &str| Ok::<_, Invalid>(Job::new(kind, &payload));
    new.into_schedule(|new| new.into_job(job)).is_ok_and(|schedule| schedule.check().is_ok())
}

/// Returns a duration of this number of days, and one that is a millisecond longer.
fn days_and_more(days: u64) -> (String, String) {
    let millis = days * 86_400_000;
    (format!("{days}d"), format!("{}ms", millis + 1))
}

#[test]
fn the_durations_of_a_schedule() {
    type Request = NewSchedule<ScheduledJob<Value>>;
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
        assert!(text::<Request>(name).contains(&format!("1s to {most}")), "{name}");
        assert!(accepted("1s") && accepted(&most), "{name}");
        assert!(!accepted("999ms") && !accepted(&above), "{name}");
    }
}

#[test]
fn the_number_of_missed_ticks() {
    type Request = NewSchedule<ScheduledJob<Value>>;
    let accepted = |n: u32| schedule(&json!({ "every": "1h", "misfire": "catch_up", "catch_up_limit": n }));
    assert!(text::<Request>("catch_up_limit").contains("1 to 100"));
    assert_eq!(field::<Request>("catch_up_limit")["maximum"], 100);
    assert!(accepted(1) && accepted(100) && !accepted(0) && !accepted(101));
}

#[test]
fn the_defaults_of_a_schedule() {
    type Request = NewSchedule<ScheduledJob<Value>>;
    let made = serde_json::from_value::<Request>(
        json!({ "id": "a", "every": "1h", "misfire": "catch_up", "job": { "kind": "sum" } }),
    );
    let change = made.unwrap().change().unwrap();
    let catch_up = Misfire::CatchUp { limit: 10, within: 86_400 * SECOND };
    assert_eq!(change, client::ScheduleChange::default().when(change.when.clone()).misfire(catch_up));
    assert!(text::<Request>("catch_up_limit").contains("misfire is given: 10."));
    assert!(text::<Request>("catch_up_within").contains("misfire is given: 1d."));
    assert_eq!(DEFAULT_GRACE, 60 * SECOND);
    assert!(text::<Request>("grace").ends_with("Default for a new schedule: 1m."));
}

#[test]
fn the_retention() {
    let accepted = |change: Value| {
        let change = serde_json::from_value::<RetentionChange>(change).unwrap();
        change.apply(Retention::default()).check().is_ok()
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
    assert!(text::<NewJob<Value>>("payload").contains("at most 64 KiB"));
    assert!(accepted(64 * 1024) && !accepted(64 * 1024 + 1));
}

#[test]
fn the_note_of_a_pause() {
    assert!(text::<NewPause>("note").contains(&format!("at most {} bytes", client::MAX_NOTE_BYTES)));
}
