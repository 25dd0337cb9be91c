//! A job as a JSON document, shared by the command line and HTTP.
//!
//! | field | meaning |
//! | --- | --- |
//! | `id`, `kind` | names; `kind` is null when the record cannot be read |
//! | `state` | `queued`, `delayed`, `running`, `succeeded`, `cancelled`, `dead`, `quarantined` |
//! | `attempt` | the running attempt or the last one; 0 before the first |
//! | `worker`, `node` | the current or last worker; its node while the worker is alive |
//! | `result`, `payload` | JSON unchanged; other text as a string; other bytes as `{"content_type", "base64"}` |
//! | `error` | the last error |
//! | `percent`, `message`, `checkpoint_bytes` | the newest progress that its attempts reported, or null |
//! | `lease_ms` | while it runs: the lease of the attempt |
//! | `waiting`, `waiting_for` | why it does not run now: a word, and a sentence |
//! | `group`, `sub_jobs` | the group that it is part of, and the group of its sub-jobs; or null |
//! | `lane`, `behind` | its lane, and the job that is first in it while this one waits for it; or null |
//! | `cancel_requested` | whether the running attempt was asked to stop |
//! | `generation`, `failures`, `losses` | counts |
//! | `priority` | 0 to 9; 9 goes first |
//! | `trace_id` | the trace that it was submitted in, 32 hexadecimal digits; or null |
//! | `submitted_at`, `not_before`, `expires_at`, `finished_at` | RFC 3339 in UTC, or null |

use bellwether_core::job::{Payload, Progress};
use bellwether_core::time::as_millis;
use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

use super::timestamp::rfc3339;
use super::view::{JobView, State};

impl Serialize for State {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl Serialize for JobView {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut document = serializer.serialize_struct("JobView", 29)?;
        document.serialize_field("id", self.id.as_str())?;
        document.serialize_field("kind", &self.kind)?;
        document.serialize_field("state", &self.state)?;
        document.serialize_field("attempt", &self.attempt)?;
        document.serialize_field("worker", &self.worker)?;
        document.serialize_field("node", &self.node)?;
        document.serialize_field("result", &self.result.as_ref().map(Embedded))?;
        document.serialize_field("error", &self.error)?;
        let progress = self.progress.as_ref();
        document.serialize_field("percent", &progress.and_then(Progress::percent))?;
        let message = progress.map(Progress::message).filter(|message| !message.is_empty());
        document.serialize_field("message", &message)?;
        let checkpoint = progress.map(|progress| progress.checkpoint().len()).filter(|bytes| *bytes > 0);
        document.serialize_field("checkpoint_bytes", &checkpoint)?;
        document.serialize_field("lease_ms", &self.lease.map(as_millis))?;
        document.serialize_field("waiting", &self.waiting.map(super::view::WaitReason::as_str))?;
        document.serialize_field("waiting_for", &self.waiting_for())?;
        document.serialize_field("group", &self.group)?;
        document.serialize_field("sub_jobs", &self.sub_jobs)?;
        document.serialize_field("lane", &self.lane)?;
        document.serialize_field("behind", &self.behind)?;
        document.serialize_field("cancel_requested", &self.cancel_requested)?;
        document.serialize_field("generation", &self.generation)?;
        document.serialize_field("failures", &self.failures)?;
        document.serialize_field("losses", &self.losses)?;
        document.serialize_field("priority", &self.priority)?;
        document.serialize_field("expires_at", &self.expires_at.map(rfc3339))?;
        document.serialize_field("submitted_at", &self.submitted_at.map(rfc3339))?;
        document.serialize_field("not_before", &self.not_before.map(rfc3339))?;
        document.serialize_field("finished_at", &self.finished_at.map(rfc3339))?;
        document.serialize_field("trace_id", &self.trace.map(|trace| trace.trace_id()))?;
        document.serialize_field("payload", &self.payload.as_ref().map(Embedded))?;
        document.end()
    }
}

/// Bytes inside a document.
struct Embedded<'a>(&'a Payload);

impl Serialize for Embedded<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (content_type, bytes) = (self.0.content_type().as_str(), self.0.bytes());
        if content_type == "application/json"
            && let Ok(json) = serde_json::from_slice::<&RawValue>(bytes)
        {
            return json.serialize(serializer);
        }
        match std::str::from_utf8(bytes) {
            Ok(text) => serializer.serialize_str(text),
            Err(_) => {
                let mut binary = serializer.serialize_struct("Binary", 2)?;
                binary.serialize_field("content_type", content_type)?;
                binary.serialize_field("base64", &base64(bytes))?;
                binary.end()
            }
        }
    }
}

/// RFC 4648, with padding.
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let word =
            chunk.iter().enumerate().fold(0_u32, |word, (at, byte)| word | u32::from(*byte) << (16 - 8 * at));
        for digit in 0..4 {
            let shown = digit <= chunk.len();
            let index = (word >> (18 - 6 * digit)) as usize & 63;
            text.push(if shown { char::from(DIGITS[index]) } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use bellwether_core::job::ContentType;

    use super::*;

    fn embedded(content_type: &str, bytes: &[u8]) -> String {
        let payload = Payload::new(ContentType::new(content_type).unwrap(), bytes).unwrap();
        serde_json::to_string(&Embedded(&payload)).unwrap()
    }

    #[test]
    fn json_is_embedded_unchanged_and_other_bytes_as_text_or_base64() {
        assert_eq!(
            embedded("application/json", b"{\"n\":10000000000000000000001}"),
            "{\"n\":10000000000000000000001}"
        );
        assert_eq!(embedded("application/json", b"{broken"), "\"{broken\"");
        assert_eq!(embedded("text/plain", b"{}"), "\"{}\"");
        assert_eq!(
            embedded("image/png", &[0xff, 0xfe, 0xfd, 0xfc]),
            "{\"content_type\":\"image/png\",\"base64\":\"//79/A==\"}"
        );
    }

    #[test]
    fn base64_follows_rfc_4648() {
        let all = ["", "f", "fo", "foo", "foob"].map(|text| base64(text.as_bytes()));
        assert_eq!(all, ["", "Zg==", "Zm8=", "Zm9v", "Zm9vYg=="]);
    }
}
