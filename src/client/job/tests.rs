//! Validation of a job before anything is sent, and the stored record.

use bellwether_core::backoff::Backoff;
use bellwether_core::job::{Policy, Priority};
use bellwether_core::name::Tag;
use serde_json::json;

use super::*;

fn sum() -> Job {
    Job::new("sum", &[1, 2])
}

#[test]
fn an_invalid_job_is_refused_with_field_bounds_and_remedy() {
    let long = "x".repeat(129);
    for (job, said) in [
        (Job::new("a/b", &1), "kind has '/' at byte 1: only [A-Za-z0-9._-] are allowed"),
        (Job::new("", &1), "kind is empty: give 1 to 128 characters of [A-Za-z0-9._-]"),
        (sum().id(&long), "job id is 129 bytes long: at most 128 are allowed"),
        (sum().id("a\nb"), "job id has '\\n' at byte 1: only [A-Za-z0-9._-] are allowed"),
        (sum().tags([""]), "tag is empty: give 1 to 128 characters of [A-Za-z0-9._-]"),
        (sum().affinity("é"), "affinity key has 'é' at byte 0: only [A-Za-z0-9._-] are allowed"),
        (sum().lane(""), "lane is empty: give 1 to 128 characters of [A-Za-z0-9._-]"),
        (sum().lane(&long), "lane is 129 bytes long: at most 128 are allowed"),
        (sum().lane("a/b"), "lane has '/' at byte 1: only [A-Za-z0-9._-] are allowed"),
        (sum().max_attempts(0), "max_attempts must be 1 to 1000, not 0"),
        (sum().timeout(Duration::ZERO), "timeout must be 1ms to 7d, not 0s"),
        (
            Job::raw("sum", "a/b", vec![0; 65_537]),
            "payload has 65537 bytes: at most 65536 are allowed inline; \
             store larger data elsewhere and submit its address",
        ),
        (Job::raw("sum", "", *b""), "content type \"\" is not 1 to 127 visible ASCII characters"),
        (Job::json("sum", "{\"a\": 1,\n }"), "payload is not JSON: key must be a string at line 2 column 2"),
        (
            sum().payload(*b"\"caf\xe9\""),
            "payload is not JSON: invalid utf-8 sequence of 1 bytes from index 4",
        ),
        (
            sum().tags((0..33).map(|n| format!("t{n}"))),
            "a job has at most 32 tags, not 33: tags are for properties of workers, not for their data",
        ),
    ] {
        let error = job.check().unwrap_err();
        assert_eq!(error.to_string(), said);
    }
}

#[test]
fn a_later_setter_replaces_an_earlier_one() {
    assert_eq!(sum().id("a b").id("fine").check(), Ok(()));
    assert_eq!(sum().id("a b").named("fine").check(), Ok(()));
    assert_eq!(sum().named("a b").id("fine").check(), Ok(()));
    let job = sum().id("a b").tags(["c/d"]);
    assert!(job.check().unwrap_err().to_string().starts_with("tag has '/'"), "the options are checked first");
}

#[test]
fn fields_that_exclude_each_other_are_refused_in_a_document() {
    let refused = |more: &str| {
        let text = format!(r#"{{"kind": "sum"{more}}}"#);
        serde_json::from_str::<Job>(&text).unwrap().check().map_err(|error| error.to_string()).err()
    };
    assert_eq!(refused(""), None);
    let both = |text: &str| Some(text.to_owned());
    assert_eq!(refused(r#", "id": "a", "named": "b""#), both("give id or named, not both"));
    let at = r#""2100-01-01T00:00:00Z""#;
    assert_eq!(
        refused(&format!(r#", "run_at": {at}, "delay": "1s""#)),
        both("give run_at or delay, not both")
    );
    let expiry = format!(r#", "expires_at": {at}, "expires_in": "1s""#);
    assert_eq!(refused(&expiry), both("give expires_at or expires_in, not both"));
}

#[test]
fn a_payload_is_replaced_by_bytes_of_the_content_type_or_by_json() {
    let bytes = |job: Job| job.into_record(WallMillis(1), Uuid::now_v7).map(|(_, record)| record.payload);
    let plain = Job::raw("sum", "text/plain", *b"a");
    assert_eq!(bytes(plain.clone().payload(*b"{b")).unwrap().bytes(), b"{b");
    assert_eq!(bytes(plain.clone().json_payload("\"c\"")).unwrap().bytes(), b"c");
    assert!(matches!(bytes(plain.json_payload("1")), Err(JobError::PayloadNotText { .. })));
    assert_eq!(bytes(sum().payload(*b"[1]")).unwrap().bytes(), b"[1]");
    assert!(matches!(bytes(sum().payload(*b"{b")), Err(JobError::Json(_))));
    assert!(matches!(bytes(sum().json_payload("{b")), Err(JobError::Json(_))));
    let linked = Job::raw("sum", "application/ld+json", *b"{b");
    assert_eq!(bytes(linked.clone()).unwrap().bytes(), b"{b", "raw bytes need not be valid");
    assert!(matches!(bytes(linked.clone().payload(*b"{c")), Err(JobError::Json(_))));
    let payload = bytes(linked.json_payload("{}")).unwrap();
    assert_eq!((payload.content_type().as_str(), payload.bytes()), ("application/ld+json", &b"{}"[..]));
    let raw = bytes(Job::raw("sum", "application/json", *b"{b")).unwrap();
    assert_eq!(raw.bytes(), b"{b", "raw bytes need not be valid");
}

#[test]
fn the_payload_of_a_document_is_kept_byte_for_byte_or_is_a_text() {
    let payload = |text: &str| {
        let job = serde_json::from_str::<Job>(text).unwrap();
        let record = job.into_record(WallMillis(1), Uuid::now_v7).map_err(|error| error.to_string())?.1;
        let text = String::from_utf8(record.payload.bytes().to_vec()).unwrap();
        Ok::<_, String>((record.payload.content_type().as_str().to_owned(), text))
    };
    let json = |text: &str| Ok(("application/json".to_owned(), text.to_owned()));
    assert_eq!(payload(r#"{"kind": "sum", "payload": { "n":1e400}}"#), json(r#"{ "n":1e400}"#));
    assert_eq!(payload(r#"{"kind": "sum"}"#), json("null"));
    let plain = Ok(("text/plain".to_owned(), "a\nb".to_owned()));
    let text = r#"{"kind": "sum", "payload": "a\nb", "content_type": "text/plain"}"#;
    assert_eq!(payload(text), plain);
    let refused = payload(r#"{"kind": "sum", "payload": 1, "content_type": "text/plain"}"#).unwrap_err();
    assert_eq!(refused, "payload must be a string, because its content_type is \"text/plain\"");
    let deep = format!(r#"{{"kind": "sum", "payload": {}{}}}"#, "[".repeat(101), "]".repeat(101));
    assert_eq!(payload(&deep).unwrap_err(), "payload nests deeper than 100: flatten it");
}

#[test]
fn debug_output_does_not_contain_the_payload() {
    let text = r#"{"kind": "sum", "payload": "secret"}"#;
    for job in [serde_json::from_str::<Job>(text).unwrap(), Job::new("sum", "secret")] {
        assert!(!format!("{job:?}{:?}", job.template()).contains("secret"), "{job:?}");
    }
}

#[test]
fn json_text_is_kept_byte_for_byte() {
    let (_, record) = Job::json("sum", " {\"n\": 1e400} ").into_record(WallMillis(1), Uuid::now_v7).unwrap();
    assert_eq!(record.payload.bytes(), b" {\"n\": 1e400} ");
}

#[test]
fn tags_are_sorted_and_deduplicated() {
    let (_, record) = sum().tags(["b", "a", "b"]).into_record(WallMillis(1), Uuid::now_v7).unwrap();
    let tags = record.placement.tags.iter().map(Tag::as_str).collect::<Vec<_>>();
    assert_eq!(tags, ["a", "b"]);
}

/// A kind that overrides every default.
struct Render;

impl JobKind for Render {
    const NAME: &'static str = "render";
    type Payload = u32;
    type Result = ();

    fn defaults() -> JobOptions {
        all()
    }
}

const SECOND: Duration = Duration::from_secs(1);

fn all() -> JobOptions {
    JobOptions::new()
        .max_attempts(7)
        .max_losses(4)
        .backoff(SECOND, 9 * SECOND)
        .timeout(60 * SECOND)
        .lease(30 * SECOND)
        .auto_renew(true)
        .dead_letter(true)
        .priority(8)
        .tags(["gpu"])
        .affinity("scene-1")
        .lane("frames")
}

fn record<K: AnyKind>(job: Job<K>) -> JobRecord {
    job.into_record(WallMillis(1), Uuid::now_v7).unwrap().1
}

#[test]
fn a_job_has_the_options_of_its_kind() {
    let record = record(Render::job(&1));
    let policy = Policy {
        max_attempts: 7,
        max_losses: 4,
        backoff: Backoff { initial: SECOND, max: 9 * SECOND },
        timeout: Some(60 * SECOND),
        lease: Some(30 * SECOND),
        auto_renew: Some(true),
        dead_letter: true,
    };
    assert_eq!((record.policy, record.priority), (policy, Priority::new(8).unwrap()));
    let placement = record.placement;
    assert_eq!(placement.tags, [Tag::new("gpu").unwrap()]);
    assert_eq!(placement.affinity.unwrap().as_str(), "scene-1");
    assert_eq!(placement.lane.unwrap().as_str(), "frames");
}

#[test]
fn a_job_overrides_the_options_of_its_kind() {
    let job = Render::job(&1).max_attempts(1).tags(["eu"]).lane("urgent");
    let job = job.options(JobOptions::new().priority(9).auto_renew(false));
    let record = record(job);
    let Policy { max_attempts, max_losses, timeout, auto_renew, .. } = record.policy;
    assert_eq!((max_attempts, max_losses), (1, 4));
    assert_eq!((timeout, auto_renew), (Some(60 * SECOND), Some(false)));
    assert_eq!(record.priority, Priority::HIGHEST);
    assert_eq!(record.placement.tags, [Tag::new("eu").unwrap()]);
    assert_eq!(record.placement.lane.unwrap().as_str(), "urgent");

    let untagged = self::record(Render::job(&1).tags(Vec::<String>::new()));
    assert_eq!(untagged.placement.tags, [], "an empty list removes the tags of the kind");

    let plain = self::record(Render::job(&1).clear_options().priority(9));
    assert_eq!((plain.policy, plain.placement), Default::default(), "without the options of the kind");
    assert_eq!(plain.priority, Priority::HIGHEST);
}

#[test]
fn a_job_without_options_has_the_defaults() {
    let record = record(sum());
    assert_eq!((record.policy, record.priority), (Policy::default(), Priority::default()));
}

#[test]
fn options_are_serialized_by_their_names_with_durations_as_text() {
    let document = json!({
        "max_attempts": 7,
        "max_losses": 4,
        "backoff": { "initial": "1s", "max": "9s" },
        "timeout": "1m",
        "lease": "30s",
        "auto_renew": true,
        "dead_letter": true,
        "priority": 8,
        "tags": ["gpu"],
        "affinity": "scene-1",
        "lane": "frames",
    });
    assert_eq!(serde_json::to_value(all()).unwrap(), document);
    assert_eq!(serde_json::from_value::<JobOptions>(document).unwrap(), all());
    assert_eq!(serde_json::to_value(JobOptions::new()).unwrap(), json!({}));
    let refused =
        |value| serde_json::from_value::<JobOptions>(json!({ "lease": value })).unwrap_err().to_string();
    assert!(
        refused(json!("5 min")).starts_with("\"5 min\" is not a duration: give a whole number and a unit")
    );
    assert!(refused(json!(300)).starts_with("invalid type: integer `300`, expected a duration as text"));
    assert_eq!(serde_json::from_value::<JobOptions>(json!({ "timeout": null })).unwrap(), JobOptions::new());
    let unknown = serde_json::from_value::<JobOptions>(json!({ "timeout_ms": 1 })).unwrap_err().to_string();
    assert!(unknown.starts_with("unknown field `timeout_ms`, expected one of `max_attempts`"), "{unknown}");
}

#[test]
fn effective_options_are_those_of_the_record_and_the_same_job_has_them_again() {
    let effective =
        |record: &JobRecord| JobOptions::effective(&record.policy, &record.placement, record.priority);
    assert_eq!(effective(&record(Render::job(&1))), all());
    assert_eq!(effective(&record(sum())), JobOptions::defaults());
    let again = sum().options(JobOptions::defaults()).options(JobOptions::new().lane("frames"));
    assert_eq!(effective(&record(again)), JobOptions::new().lane("frames").or(JobOptions::defaults()));
    let defaults = json!({
        "max_attempts": 5,
        "max_losses": 3,
        "backoff": { "initial": "1s", "max": "5m" },
        "dead_letter": false,
        "priority": 5,
        "tags": [],
    });
    let untagged = record(Render::job(&1).tags(Vec::<String>::new()));
    let again = record(Render::job(&1).options(effective(&untagged)));
    assert_eq!(again.placement.tags, [], "the tags of the kind stay removed");
    assert_eq!(serde_json::to_value(JobOptions::defaults()).unwrap(), defaults);
}

#[test]
fn a_kind_that_is_too_long_for_a_dead_letter_job_is_refused() {
    let job = |bytes: usize| Job::new("k".repeat(bytes), &()).dead_letter(true);
    assert_eq!(job(89).check(), Ok(()));
    assert!(job(90).check().unwrap_err().to_string().contains("at most 128"));
    assert_eq!(job(90).dead_letter(false).check(), Ok(()));
}

#[test]
fn options_out_of_bounds_are_errors_of_the_kinds_jobs() {
    struct Hasty;
    impl JobKind for Hasty {
        const NAME: &'static str = "hasty";
        type Payload = ();
        type Result = ();

        fn defaults() -> JobOptions {
            JobOptions::new().priority(10)
        }
    }
    let said = "priority must be 0 to 9, where 9 goes first, not 10";
    assert_eq!(Hasty::defaults().check().unwrap_err().to_string(), said);
    assert_eq!(Hasty::job(&()).check().unwrap_err().to_string(), said);
    assert_eq!(Hasty::job(&()).priority(0).check(), Ok(()));
}

#[test]
fn each_option_of_a_job_is_stored() {
    let second = Duration::from_secs(1);
    let job = sum().max_attempts(7).max_losses(8).backoff(2 * second, 3 * second).timeout(4 * second);
    let job = job.lease(5 * second).auto_renew(false).dead_letter(true).priority(6);
    let job = job.tags(["t"]).affinity("key").lane("l");
    let (_, record) = job.into_record(WallMillis(1), Uuid::now_v7).unwrap();
    let expected = Policy {
        max_attempts: 7,
        max_losses: 8,
        backoff: Backoff { initial: 2 * second, max: 3 * second },
        timeout: Some(4 * second),
        lease: Some(5 * second),
        auto_renew: Some(false),
        dead_letter: true,
    };
    assert_eq!((record.policy, record.priority), (expected, Priority::new(6).unwrap()));
    assert_eq!(record.placement.tags, [Tag::new("t").unwrap()]);
    assert_eq!(record.placement.affinity.unwrap().as_str(), "key");
    assert_eq!(record.placement.lane.unwrap().as_str(), "l");
}

#[test]
fn later_options_complete_each_other() {
    let options = JobOptions::new().priority(6).lane("l").affinity("key").tags(["t"]).max_losses(8);
    let options = options.timeout(Duration::from_secs(4)).lease(Duration::from_secs(5)).auto_renew(true);
    let all = options.clone().max_attempts(7).dead_letter(true);
    assert_eq!(
        (all.priority, all.lane.as_deref(), all.affinity.as_deref()),
        (Some(6), Some("l"), Some("key"))
    );
    assert_eq!(
        (all.max_losses, all.timeout, all.lease, all.auto_renew),
        (options.max_losses, options.timeout, options.lease, Some(true),)
    );
    let both = all.priority(1).tags(["u"]);
    assert_eq!(
        (both.priority, both.max_attempts, both.tags.as_deref().map(<[_]>::len)),
        (Some(1), Some(7), Some(1))
    );
    let backoff = both.backoff(Duration::from_secs(1), Duration::from_secs(2)).lane("m").affinity("other");
    assert_eq!(
        (backoff.lane.as_deref(), backoff.dead_letter, backoff.priority),
        (Some("m"), Some(true), Some(1))
    );
    let attempts = backoff.max_attempts(3).max_losses(4).auto_renew(false).dead_letter(false);
    assert!(attempts.backoff.is_some() && attempts.tags == Some(vec!["u".to_owned()]));
}

#[test]
fn a_job_has_at_most_its_limit_of_tags() {
    let with = |count: usize| sum().tags((0..count).map(|n| format!("t{n}")));
    let most = bellwether_core::budget::MAX_TAGS;
    assert!(with(most).check().is_ok());
    let repeated = (0..=most).map(|n| format!("t{}", n % most));
    assert!(sum().tags(repeated).check().is_ok(), "a repeated tag counts once");
    assert!(matches!(with(most + 1).check(), Err(JobError::Tags { given }) if given == most + 1));
    assert!(matches!(with(most + 2).check(), Err(JobError::Tags { .. })));
    assert!(matches!(sum().lane("schedule:x").check(), Err(JobError::Name(_)) | Err(JobError::ReservedLane)));
}

#[test]
fn an_ended_job_is_opened_again_only_at_once() {
    let again = || sum().id("a").if_exists(IfExists::Again);
    assert!(again().check().is_ok());
    let later = again().delay(Duration::from_secs(1)).check();
    assert_eq!(later, Err(JobError::AgainWithStart { field: "delay" }));
    assert!(sum().delay(Duration::from_secs(1)).check().is_ok());
    assert!(sum().expires_in(Duration::ZERO).check().is_err());
    let (_, record) = sum().delay(Duration::from_secs(1)).into_record(WallMillis(1), Uuid::now_v7).unwrap();
    assert_eq!(record.state, JobState::Open { not_before: Some(WallMillis(1_001)) });
    let trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01".parse::<TraceContext>().ok();
    let (_, record) = sum().traceparent(trace).into_record(WallMillis(1), Uuid::now_v7).unwrap();
    assert_eq!(record.trace, trace);
}

#[test]
fn a_large_payload_is_refused_when_it_is_stored_without_a_codec() {
    let large = Job::raw("sum", "a/b", vec![0; 65_537]);
    assert!(large.check().is_err());
    assert!(large.check_at(WallMillis(1)).is_ok(), "a codec may make it smaller");
}
