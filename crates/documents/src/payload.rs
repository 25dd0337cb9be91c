//! A payload whose form shows its type, for remote workers.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bellwether::{ContentType, Payload};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

/// A payload or a result, at most 64 KiB: exactly one of `json`, `text` and `base64`.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Payload)]
pub struct PayloadDocument {
    /// JSON, kept byte for byte.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<serde_json::Value>)]
    json: Option<Box<RawValue>>,
    /// Text of another content type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    /// Other bytes, as base64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    base64: Option<String>,
    /// The content type; default `application/json`, `text/plain` or `application/octet-stream`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    content_type: Option<String>,
}

/// Reads a field that is present, so that `null` is a value.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Box<RawValue>>, D::Error> {
    Box::<RawValue>::deserialize(deserializer).map(Some)
}

const JSON: &str = "application/json";

impl From<&Payload> for PayloadDocument {
    fn from(payload: &Payload) -> Self {
        let (content_type, bytes) = (payload.content_type(), payload.bytes());
        let named = Some(content_type.as_str().to_owned());
        match String::from_utf8(bytes.to_vec()) {
            Ok(text) if content_type.is_json() => match RawValue::from_string(text.clone()) {
                Ok(json) => {
                    let content_type = named.filter(|name| name != JSON);
                    Self { json: Some(json), content_type, ..Self::default() }
                }
                Err(_) => Self { text: Some(text), content_type: named, ..Self::default() },
            },
            Ok(text) => Self { text: Some(text), content_type: named, ..Self::default() },
            Err(_) => Self { base64: Some(STANDARD.encode(bytes)), content_type: named, ..Self::default() },
        }
    }
}

impl PayloadDocument {
    /// Returns the payload.
    ///
    /// # Errors
    /// The reason why it is no payload.
    pub fn payload(self) -> Result<Payload, String> {
        let Self { json, text, base64, content_type } = self;
        let (default, bytes) = match (json, text, base64) {
            (Some(json), None, None) => (JSON, json.get().as_bytes().to_vec()),
            (None, Some(text), None) => ("text/plain", text.into_bytes()),
            (None, None, Some(base64)) => {
                let bytes = STANDARD.decode(base64).map_err(|error| format!("base64: {error}"))?;
                ("application/octet-stream", bytes)
            }
            (_, _, _) => return Err("give exactly one of json, text and base64".to_owned()),
        };
        let content_type = ContentType::new(content_type.as_deref().unwrap_or(default));
        let content_type = content_type.map_err(|error| error.to_string())?;
        let payload = Payload::new(content_type, bytes).map_err(|error| error.to_string())?;
        payload.check_nesting().map_err(|error| error.to_string())?;
        Ok(payload)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Payload, String> {
        serde_json::from_str::<PayloadDocument>(text).map_err(|error| error.to_string())?.payload()
    }

    #[test]
    fn each_payload_is_read_back_as_it_was_written() {
        for (content_type, bytes, document) in [
            (
                "application/json",
                &b"{\"n\":10000000000000000000001}"[..],
                r#"{"json":{"n":10000000000000000000001}}"#,
            ),
            ("application/json", b"null", r#"{"json":null}"#),
            ("application/ld+json", b"1", r#"{"json":1,"content_type":"application/ld+json"}"#),
            ("application/json", b"{broken", r#"{"text":"{broken","content_type":"application/json"}"#),
            ("text/plain", b"{}", r#"{"text":"{}","content_type":"text/plain"}"#),
            ("image/png", &[0xff, 0xfe], r#"{"base64":"//4=","content_type":"image/png"}"#),
        ] {
            let payload = Payload::new(ContentType::new(content_type).unwrap(), bytes).unwrap();
            let written = serde_json::to_string(&PayloadDocument::from(&payload)).unwrap();
            assert_eq!(written, document);
            let back = read(&written).unwrap();
            assert_eq!((back.content_type(), back.bytes()), (payload.content_type(), payload.bytes()));
        }
    }

    #[test]
    fn a_payload_without_one_value_is_refused() {
        for (text, said) in [
            ("{}", "give exactly one of json, text and base64"),
            (r#"{"json": 1, "text": "a"}"#, "give exactly one"),
            (r#"{"base64": "*"}"#, "base64: "),
            (r#"{"text": "a", "content_type": "\n"}"#, "content type"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(said), "{error}");
        }
        assert_eq!(read(r#"{"text": "a"}"#).unwrap().content_type().as_str(), "text/plain");
    }
}
