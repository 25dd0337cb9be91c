//! What a job and the job of a schedule have in common: kind, payload and options.

use std::fmt;
use std::sync::Arc;

use bellwether_core::job::{ContentType, Payload};
use bellwether_core::name::Kind;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::JobError;

/// The payload of a job, before it is checked.
#[derive(Clone)]
pub(crate) enum Input {
    /// What the builder has made.
    Made(Result<Payload, JobError>),
    /// JSON of a document. With another content type than JSON it is the text of a string.
    Json(Box<RawValue>),
}

/// A document without a payload has null.
impl Default for Input {
    fn default() -> Self {
        Self::Json(RawValue::NULL.to_owned())
    }
}

/// A log line must not contain the bytes of a job.
impl fmt::Debug for Input {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Made(payload) => payload.fmt(f),
            Self::Json(json) => write!(f, "{} bytes of JSON", json.get().len()),
        }
    }
}

impl<'de> Deserialize<'de> for Input {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Box::<RawValue>::deserialize(deserializer).map(Self::Json)
    }
}

impl Input {
    /// Serializes a value as JSON.
    pub(crate) fn of<P: Serialize + ?Sized>(value: &P) -> Self {
        let text = serde_json::to_vec(value).map_err(|error| JobError::Json(error.to_string()));
        Self::Made(text.and_then(|text| plain(ContentType::json(), text)))
    }

    /// JSON text of a document.
    pub(crate) fn json(text: String) -> Self {
        let text = RawValue::from_string(text).map(Self::Json);
        text.unwrap_or_else(|error| Self::Made(Err(JobError::Json(error.to_string()))))
    }

    /// Bytes of a content type, which need not be valid.
    pub(crate) fn bytes(content_type: &str, bytes: impl Into<Arc<[u8]>>) -> Self {
        let content_type = ContentType::new(content_type).map_err(JobError::from);
        Self::Made(content_type.and_then(|content_type| plain(content_type, bytes)))
    }

    /// Bytes of a content type, or JSON; JSON must be valid.
    pub(crate) fn checked_bytes(content_type: Option<&str>, bytes: impl Into<Arc<[u8]>>) -> Self {
        let content_type = content_type.map_or_else(|| Ok(ContentType::json()), ContentType::new);
        Self::Made(content_type.map_err(JobError::from).and_then(|content_type| {
            let bytes = bytes.into();
            if content_type.is_json() {
                check_json(&bytes)?;
            }
            plain(content_type, bytes)
        }))
    }

    /// Returns the payload. Its stored size is not checked.
    pub(crate) fn payload(&self, content_type: Option<&str>) -> Result<Payload, JobError> {
        let payload = match self {
            Self::Made(payload) => payload.clone()?,
            Self::Json(json) => match content_type.map(ContentType::new).transpose()? {
                Some(content_type) if !content_type.is_json() => {
                    let text = serde_json::from_str::<String>(json.get()).map_err(|_| {
                        JobError::PayloadNotText { content_type: content_type.as_str().to_owned() }
                    })?;
                    plain(content_type, text.into_bytes())?
                }
                content_type => plain(content_type.unwrap_or_else(ContentType::json), json.get().as_bytes())?,
            },
        };
        payload.check_nesting()?;
        Ok(payload)
    }
}

/// `serde_json` does not check strings that it skips for UTF-8.
fn check_json(bytes: &[u8]) -> Result<(), JobError> {
    let text = std::str::from_utf8(bytes).map_err(|error| JobError::Json(error.to_string()))?;
    serde_json::from_str::<IgnoredAny>(text).map(drop).map_err(|error| JobError::Json(error.to_string()))
}

fn plain(content_type: ContentType, bytes: impl Into<Arc<[u8]>>) -> Result<Payload, JobError> {
    Payload::plain(content_type, bytes).map_err(JobError::Payload)
}

/// Returns the checked kind and payload.
pub(super) fn content(
    kind: &str,
    payload: &Input,
    content_type: Option<&str>,
) -> Result<(Kind, Payload), JobError> {
    Ok((Kind::new(kind)?, payload.payload(content_type)?))
}

/// Defines a struct with the fields that every job has and its own fields. The first argument is the text of the payload.
macro_rules! with_content {
    ([$about:literal] $(#[$attribute:meta])* pub struct $name:ident $(<$typed:ident = $untyped:ident>)? { $($fields:tt)* }) => {
        $(#[$attribute])*
        pub struct $name $(<$typed = $untyped>)? {
            /// Kind of the job; it selects the handler.
            #[cfg_attr(feature = "describe", schema(value_type = bellwether_core::name::Kind))]
            kind: String,
            #[doc = $about]
            #[cfg_attr(
                feature = "describe",
                arg(skip),
                schema(value_type = serde_json::Value, required = false, example = json!({"first": 1, "second": 2}))
            )]
            #[serde(default)]
            payload: $crate::client::job::content::Input,
            /// Content type of the payload. A payload that is not JSON is passed on unchanged. Default: application/json.
            #[cfg_attr(
                feature = "describe",
                arg(long, value_name = "TYPE"),
                schema(example = "application/json")
            )]
            content_type: Option<String>,
            /// Options; those that are left out have their defaults.
            #[cfg_attr(feature = "describe", command(flatten))]
            #[serde(default)]
            options: $crate::client::job::JobOptions,
            $($fields)*
        }

        impl $name {
            /// Replaces the payload by bytes of its content type, which is JSON unless another one is set.
            #[must_use]
            pub fn payload(mut self, bytes: impl Into<std::sync::Arc<[u8]>>) -> Self {
                use $crate::client::job::content::Input;
                self.payload = Input::checked_bytes(self.content_type.as_deref(), bytes);
                self
            }

            /// Replaces the payload by JSON text. With another content type than JSON it is a string with the text.
            #[must_use]
            pub fn json_payload(mut self, json: impl Into<String>) -> Self {
                self.payload = $crate::client::job::content::Input::json(json.into());
                self
            }
        }

        impl $(<$typed>)? $name $(<$typed>)? {
            /// Returns the name of its kind, which is not checked yet.
            #[must_use]
            pub fn kind(&self) -> &str {
                &self.kind
            }

            /// Returns the options that are set.
            pub fn given_options(&self) -> &$crate::client::job::JobOptions {
                &self.options
            }
        }
    };
}

pub(super) use with_content;
