//! Fuzz targets of this package: functions that take any bytes, must not panic, and check further properties.
//!
//! Two drivers use them: libFuzzer (`fuzz/`, started by hand), for which they are public; and the tests below, which
//! replay and mutate its corpus in every run of the test suite. The targets of the command and its job kinds are in
//! `crates/server/src/fuzz.rs`; records, names and paths are in `crates/core/tests/fuzz`; frames in
//! `crates/keeper/tests/fuzz`.

use bellwether_core::job::JobRecord;
use bellwether_core::name::JobId;
use bellwether_core::time::WallMillis;
use bellwether_core::wire;
use bellwether_zk::ConnectString;

use crate::client::{Job, JobView};
use crate::codec::{framed, unframed};

/// A connect string: a parsed one can be printed and parsed again to the same value.
pub fn connect_string(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Ok(read) = text.parse::<ConnectString>() {
        assert_eq!(read.to_string().parse(), Ok(read));
    }
}

/// A kind, a content type and a payload, separated by NUL: an accepted job is stored and read back byte for byte
/// (S13).
pub fn job(bytes: &[u8]) {
    let mut parts = bytes.splitn(3, |byte| *byte == 0);
    let mut text = || parts.next().and_then(|part| std::str::from_utf8(part).ok());
    let (Some(kind), Some(media)) = (text(), text()) else { return };
    let payload = parts.next().unwrap_or_default();
    let given = match std::str::from_utf8(payload) {
        Ok(json) if media.is_empty() => Job::json(kind, json),
        Ok(_) | Err(_) => Job::raw(kind, media, payload),
    };
    // A rejected job has a one-line reason.
    if let Err(error) = given.check() {
        return assert!(!error.to_string().contains('\n'), "{error}");
    }
    let (id, record) = given
        .tags([kind])
        .lane(kind)
        .into_record(WallMillis(1), uuid::Uuid::now_v7)
        .expect("a kind is a name");
    assert_eq!(record.payload.bytes(), payload);
    assert_eq!(wire::decode(&wire::encode(&record)).as_ref(), Ok(&record));
    shown(id, record);
}

/// A stored record from any writer: a client shows it, and describes its state in one line.
pub fn document(bytes: &[u8]) {
    let id = JobId::new("fuzzed").expect("a name");
    match wire::decode::<JobRecord>(bytes) {
        Ok(record) => shown(id, record),
        Err(reason) => readable(&JobView::unreadable(id, &reason)),
    }
}

/// What a codec returns for stored bytes: the frame of a payload, which is built again to the same bytes, or a refusal.
pub fn frame(bytes: &[u8]) {
    if let Ok(payload) = unframed(bytes) {
        assert_eq!(framed(&payload), bytes);
    }
}

fn shown(id: JobId, record: JobRecord) {
    readable(&JobView::of(id, record));
}

fn readable(view: &JobView) {
    assert!(view.status().starts_with(view.state.as_str()), "{}", view.status());
    assert_eq!(view.waiting_for().is_some(), view.waiting.is_some());
}

#[cfg(test)]
mod tests {
    use bellwether_testkit::fuzz::{Corpus, JSON, MUTANTS};

    fn exercise(target: &str, words: &[&[u8]], run: fn(&[u8])) {
        Corpus::read(concat!(env!("CARGO_MANIFEST_DIR"), "/fuzz/corpus"), target)
            .exercise(MUTANTS, words, run);
    }

    #[test]
    fn any_text_is_parsed_as_a_connect_string_or_refused() {
        let words: [&[u8]; 8] = [b",", b":", b"/", b"]", b"[::1]", b":0", b"/zookeeper", "\u{e9}".as_bytes()];
        exercise("connect_string", &words, super::connect_string);
    }

    #[test]
    fn any_job_is_stored_unchanged_or_refused() {
        exercise("job", &JSON, super::job);
    }

    #[test]
    fn any_decoded_bytes_are_a_payload_or_refused() {
        exercise("frame", &[b"\x01", b"\x00", b"\x7f", b"\xff", b" "], super::frame);
    }

    #[test]
    fn any_stored_record_is_shown() {
        exercise("document", &JSON, super::document);
    }
}
