//! A payload or a result as a value of another document.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bellwether::Payload;
use serde_json::json;
use serde_json::value::{RawValue, to_raw_value};

/// JSON unchanged, other text as a string, other bytes as `{content_type, base64}`.
pub(super) fn embedded(payload: &Payload) -> Box<RawValue> {
    let (content_type, bytes) = (payload.content_type(), payload.bytes());
    let text = std::str::from_utf8(bytes);
    if content_type.is_json()
        && let Ok(text) = text
        && let Ok(json) = RawValue::from_string(text.to_owned())
    {
        return json;
    }
    let embedded = match text {
        Ok(text) => to_raw_value(text),
        Err(_) => {
            to_raw_value(&json!({ "content_type": content_type.as_str(), "base64": STANDARD.encode(bytes) }))
        }
    };
    embedded.expect("texts and maps with string keys are JSON")
}

#[cfg(test)]
mod tests {
    use bellwether::ContentType;

    use super::*;

    #[test]
    fn json_is_embedded_unchanged_and_other_bytes_as_text_or_base64() {
        for (content_type, bytes, document) in [
            ("application/json", &b"{\"n\":10000000000000000000001}"[..], r#"{"n":10000000000000000000001}"#),
            ("application/json", b"{broken", r#""{broken""#),
            ("application/ld+json", b"{}", "{}"),
            ("text/plain", b"{}", r#""{}""#),
            ("image/png", &[0xff, 0xfe, 0xfd, 0xfc], r#"{"base64":"//79/A==","content_type":"image/png"}"#),
        ] {
            let payload = Payload::new(ContentType::new(content_type).unwrap(), bytes).unwrap();
            assert_eq!(embedded(&payload).get(), document);
        }
    }
}
