//! Validation of a job before anything is sent, and the stored record.

use super::*;

fn sum() -> Job {
    Job::new("sum", &[1, 2]).unwrap()
}

#[test]
fn an_invalid_job_is_refused_with_field_bounds_and_remedy() {
    let long = "x".repeat(129);
    for (job, said) in [
        (Job::new("a/b", &1), "kind has '/' at byte 1: only [A-Za-z0-9._-] are allowed"),
        (Job::new("", &1), "kind is empty: give 1 to 128 characters of [A-Za-z0-9._-]"),
        (Ok(sum().id(&long)), "job id is 129 bytes long: at most 128 are allowed"),
        (Ok(sum().id("a\nb")), "job id has '\\n' at byte 1: only [A-Za-z0-9._-] are allowed"),
        (Ok(sum().tag("")), "tag is empty: give 1 to 128 characters of [A-Za-z0-9._-]"),
        (Ok(sum().affinity("é")), "affinity key has 'é' at byte 0: only [A-Za-z0-9._-] are allowed"),
        (Ok(sum().lane("")), "lane is empty: give 1 to 128 characters of [A-Za-z0-9._-]"),
        (Ok(sum().lane(&long)), "lane is 129 bytes long: at most 128 are allowed"),
        (Ok(sum().lane("a/b")), "lane has '/' at byte 1: only [A-Za-z0-9._-] are allowed"),
        (Ok(sum().max_attempts(0)), "max attempts must be 1 to 1000, not 0"),
        (Ok(sum().timeout(Duration::ZERO)), "timeout must be 1ms to 604800 s, not 0ns"),
        (
            Job::raw("sum", "a/b", vec![0; 65_537]),
            "payload has 65537 bytes: at most 65536 are allowed inline; \
             store larger data elsewhere and submit its address",
        ),
        (Job::raw("sum", "", *b""), "content type \"\" is not 1 to 127 visible ASCII characters"),
        (Job::json("sum", "{\"a\": 1,\n }"), "payload is not JSON: key must be a string at line 2 column 2"),
        (
            Ok((0..33).fold(sum(), |job, n| job.tag(format!("t{n}")))),
            "a job has at most 32 tags, not 33: tags are for properties of workers, not for their data",
        ),
    ] {
        let error = job.and_then(|job| job.check()).unwrap_err();
        assert_eq!(error.to_string(), said);
    }
}

#[test]
fn the_first_error_is_reported_and_a_later_setter_does_not_hide_it() {
    let job = sum().id("a b").tag("c/d").id("fine");
    assert!(job.check().unwrap_err().to_string().starts_with("job id has ' '"));
}

#[test]
fn json_text_is_kept_byte_for_byte() {
    let (_, record) =
        Job::json("sum", " {\"n\": 1e400} ").unwrap().into_record(WallMillis(1), Uuid::now_v7).unwrap();
    assert_eq!(record.payload.bytes(), b" {\"n\": 1e400} ");
}

#[test]
fn tags_are_sorted_and_deduplicated() {
    let (_, record) = sum().tag("b").tag("a").tag("b").into_record(WallMillis(1), Uuid::now_v7).unwrap();
    let tags = record.placement.tags.iter().map(Tag::as_str).collect::<Vec<_>>();
    assert_eq!(tags, ["a", "b"]);
}
